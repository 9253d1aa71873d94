"""The slots on a machine's GPUs: how many there are, and which GPU each has. No torch: the dispatcher does not import it."""

import logging
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leakage import settings
from leakage.settings import memory_fraction

LEAST_GB = 2  # of GPU memory for a run: as much as a run has on a CPU of the class server
MOST = 8  # runs on one GPU: the memory that a process takes before its first tensor comes on top of the fractions
DRIVERS = ("proc/driver/nvidia/version", "dev/dxg", "dev/kfd")  # of NVIDIA, of Linux on Windows, of AMD
VISIBLE = "CUDA_VISIBLE_DEVICES"
# Only torch knows which GPUs it can use: that depends on its build, the driver, parts of a GPU (MIG), and the variable above.
ASK = "import torch; print(*(torch.cuda.get_device_properties(n).total_memory for n in range(torch.cuda.device_count())))"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GpuSlot:
    """The GPU on which the worker of a slot computes."""

    gpu: int
    """The index of the GPU among the visible GPUs."""
    fraction: float
    """The fraction of the GPU's memory that the slot may fill, 0 to 1."""

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the environment variable with which a worker's process sees only this GPU; `given` are the dispatcher's variables."""
        names = [name.strip() for name in given.get(VISIBLE, "").split(",") if name.strip()]
        return {VISIBLE: names[self.gpu] if names else str(self.gpu)}


def find_gpus() -> list[int]:
    """Return the memory of each GPU that torch can use here, in bytes; torch is asked only if there is a driver, since it takes seconds."""
    if not any((settings.MACHINE / path).exists() for path in DRIVERS):
        return []
    process = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True)
    if process.returncode:
        log.warning("the GPUs of this machine could not be counted, so one slot for each core is taken:\n%s", process.stderr)
    return [int(word) for word in process.stdout.split()] if not process.returncode else []


def slots_for(gpus: Sequence[int], cores: int) -> int:
    """Return the number of runs that GPUs compute at a time.

    Each run has at least LEAST_GB of memory and a CPU core, which it keeps busy with starting work on its GPU. A GPU computes at least one
    run and at most MOST.

    Args:
        gpus: the memory of each GPU, in bytes.
        cores: the number of CPU cores, which the GPUs share.

    >>> slots_for([24 * 2**30], cores=16), slots_for([24 * 2**30], cores=4)
    (8, 4)
    """
    fits = [int(size / 2**30 * settings.MEMORY_FRACTION / LEAST_GB) for size in gpus]
    return sum(max(1, min(number, MOST, cores // len(gpus))) for number in fits)


def assign_gpus(slots: int, gpus: Sequence[int]) -> list[GpuSlot]:
    """Assign a GPU to each slot: the GPU with most memory for a further slot, the first of several, so that equal GPUs take turns.

    Args:
        slots: the number of slots.
        gpus: the memory of each GPU, in bytes; without GPUs the result is empty.

    >>> [slot.gpu for slot in assign_gpus(5, [2**33, 2**33])]
    [0, 1, 0, 1, 0]
    """
    assigned = [0] * len(gpus)
    order = list[int]()
    for _ in range(slots if gpus else 0):
        gpu = max(range(len(gpus)), key=lambda index: (gpus[index] / (assigned[index] + 1), -index))
        assigned[gpu] += 1
        order.append(gpu)
    return [GpuSlot(gpu, memory_fraction(assigned[gpu])) for gpu in order]
