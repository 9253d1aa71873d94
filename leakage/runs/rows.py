"""What the store's rows are to the rest of the program: a run, and what its owner calls it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from leakage.runs.connections import Row
from leakage.runs.events import EndEvent

OPEN = ("queued", "running")
End = TypeVar("End", bound=EndEvent)


@dataclass(frozen=True)
class Run:
    """One row: who asked for what, and how it stands. Times are seconds since 1970."""

    id: str
    owner: str
    grp: str | None
    kind: str
    digest: str
    version: str
    experiment: str
    shareable: bool
    estimate: float | None
    created: float
    status: str = "queued"  # running, done, cancelled, failed
    message: str = ""
    started: float | None = None
    finished: float | None = None
    heartbeat: float | None = None
    worker: str | None = None
    cancelled: float | None = None
    result: dict[str, Any] | None = None
    thinned: float | None = None  # since when only its answer is kept
    model_folder: str | None = None  # the folder of what it trains, below the home
    yields: float | None = None  # since when it is asked to let somebody else go first

    def outcome(self, kind: type[End]) -> End | None:
        """The result as a model, the one that a run of this kind ends with; None without a result."""
        return kind.model_validate(self.result) if self.result else None


@dataclass(frozen=True)
class Label:
    """What an owner calls a run, empty for none; and since when they have it pinned, in seconds since 1970."""

    name: str = ""
    pinned: float | None = None


@dataclass(frozen=True)
class Removed:
    """What is left of a run that went to make room, or because it was old: when, why in words, and what it asked (not of uploads)."""

    run: str
    at: float
    why: str
    experiment: str | None


Asked = tuple[Run, Mapping[str, bytes]]  # a run to be queued, with its files (uploads)


def run_of(row: Row) -> Run:
    """The row as a Run, without columns that Run has no field for."""
    values = {field.name: row[field.name] for field in fields(Run)}
    return Run(**{**values, "shareable": bool(values["shareable"]), "result": json.loads(values["result"]) if values["result"] else None})
