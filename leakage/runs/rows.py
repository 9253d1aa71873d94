"""The store's rows as the rest of the program sees them: a run, its label, and what is left of a removed run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from pydantic import BaseModel

from leakage.runs.connections import Row
from leakage.runs.events import EndEvent

OPEN = ("queued", "running")
End = TypeVar("End", bound=EndEvent)
Task = TypeVar("Task", bound=BaseModel)


@dataclass(frozen=True)
class Run:
    """One run: its owner, what it computes, and its state. Times are in seconds since 1970."""

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
    status: str = "queued"
    """One of queued, running, done, cancelled, failed."""
    message: str = ""
    started: float | None = None
    finished: float | None = None
    heartbeat: float | None = None
    worker: str | None = None
    cancelled: float | None = None
    result: dict[str, Any] | None = None
    thinned: float | None = None
    """When its pictures were deleted except for the answer's; None: they were not."""
    model_folder: str | None = None
    """The folder of the model that the run trains, below the home; None: the run trains no model."""
    yields: float | None = None
    """When the run was asked to let another owner's run go first; None: it was not."""

    def experiment_as(self, kind: type[Task]) -> Task:
        """Return the task of the run as a model: `Experiment` for an attack, `Training`, `InverterTraining` or `Ranks` for other kinds."""
        return kind.model_validate_json(self.experiment)

    def outcome(self, kind: type[End]) -> End | None:
        """Return the result as the model `kind`, for example AttackEnd for an attack; None if the run has no result."""
        return kind.model_validate(self.result) if self.result else None


@dataclass(frozen=True)
class Label:
    """The name that an owner gave to a run (empty: none), and since when it is pinned, in seconds since 1970."""

    name: str = ""
    pinned: float | None = None


@dataclass(frozen=True)
class Removed:
    """A run that was removed: when (seconds since 1970), why (a sentence), and its experiment (None if it used uploads)."""

    run: str
    at: float
    why: str
    experiment: str | None


Asked = tuple[Run, Mapping[str, bytes]]  # a run to be queued, with its files (uploads)


def run_of(row: Row) -> Run:
    """Return a row of the table `runs` as a Run; columns without a field are left out."""
    values = {field.name: row[field.name] for field in fields(Run)}
    return Run(**{**values, "shareable": bool(values["shareable"]), "result": json.loads(values["result"]) if values["result"] else None})
