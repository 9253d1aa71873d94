"""What is recorded for the lessons: runs, and grids of what-ifs, as data in assets/lessons/recorded.json. No torch."""

from copy import deepcopy
from functools import cache
from itertools import product
from typing import Any

from pydantic import Field, JsonValue

from leakage.settings import ROOT
from leakage.spec.experiment import Base, Experiment, SpecError, parse, parse_as

FILE = ROOT / "assets" / "lessons" / "recorded.json"


class PlannedRun(Base):
    """A run that is recorded: its title, what is asked, and how many of its frames keep a picture; by itself as many as are watched."""

    title: str
    experiment: Experiment
    frames: int = Field(default=0, ge=0, le=100)


class Value(Base):
    """One value of a knob: as a reader sees it, and what it puts into the experiment, by dotted names of its fields."""

    label: str
    number: float | None = None  # on an axis, where it has a place there
    put: dict[str, JsonValue] = Field(default_factory=dict)


class Knob(Base):
    """What a reader may turn."""

    name: str
    values: tuple[Value, ...] = Field(min_length=2, max_length=8)


class Axes(Base):
    """How a class draws its answers: two names, of a knob or a score, and the knob that gives the colour."""

    x: str
    y: str
    colour: str


class PlannedGrid(Base):
    """All what-ifs of a lesson: an experiment, and two or three knobs with few values each."""

    title: str
    base: dict[str, JsonValue]  # of an experiment
    knobs: tuple[Knob, ...] = Field(min_length=2, max_length=3)
    plot: Axes | None = None

    def cells(self) -> list[tuple[int, ...]]:
        """Every choice, as the place of the value of each knob; the last knob turns fastest."""
        return list(product(*(range(len(knob.values)) for knob in self.knobs)))

    def experiment(self, cell: tuple[int, ...]) -> Experiment:
        """What a choice asks. Raises SpecError."""
        raw = deepcopy(self.base)
        for knob, place in zip(self.knobs, cell, strict=True):
            for name, value in knob.values[place].put.items():
                _put(raw, name.split("."), value)
        return parse(raw)


class Plan(Base):
    """The whole file."""

    runs: dict[str, PlannedRun]
    grids: dict[str, PlannedGrid]


def _put(raw: Any, names: list[str], value: JsonValue) -> None:
    """Lay a value into nested data, making the objects on the way; a number names a place in a list."""
    for name in names[:-1]:
        raw = raw[int(name)] if isinstance(raw, list) else raw.setdefault(name, {})
    if isinstance(raw, list):
        raw[int(names[-1])] = deepcopy(value)
    else:
        raw[names[-1]] = deepcopy(value)


@cache
def plan() -> Plan:
    """All of it, read once. Raises SpecError, naming the first field that is wrong."""
    return parse_as(FILE.read_bytes(), Plan, "a file of recordings")


def planned_run(name: str) -> PlannedRun:
    """The run of that name. Raises SpecError."""
    if name not in plan().runs:
        raise SpecError(f"There is no run {name!r}; expected is one of {', '.join(plan().runs)}.")
    return plan().runs[name]


def planned_grid(name: str) -> PlannedGrid:
    """The grid of that name. Raises SpecError."""
    if name not in plan().grids:
        raise SpecError(f"There is no grid {name!r}; expected is one of {', '.join(plan().grids)}.")
    return plan().grids[name]
