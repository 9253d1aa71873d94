"""The precomputed rows nearest to an experiment, and how far each of their attackers came."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from leakage.data.images import GALLERY_CLASSES, PictureError, find
from leakage.results.accuracy_cost import with_defaults
from leakage.results.precomputed import Cell, Line, MeasuredScene, reach, same_stack, scenes
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, Part, Picture

NAIVE, IMITATE = "naive", "imitate"  # who attacks, as the precomputed results name it; every other name is a strategy
TINY = 1e-6  # beside a strength of 0
KINDS = {"mnist": "digit"}  # data of a table -> the class of the gallery that shows the same


@dataclass(frozen=True)
class Attacker:
    """How far one attacker of a row came.

    Args:
        attack: with the fields by which it was measured.
        who: "naive", "imitate" for the first of a protection's strategies, or the name of another strategy.
        cell: what it came to.
    """

    attack: Part
    who: str
    cell: Cell


@dataclass(frozen=True)
class Nearest:
    """The rows nearest to an experiment: of its protection, and where updates are added up of such a sum.

    Args:
        scene: the table that they are in; None where none is there.
        lines: the rows, the nearest first.
        attackers: every attacker of these rows once, with the furthest that it came, by attack and who.
    """

    scene: MeasuredScene | None = None
    lines: tuple[Line, ...] = ()
    attackers: dict[tuple[str, str], Attacker] = field(default_factory=dict)

    def reached(self, attack: str, who: str) -> Cell | None:
        """How far this attacker came; None where it was not measured."""
        found = self.attackers.get((attack, who))
        return found.cell if found else None


def nearest(asked: Experiment, known: Catalog) -> Nearest:
    """The rows nearest to an experiment: same protection and strength, else the nearest strength, else none; of several pictures a sum."""
    scene = _scene(asked, known)
    if scene is None:
        return Nearest()
    lines = _lines(scene.lines, asked, known)
    found: dict[tuple[str, str], Attacker] = {}
    for line in lines:
        for attack, who, cell in _cells(line):
            before = found.get((attack, who))
            if before is None or reach(cell) > reach(before.cell):
                found[attack, who] = Attacker(Part(id=attack, fields=scene.recipe["attacks"].get(attack, {})), who, cell)
    return Nearest(scene, tuple(lines), found)


def _scene(asked: Experiment, known: Catalog) -> MeasuredScene | None:
    """The table of clients that train for some steps, of pictures of the same kind, or else the one of photographs."""
    found = scenes(known)
    trains = known.protocols.get(asked.protocol.id).trains_locally
    kinds = {_kind(picture) for picture in asked.pictures}
    for scene in found:
        same_steps = known.protocols.get(scene.recipe.get("protocol", Experiment().protocol.id)).trains_locally == trains
        same_kind = kinds == {KINDS.get(scene.recipe["data"])} or scene.recipe["data"] in {picture.source for picture in asked.pictures}
        if scene.lines and scene is not found[0] and same_steps and (trains or same_kind):
            return scene
    return found[0] if found else None


def _kind(picture: Picture) -> str:
    """The class of a picture in words; nothing where it is not known."""
    if picture.source == "upload":
        return GALLERY_CLASSES[picture.label] if picture.label is not None and picture.label < len(GALLERY_CLASSES) else ""
    try:
        return find("gallery", picture.id).class_name if picture.source == "gallery" else KINDS.get(picture.source, "")
    except PictureError:
        return ""


def _lines(lines: Sequence[Line], asked: Experiment, known: Catalog) -> list[Line]:
    """The row of the protection; of several pictures, that of a sum of several, and unless it has the same protection the other too.

    The gradient of a batch is a sum over its pictures, as an aggregate is one over phones: both are as hard to take apart.
    """
    played, ids = [line for line in lines if line.duels], [part.id for part in asked.defenses]
    alone = _of(asked.defenses, [line for line in played if line.clients == 1], known)
    several = asked.aggregation is not None or len(asked.pictures) > 1
    summed = _of(asked.defenses, [line for line in played if line.clients > 1], known) if several else None
    if summed and [part.id for part in summed.stack] == ids:
        return [summed]
    return [line for line in (alone, summed) if line]


def _of(stack: Sequence[Part], lines: Sequence[Line], known: Catalog) -> Line | None:
    ids = [part.id for part in stack]
    own = [line for line in lines if same_stack(line.stack, stack, known)]
    like = sorted((line for line in lines if [part.id for part in line.stack] == ids), key=lambda line: _apart(line.stack, stack, known))
    return next(iter([*own, *like, *(line for line in lines if not line.stack)]), None)


def _apart(ones: Sequence[Part], others: Sequence[Part], known: Catalog) -> float:
    """How far two strengths of the same protections are apart: the powers of e between their numbers, and 1 for each other word."""
    total = 0.0
    for one, other in zip(ones, others, strict=True):
        a, b = (with_defaults(part, known).fields for part in (one, other))
        for name in a:
            x, y = a[name], b.get(name)
            if isinstance(x, bool) or not isinstance(x, int | float) or not isinstance(y, int | float):
                total += float(x != y)
            else:
                total += abs(math.log((abs(x) + TINY) / (abs(y) + TINY)))
    return total


def _cells(line: Line) -> Iterator[tuple[str, str, Cell]]:
    """Attack, who attacks and how far, of a row; those whose knowledge changes nothing come as far as the naive one."""
    for attack, duel in line.duels.items():
        knowing = dict(zip([IMITATE, *list(duel.knowing)[1:]], duel.knowing.values(), strict=False))
        naive = duel.naive if duel.naive and "psnr" in duel.naive else None
        cells: dict[str, Cell | None] = {NAIVE: naive, **(knowing or {IMITATE: naive})}
        for who, cell in cells.items():
            if reached := cell if cell and "psnr" in cell else naive:
                yield attack, who, reached
