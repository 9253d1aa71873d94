"""The memory limit of a worker on a CPU: setting it, recognizing the errors that it causes, and lifting it to report them."""

import resource
import sys

import torch

# Parts of the messages with which torch and oneDNN report lack of memory, as a RuntimeError.
SAYINGS = (
    "not enough memory",
    "can't allocate memory",
    "bad_alloc",
    "could not create a memory",
    "could not create a primitive",
    "can't start new thread",
)


def limit_memory(megabytes: int) -> None:
    """Limit, on Linux, how much more memory this process may allocate, so that a run fails with a sentence instead of swapping."""
    if sys.platform != "linux":
        return
    with open("/proc/self/status") as status:
        allocated = next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmData"))
    limit = (allocated + megabytes) * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def lift_memory_limit() -> None:
    """Remove the limit of `limit_memory`: this process has met it, must still report the error, and then ends."""
    if sys.platform == "linux":
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def met_limit(error: BaseException) -> bool:
    """Return whether an error reports that the memory of the process or of its GPU was exhausted."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(saying in str(error) for saying in SAYINGS)
