"""What was measured beforehand and lies in assets/: every protection against every attacker, from which strength on, and what it costs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean
from typing import Any, NamedTuple

from leakage.results.accuracy_cost import RECIPE, difference, privacy_of, same_model, table, with_defaults
from leakage.results.differences import protection, sentence_case
from leakage.runs.event_parts import TrainingPrivacy
from leakage.settings import ROOT
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Part
from leakage.spec.words import NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT

ASSETS = ROOT / "assets"
Cell = dict[str, Any]  # one attacker of one protection: see benchmarks/published/matrix.py
SPREAD = 2.0  # dB that seeds alone make: the same search for the same picture ended at 19.7, 17.1 and 17.2
SHOWING = {"recognizable": RECOGNIZABLE, "singled_out": SINGLED_OUT, "partly": PARTLY}  # counts of a cell, worst first


@dataclass(frozen=True)
class Duel:
    """One protection against one attack.

    naive      what the attacker gets who does not know of it
    knowing    what those get who do, by what they do about it; those whose knowledge changes nothing say why under "same",
               and those who were not played under "absent"
    """

    naive: Cell | None
    knowing: dict[str, Cell]

    @property
    def best(self) -> Cell | None:
        """The strongest of those who know of it, by `reach`; None where all do the same."""
        return max((cell for cell in self.knowing.values() if "psnr" in cell), key=reach, default=None)

    @property
    def only_naive(self) -> bool:
        """Whether it hides everything from the naive attacker and not from one who knows."""
        return bool(self.naive and "psnr" in self.naive and self.best and not leaking(self.naive) and leaking(self.best))

    @property
    def backfires(self) -> bool:
        """Whether even the strongest of those who know end further below the naive attacker than another seed may, and show no more."""
        if self.naive is None or "psnr" not in self.naive or self.best is None:
            return False
        return self.best["psnr"] < self.naive["psnr"] - SPREAD and reach(self.best)[:-1] <= reach(self.naive)[:-1]


@dataclass(frozen=True)
class Line:
    """One protection, in words, against every attack by id; `refused`: why it could not be played.

    clients  whose updates, with one picture each, the server sees only added up; 1: one by itself
    """

    title: str
    stack: tuple[Part, ...]
    clients: int
    duels: dict[str, Duel]
    refused: str = ""


@dataclass(frozen=True)
class MeasuredScene:
    """One table of protections and attackers: all its cells share the model, what is sent, and where the pictures are from.

    about     that, in words; empty: a gradient of an untrained LeNet, CIFAR-10
    recipe    data, pictures, seeds, attacks (their fields by id), watched (rounds that are put together; 1: nobody does), and protocol
              (its id), where that is another than one gradient
    left_out  attacks that might be expected in it -> why they are not
    """

    title: str
    about: str
    recipe: dict[str, Any]
    left_out: dict[str, str]
    lines: list[Line]


@cache
def load_results(name: str) -> dict[str, Any] | None:
    """What a benchmark left in assets/NAME.json."""
    file = ASSETS / f"{name}.json"
    return dict(json.loads(file.read_text())) if file.exists() else None


def matrix(known: Catalog) -> list[Line]:
    """The protections in the order in which they were measured, none of them first: of the table that all pages go by."""
    return lines_of((load_results("matrix") or {"cells": []})["cells"], known)


def scenes(known: Catalog) -> list[MeasuredScene]:
    """That table, if it is there, and those of attackers who need more than a gradient of a photograph."""
    found = [MeasuredScene("A photograph", "", main["recipe"], {}, matrix(known))] if (main := load_results("matrix")) else []
    others = (load_results("matrix_scenes") or {"scenes": []})["scenes"]
    return found + [
        MeasuredScene(one["title"], one["about"], one["recipe"], one["left_out"], lines_of(one["cells"], known)) for one in others
    ]


def lines_of(cells: Sequence[Cell], known: Catalog) -> list[Line]:
    """The protections of some cells, in words, in their order."""
    groups: dict[tuple[int, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.get("phones", 1), json.dumps(cell["defense"], sort_keys=True)), []).append(cell)
    peers = [part for own in groups.values() for part in _parts(own[0]["defense"])]
    return [_line(_parts(own[0]["defense"]), clients, own, peers, known) for (clients, _), own in groups.items()]


def _parts(defense: dict[str, Any] | None) -> tuple[Part, ...]:
    return (Part(**defense),) if defense else ()


def _line(stack: tuple[Part, ...], clients: int, cells: list[Cell], peers: Sequence[Part], known: Catalog) -> Line:
    duels = {}
    for attack in dict.fromkeys(cell["attack"] for cell in cells):
        mine = {cell["who"]: cell for cell in cells if cell["attack"] == attack}
        duels[attack] = Duel(mine.get("naive"), {who: cell for who, cell in mine.items() if who != "naive"})
    refused = "" if any("psnr" in cell for cell in cells) else next((cell["refused"] for cell in cells if "refused" in cell), "")
    title = sentence_case(protection(stack, peers, known))
    return Line(f"{title}, {clients} phones added up" if clients > 1 else title, stack, clients, duels, refused)


class Reach(NamedTuple):
    """How far one attacker came, as a key to sort by: each number decides only between attackers that are equal in all numbers before it.

    recognizable  the fraction of runs in which the picture was recognizable
    singled_out   the fraction of runs in which the picture was singled out
    partly        the fraction of runs in which the picture was partly shown
    psnr          the mean PSNR of all runs, in dB
    """

    recognizable: float
    singled_out: float
    partly: float
    psnr: float


UNMEASURED = Reach(recognizable=-1.0, singled_out=0.0, partly=0.0, psnr=0.0)  # below every attacker that was measured


def reach(cell: Cell) -> Reach:
    """Return how far the attacker of a cell came."""
    return Reach(**{name: cell[name] / cell["runs"] for name in SHOWING}, psnr=cell["psnr"])


def leaking(cell: Cell) -> int:
    """In how many runs of one attacker the picture was recognizable or singled out."""
    return int(cell["recognizable"] + cell["singled_out"])


def seen_words(cell: Cell) -> str:
    """Of how many runs of one attacker what could be seen; where nothing, that this attack did not show it."""
    counts = [f"{cell[name]} of {cell['runs']} {word}" for name, word in SHOWING.items() if cell[name]]
    return ", ".join(counts) or f"{NOT_SHOWN} in {cell['runs']} runs"


@dataclass(frozen=True)
class AccuracyCost:
    """What a training behind protections came to, beside one without.

    model          in what it is not the model of the recipe
    accuracies     the share of test pictures named right, one for each seed
    accuracy_drop  of the means; `difference` says in words whether that is more than seeds make
    privacy        epsilon of the training; None where no protection promises any
    """

    title: str
    stack: tuple[Part, ...]
    model: str
    rounds: int
    pictures: int
    server_rate: float
    accuracies: tuple[float, ...]
    accuracy_drop: float
    difference: str
    privacy: TrainingPrivacy | None

    @property
    def accuracy(self) -> float:
        """The mean over seeds."""
        return mean(self.accuracies)


def accuracy_costs(known: Catalog) -> list[AccuracyCost]:
    """Every training of the table, each beside the one without protection that had as many rounds and pictures."""
    kept = table() or {"rows": []}
    rows = [row for row in kept["rows"] if row["accuracy"]]
    peers = [Part(**part) for row in rows for part in row["defenses"]]
    usual = kept["recipe"]["model"]["fields"] if rows else {}
    plain = {_recipe(row): row["accuracy"] for row in rows if not row["defenses"]}
    return [
        AccuracyCost(
            title=sentence_case(protection(stack := tuple(Part(**part) for part in row["defenses"]), peers, known)),
            stack=stack,
            model=", ".join(f"{name} {value}" for name, value in row["model"]["fields"].items() if value != usual[name]),
            rounds=row["rounds"],
            pictures=row["pictures"],
            server_rate=row["server_rate"],
            accuracies=tuple(row["accuracy"]),
            accuracy_drop=mean(plain[_recipe(row)]) - mean(row["accuracy"]),
            difference=difference(row["accuracy"], plain[_recipe(row)]) if row["defenses"] else "",
            privacy=privacy_of(row),
        )
        for row in rows
        if _recipe(row) in plain
    ]


def _recipe(row: dict[str, Any]) -> str:
    return json.dumps([row[name] for name in RECIPE], sort_keys=True)


def one_scene(known: Catalog) -> bool:
    """Whether leakage and accuracy were measured of the same model with pictures of the same data: one plot may show both."""
    leaks, costs = (load_results("matrix") or {}).get("recipe"), (table() or {}).get("recipe")
    return leaks is not None and costs is not None and leaks["data"] == costs["data"] and same_model(Part(id=leaks["model"]), known)


def both(known: Catalog, attack: str) -> Iterator[tuple[AccuracyCost, Cell]]:
    """Every protection whose cost and leakage were both measured: its cheapest training, and the strongest attacker's cell."""
    lines = {_key(line.stack, known): line for line in matrix(known) if line.clients == 1}
    cheapest: dict[str, AccuracyCost] = {}
    for cost in accuracy_costs(known):
        key = _key(cost.stack, known)
        if key in lines and not cost.model and (key not in cheapest or cost.accuracy_drop < cheapest[key].accuracy_drop):
            cheapest[key] = cost
    for key, cost in cheapest.items():
        duel = lines[key].duels.get(attack)
        cells = [cell for cell in (duel.naive, duel.best) if cell and "psnr" in cell] if duel else []
        if cells:
            yield cost, max(cells, key=lambda cell: cell["psnr"])


def same_stack(one: Sequence[Part], other: Sequence[Part], known: Catalog) -> bool:
    """Whether these are the same protections of the same strength, in the same order."""
    return _key(one, known) == _key(other, known)


def _key(stack: Sequence[Part], known: Catalog) -> str:
    return json.dumps([with_defaults(part, known).model_dump() for part in stack], sort_keys=True)
