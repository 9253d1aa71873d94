"""How many runs a machine's GPUs take at a time, and which GPU a slot computes on. No torch here: the dispatcher stays light."""

import logging
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leakage import settings
from leakage.settings import share_of_slot

LEAST_GB = 2  # of GPU memory for a run: what the class server gives one on a CPU
MOST = 8  # runs on one GPU: what a process takes before its first tensor must fit into what the shares leave
DRIVERS = ("proc/driver/nvidia/version", "dev/dxg", "dev/kfd")  # NVIDIA's, that of Windows' Linux, AMD's
VISIBLE = "CUDA_VISIBLE_DEVICES"
# Only torch knows what it can use: its build, the driver, parts of a GPU (MIG) and what the variable above hides all have a say.
ASK = "import torch; print(*(torch.cuda.get_device_properties(n).total_memory for n in range(torch.cuda.device_count())))"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GpuShare:
    """Where a slot computes: the place of a GPU among those that are visible, and how much of its memory it may fill, 0 to 1."""

    gpu: int
    share: float

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the environment variable by which a worker's process sees this GPU alone, named as in the `given` variables."""
        names = [name.strip() for name in given.get(VISIBLE, "").split(",") if name.strip()]
        return {VISIBLE: names[self.gpu] if names else str(self.gpu)}


def find_gpus() -> list[int]:
    """Return the bytes of memory of each GPU that torch can use here; ask torch only on a machine with a driver, since it takes seconds."""
    if not any((settings.MACHINE / path).exists() for path in DRIVERS):
        return []
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True)
    if done.returncode:
        log.warning("the GPUs of this machine could not be counted, so one slot for each core is taken:\n%s", done.stderr)
    return [int(word) for word in done.stdout.split()] if not done.returncode else []


def slots_for(gpus: Sequence[int], cores: int) -> int:
    """Return how many runs GPUs of so many bytes compute at a time: at least one, LEAST_GB for each, at most MOST on one GPU.

    No more than cores, shared by the GPUs: a run keeps one busy with telling its GPU what to do.

    >>> slots_for([24 * 2**30], cores=16), slots_for([24 * 2**30], cores=4)
    (8, 4)
    """
    fits = [int(size / 2**30 * settings.SHARE / LEAST_GB) for size in gpus]
    return sum(max(1, min(number, MOST, cores // len(gpus))) for number in fits)


def assign_gpus(slots: int, gpus: Sequence[int]) -> list[GpuShare]:
    """Assign a GPU to each slot: the one with most memory left, the first of equals, so that equal GPUs take turns.

    >>> [one.gpu for one in assign_gpus(5, [2**33, 2**33])]
    [0, 1, 0, 1, 0]
    """
    held = [0] * len(gpus)
    order = list[int]()
    for _ in range(slots if gpus else 0):
        gpu = max(range(len(gpus)), key=lambda place: (gpus[place] / (held[place] + 1), -place))
        held[gpu] += 1
        order.append(gpu)
    return [GpuShare(gpu, share_of_slot(held[gpu])) for gpu in order]
