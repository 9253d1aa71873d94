"""The precomputed rows nearest to an experiment, and how far each of their attackers came."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from leakage.data.images import GALLERY_CLASSES, PictureError, find
from leakage.results.accuracy_cost import with_defaults
from leakage.results.best_of_each import best_of_each
from leakage.results.precomputed import Cell, Line, MeasuredScene, reach, same_stack, scenes
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, Part, Picture

NAIVE, IMITATE = "naive", "imitate"  # two attackers in the precomputed results; every other name is a strategy
TINY = 1e-6  # added to strengths, of which some are 0
KINDS = {"mnist": "digit"}  # data of a table -> the class of the gallery with such pictures


@dataclass(frozen=True)
class Attacker:
    """An attacker in a row of the precomputed results: its attack, its strategy and its scores."""

    attack: Part
    """The attack, with the fields with which it was measured."""
    strategy: str
    """"naive", "imitate" for the first of a protection's strategies, or the name of another strategy."""
    cell: Cell
    """Its results."""


@dataclass(frozen=True)
class Nearest:
    """The rows of a precomputed table (protections by attacks) that are nearest to an experiment.

    One is the row of the experiment's protection; for several pictures there is also the row in which a sum of updates was attacked.
    """

    scene: MeasuredScene | None = None
    """The table that contains the rows; None if there is no table."""
    lines: tuple[Line, ...] = ()
    """The rows: that of the protection first, then that of a sum."""
    attackers: dict[tuple[str, str], Attacker] = field(default_factory=dict)
    """Every attacker of these rows, by attack and strategy, with its best results."""

    def reached(self, attack: str, strategy: str) -> Cell | None:
        """Return the results of an attack with a strategy in these rows; None if they were not measured."""
        attacker = self.attackers.get((attack, strategy))
        return attacker.cell if attacker else None


def nearest(asked: Experiment, known: Catalog) -> Nearest:
    """Return the precomputed rows nearest to an experiment.

    The nearest row has the same protections and strength; failing that, the same protections with the nearest strength; failing that, no
    protection. For several pictures, or an aggregation, the row of a sum of updates is looked for too.
    """
    scene = _scene(asked, known)
    if scene is None:
        return Nearest()
    lines = _lines(scene.lines, asked, known)
    attackers = (
        ((attack, strategy), Attacker(Part(id=attack, fields=scene.recipe["attacks"].get(attack, {})), strategy, cell))
        for line in lines
        for attack, strategy, cell in _cells(line)
    )
    return Nearest(scene, tuple(lines), best_of_each(attackers, lambda attacker: reach(attacker.cell)))


def _scene(asked: Experiment, known: Catalog) -> MeasuredScene | None:
    """Choose the precomputed table whose settings are nearest to an experiment's; None if there are no tables.

    It is the first table with a matching protocol (local training or not) and, without local training, with pictures of the same kind. If
    there is none, it is the first table, of photographs.
    """
    tables = scenes(known)
    trains = known.protocols.get(asked.protocol.id).trains_locally
    kinds = {_kind(picture) for picture in asked.pictures}
    for scene in tables:
        same_steps = known.protocols.get(scene.recipe.get("protocol", Experiment().protocol.id)).trains_locally == trains
        same_kind = kinds == {KINDS.get(scene.recipe["data"])} or scene.recipe["data"] in {picture.source for picture in asked.pictures}
        if scene.lines and scene is not tables[0] and same_steps and (trains or same_kind):
            return scene
    return tables[0] if tables else None


def _kind(picture: Picture) -> str:
    """Return the class of a picture in words; empty if it is not known."""
    if picture.source == "upload":
        return GALLERY_CLASSES[picture.label] if picture.label is not None and picture.label < len(GALLERY_CLASSES) else ""
    try:
        return find("gallery", picture.id).class_name if picture.source == "gallery" else KINDS.get(picture.source, "")
    except PictureError:
        return ""


def _lines(lines: Sequence[Line], asked: Experiment, known: Catalog) -> list[Line]:
    """Choose the rows nearest to an experiment: of its protection, and, for several pictures or an aggregation, of a sum of updates.

    If the row of the sum has the same protection, it is the only one. The gradient of a batch is a sum over its pictures, as an aggregate
    is a sum over clients: both are equally hard to separate.
    """
    played, ids = [line for line in lines if line.duels], [part.id for part in asked.defenses]
    single = _best_fit(asked.defenses, [line for line in played if line.clients == 1], known)
    several = asked.aggregation is not None or len(asked.pictures) > 1
    summed = _best_fit(asked.defenses, [line for line in played if line.clients > 1], known) if several else None
    if summed and [part.id for part in summed.stack] == ids:
        return [summed]
    return [line for line in (single, summed) if line]


def _best_fit(stack: Sequence[Part], lines: Sequence[Line], known: Catalog) -> Line | None:
    """Return the row with these protections, else at the nearest strength, else without protection; None if there is no such row."""
    ids = [part.id for part in stack]
    same = [line for line in lines if same_stack(line.stack, stack, known)]
    similar = sorted((line for line in lines if [part.id for part in line.stack] == ids), key=lambda line: _apart(line.stack, stack, known))
    return next(iter([*same, *similar, *(line for line in lines if not line.stack)]), None)


def _apart(first: Sequence[Part], second: Sequence[Part], known: Catalog) -> float:
    """Return the distance between two strengths of the same protections.

    It is the sum of |log(a / b)| over pairs of numbers a and b, plus 1 for each other field that differs.
    """
    total = 0.0
    for pair in zip(first, second, strict=True):
        a, b = (with_defaults(part, known).fields for part in pair)
        for name in a:
            x, y = a[name], b.get(name)
            if isinstance(x, bool) or not isinstance(x, int | float) or not isinstance(y, int | float):
                total += float(x != y)
            else:
                total += abs(math.log((abs(x) + TINY) / (abs(y) + TINY)))
    return total


def _cells(line: Line) -> Iterator[tuple[str, str, Cell]]:
    """Yield the id of the attack, the strategy of the attacker and the results for every cell of a row.

    An adaptive attacker without results, because its knowledge changes nothing, is given the results of the naive attacker.
    """
    for attack, duel in line.duels.items():
        knowing = dict(zip([IMITATE, *list(duel.knowing)[1:]], duel.knowing.values(), strict=False))
        naive = duel.naive if duel.naive and "psnr" in duel.naive else None
        cells: dict[str, Cell | None] = {NAIVE: naive, **(knowing or {IMITATE: naive})}
        for strategy, cell in cells.items():
            if reached := cell if cell and "psnr" in cell else naive:
                yield attack, strategy, reached
