"""The parts of a run's first event that the threat model table needs; leakage/spec may not import the event itself."""

from typing import Protocol


class Knowledge(Protocol):
    """The part of `AttackerKnowledge` (runs/meta_parts.py) that the threat model table reads."""

    @property
    def weights(self) -> str: ...

    @property
    def answers(self) -> tuple[str, ...]: ...

    @property
    def batch_norm(self) -> bool: ...


class Introduction(Protocol):
    """The part of a run's first event (`MetaEvent` in runs/events.py) that the threat model table reads.

    `entries` is how many numbers the server received.
    """

    @property
    def knowledge(self) -> Knowledge: ...

    @property
    def entries(self) -> int: ...
