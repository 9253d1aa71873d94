"""Limits of a process that reads a file of a stranger and does nothing else."""

import contextlib
import resource


def limit_process(cpu_seconds: int, memory: int) -> None:
    """Limit the processor time (s) and the memory (bytes) of this process, and forbid core dumps, which would contain the file."""
    for kind, most in ((resource.RLIMIT_CPU, cpu_seconds), (resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
        allowed = resource.getrlimit(kind)[1]
        limit = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        with contextlib.suppress(ValueError, OSError):  # macOS cannot limit the address space
            resource.setrlimit(kind, (limit, limit))
