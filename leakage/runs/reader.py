"""The interface for reading results. The store has it, and the service, which pages use instead."""

from typing import Protocol

from leakage.runs.events import MetaEvent
from leakage.runs.store import Run


class RunReader(Protocol):
    """Finds runs and reads their first events."""

    def equal(self, kind: str, digest: str) -> list[Run]:
        """Return every run of this kind, such as "attack", and this digest (hash) of its task, newest first."""
        ...

    def meta(self, run: str) -> MetaEvent | None:
        """Return the first event of an attack; None before it began."""
        ...
