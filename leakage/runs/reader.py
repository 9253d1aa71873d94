"""What is needed to read results: the store can do it, and so can the service, which pages use instead."""

from typing import Protocol

from leakage.runs.events import MetaEvent
from leakage.runs.store import Run


class RunReader(Protocol):
    """Looks runs up and reads what they told at their beginning."""

    def equal(self, kind: str, digest: str) -> list[Run]:
        """Return every run of this kind and digest, newest first."""
        ...

    def meta(self, run: str) -> MetaEvent | None:
        """Return the first event of an attack; None before it began."""
        ...
