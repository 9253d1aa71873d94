"""What one worker may allocate on a CPU: the limit, what meeting it looks like, and how it is lifted for last words."""

import resource
import sys

import torch

# Torch and oneDNN raise a RuntimeError that says it in one of these ways.
SAYINGS = (
    "not enough memory",
    "can't allocate memory",
    "bad_alloc",
    "could not create a memory",
    "could not create a primitive",
    "can't start new thread",
)


def limit_memory(megabytes: int) -> None:
    """Cap, on Linux, what this process may allocate beyond what it has now, so that a run fails with a sentence instead of swapping."""
    if sys.platform != "linux":
        return
    with open("/proc/self/status") as status:
        held = next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmData"))
    cap = (held + megabytes) * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (cap, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def lift_memory_limit() -> None:
    """Allow this process what the system does: it met its limit, must still say so, and then ends."""
    if sys.platform == "linux":
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def met_limit(error: BaseException) -> bool:
    """Return whether this error says that the memory of the process or of its GPU was exhausted."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(saying in str(error) for saying in SAYINGS)
