"""The plan of the recordings for lessons: runs, and grids of what-ifs, as data in assets/lessons/recorded.json. No torch."""

from copy import deepcopy
from functools import cache
from itertools import product
from typing import Any

from pydantic import Field, JsonValue

from leakage.settings import ROOT
from leakage.spec.experiment import Base, Experiment, SpecError, parse, parse_as

FILE = ROOT / "assets" / "lessons" / "recorded.json"


class PlannedRun(Base):
    """A run to record."""

    title: str
    experiment: Experiment
    frames: int = Field(default=0, ge=0, le=100)
    """How many frames keep a picture; 0: the usual number for the size of the batch."""
    points: int = Field(default=0, ge=0)
    """How many frames are kept at most for the curves, the answer among them; 0: all."""


class Value(Base):
    """A value of a knob (a setting that a reader may change), and what it changes in the experiment."""

    label: str
    """The text that a reader sees."""
    number: float | None = None
    """The position on an axis; None if it has none."""
    put: dict[str, JsonValue] = Field(default_factory=dict)
    """The settings that the value puts into the experiment, by dotted names of fields."""


class Knob(Base):
    """A setting that a reader may change."""

    name: str
    values: tuple[Value, ...] = Field(min_length=2, max_length=8)


class Axes(Base):
    """The diagram in which a school class collects its results as dots: a knob or a score for each axis, and a knob for the colour."""

    x: str
    y: str
    colour: str


class PlannedGrid(Base):
    """A grid to record: an experiment, and two or three knobs (settings) with few values each; every combination is a run."""

    title: str
    base: dict[str, JsonValue]
    """The experiment that the knobs change, as JSON."""
    knobs: tuple[Knob, ...] = Field(min_length=2, max_length=3)
    plot: Axes | None = None

    def cells(self) -> list[tuple[int, ...]]:
        """Return every combination of the knobs' values as a tuple of indices, one for each knob; the last knob changes fastest."""
        return list(product(*(range(len(knob.values)) for knob in self.knobs)))

    def experiment(self, cell: tuple[int, ...]) -> Experiment:
        """Return the experiment with the knobs' values of these indices; raise SpecError if it is not valid."""
        raw = deepcopy(self.base)
        for knob, index in zip(self.knobs, cell, strict=True):
            for name, value in knob.values[index].put.items():
                _put(raw, name.split("."), value)
        return parse(raw)


class Plan(Base):
    """The content of recorded.json: all runs and grids to record for lessons and pages, by name."""

    runs: dict[str, PlannedRun]
    refused: dict[str, PlannedRun]
    """The runs that a phone refuses, which have no pictures."""
    grids: dict[str, PlannedGrid]


def _put(raw: Any, names: list[str], value: JsonValue) -> None:
    """Set an entry of nested JSON data in place, and create missing objects on the way.

    Args:
        raw: objects and lists.
        names: the keys that lead to the entry; in a list, a number is the index.
        value: the new value.
    """
    for name in names[:-1]:
        raw = raw[int(name)] if isinstance(raw, list) else raw.setdefault(name, {})
    if isinstance(raw, list):
        raw[int(names[-1])] = deepcopy(value)
    else:
        raw[names[-1]] = deepcopy(value)


@cache
def plan() -> Plan:
    """Return the content of recorded.json, read once; raise SpecError, with the first wrong field, if it is not valid."""
    return parse_as(FILE.read_bytes(), Plan, "a file of recordings")


def planned_run(name: str) -> PlannedRun:
    """Return the run to record of that name; raise SpecError if recorded.json has none."""
    if name not in plan().runs:
        raise SpecError(f"There is no run {name!r}; expected is one of {', '.join(plan().runs)}.")
    return plan().runs[name]


def planned_grid(name: str) -> PlannedGrid:
    """Return the grid to record of that name; raise SpecError if recorded.json has none."""
    if name not in plan().grids:
        raise SpecError(f"There is no grid {name!r}; expected is one of {', '.join(plan().grids)}.")
    return plan().grids[name]
