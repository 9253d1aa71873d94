"""The parts of a run's first event that the threat model table needs; leakage/spec may not import the event itself."""

from typing import Protocol


class Knowledge(Protocol):
    """What the threat model table needs of `AttackerKnowledge` in runs/meta_parts.py."""

    @property
    def weights(self) -> str: ...

    @property
    def answers(self) -> tuple[str, ...]: ...

    @property
    def batch_norm(self) -> bool: ...


class Introduction(Protocol):
    """What the threat model table needs of `MetaEvent` in runs/events.py. `entries`: how many numbers the server received."""

    @property
    def knowledge(self) -> Knowledge: ...

    @property
    def entries(self) -> int: ...
