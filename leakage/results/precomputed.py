"""The precomputed results in assets/: every protection against every attacker, at several strengths, and its accuracy cost."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean
from typing import Any, NamedTuple

from leakage.results.accuracy_cost import RECIPE, difference, privacy_of, same_model, table, with_defaults
from leakage.results.best_of_each import best_of_each
from leakage.results.differences import protection, sentence_case
from leakage.runs.event_parts import TrainingPrivacy
from leakage.settings import ROOT
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Part
from leakage.spec.words import NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT

ASSETS = ROOT / "assets"
Cell = dict[str, Any]  # the results of an attacker against a protection: see benchmarks/published/matrix.py
SPREAD = 2.0  # dB, the spread between seeds: the same search for the same picture ended at 19.7, 17.1 and 17.2
SHOWING = {"recognizable": RECOGNIZABLE, "singled_out": SINGLED_OUT, "partly": PARTLY}  # count in a cell -> verdict, worst first


@dataclass(frozen=True)
class Duel:
    """The precomputed results of one attack against one protection: of the naive attacker and of the adaptive attackers."""

    naive: Cell | None
    """The result of the naive attacker; None if it was not measured."""
    knowing: dict[str, Cell]
    """The results of adaptive attackers, by strategy.

    If the attacker's knowledge changes nothing, the cell has the reason under "same"; if the attacker was not run, under "absent".
    """

    @property
    def best(self) -> Cell | None:
        """The result of the strongest adaptive attacker, by `reach`; None if none was run, since all do the same or were left out."""
        return max((cell for cell in self.knowing.values() if "psnr" in cell), key=reach, default=None)

    @property
    def only_naive(self) -> bool:
        """Whether the protection hides everything from the naive attacker but not from the strongest adaptive attacker."""
        return bool(self.naive and "psnr" in self.naive and self.best and not leak_count(self.naive) and leak_count(self.best))

    @property
    def backfires(self) -> bool:
        """Whether knowledge of the protection makes the attacker worse.

        Even the strongest adaptive attacker then ends further below the naive attacker than another seed may, and shows no more.
        """
        if self.naive is None or "psnr" not in self.naive or self.best is None:
            return False
        return self.best["psnr"] < self.naive["psnr"] - SPREAD and reach(self.best).shown_fractions <= reach(self.naive).shown_fractions


@dataclass(frozen=True)
class Line:
    """A row of a precomputed table: the results of every attack against one protection."""

    title: str
    stack: tuple[Part, ...]
    """The protections; empty for none."""
    clients: int
    """The number of clients, each with one picture, in the sum that the server sees; 1: a single client."""
    duels: dict[str, Duel]
    """The results by id of the attack."""
    refused: str = ""
    """Why the protection could not be run; empty if it was."""


@dataclass(frozen=True)
class MeasuredScene:
    """A table of protections and attackers; all its cells share the model, the protocol and the source of the pictures."""

    title: str
    about: str
    """These shared settings in words; empty: a gradient of an untrained LeNet, with CIFAR-10."""
    recipe: dict[str, Any]
    """The settings as data.

    They are data, pictures, seeds, attacks (fields by id), watched (rounds that are combined; 1: none), and, if it is not a single
    gradient, the id of the protocol.
    """
    left_out: dict[str, str]
    """For each attack that a reader might miss, the reason why it is not in the table."""
    lines: list[Line]


@cache
def load_results(name: str) -> dict[str, Any] | None:
    """Return what a benchmark wrote to assets/NAME.json; None if the file is missing."""
    file = ASSETS / f"{name}.json"
    return dict(json.loads(file.read_text())) if file.exists() else None


def matrix(known: Catalog) -> list[Line]:
    """Return the rows of the main table in the order in which they were measured: first the row without protection."""
    return lines_of((load_results("matrix") or {"cells": []})["cells"], known)


def scenes(known: Catalog) -> list[MeasuredScene]:
    """Return the main table, if it exists, and the tables for attackers that need more than a gradient of a photograph."""
    photograph = [MeasuredScene("A photograph", "", main["recipe"], {}, matrix(known))] if (main := load_results("matrix")) else []
    others = (load_results("matrix_scenes") or {"scenes": []})["scenes"]
    return photograph + [
        MeasuredScene(scene["title"], scene["about"], scene["recipe"], scene["left_out"], lines_of(scene["cells"], known))
        for scene in others
    ]


def lines_of(cells: Sequence[Cell], known: Catalog) -> list[Line]:
    """Group cells into rows, a row for each protection and number of clients, in the order of the cells."""
    groups: dict[tuple[int, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.get("phones", 1), json.dumps(cell["defense"], sort_keys=True)), []).append(cell)
    peers = [part for group in groups.values() for part in _parts(group[0]["defense"])]
    return [_line(_parts(group[0]["defense"]), clients, group, peers, known) for (clients, _), group in groups.items()]


def _parts(defense: dict[str, Any] | None) -> tuple[Part, ...]:
    return (Part(**defense),) if defense else ()


def _line(stack: tuple[Part, ...], clients: int, cells: list[Cell], peers: Sequence[Part], known: Catalog) -> Line:
    duels = {}
    for attack in dict.fromkeys(cell["attack"] for cell in cells):
        attackers = {cell["who"]: cell for cell in cells if cell["attack"] == attack}
        duels[attack] = Duel(attackers.pop("naive", None), attackers)
    refused = "" if any("psnr" in cell for cell in cells) else next((cell["refused"] for cell in cells if "refused" in cell), "")
    title = sentence_case(protection(stack, peers, known))
    return Line(f"{title}, {clients} phones added up" if clients > 1 else title, stack, clients, duels, refused)


class Reach(NamedTuple):
    """How much an attacker showed, as a key to sort by: a number decides only between attackers that are equal in all numbers before it."""

    shown_fractions: tuple[float, ...]
    """The fractions of runs in which the picture was recognizable, singled out and partly shown."""
    psnr: float
    """The mean PSNR of all runs, in dB."""


UNMEASURED = Reach(shown_fractions=(-1.0,), psnr=0.0)  # below every attacker that was measured


def reach(cell: Cell) -> Reach:
    """Return how much the attacker of a cell showed, as a key to sort by."""
    return Reach(tuple(cell[name] / cell["runs"] for name in SHOWING), cell["psnr"])


def leak_count(cell: Cell) -> int:
    """Return in how many runs of a cell the picture was recognizable or singled out."""
    return int(cell["recognizable"] + cell["singled_out"])


def seen_words(cell: Cell) -> str:
    """Describe in how many runs of a cell the picture was shown, and how well."""
    counts = [f"{cell[name]} of {cell['runs']} {word}" for name, word in SHOWING.items() if cell[name]]
    return ", ".join(counts) or f"{NOT_SHOWN} in {cell['runs']} runs"


@dataclass(frozen=True)
class AccuracyCost:
    """A row of the accuracy table, and its drop of accuracy from the row without protection."""

    title: str
    stack: tuple[Part, ...]
    model: str
    """The fields in which the model differs from that of the recipe, in words; empty if it is the same."""
    rounds: int
    pictures: int
    server_rate: float
    accuracies: tuple[float, ...]
    """The fraction of test pictures that are classified correctly, for each seed."""
    accuracy_drop: float
    """The difference of the mean accuracies."""
    difference: str
    """That difference in words, which say whether it is more than seeds alone may make."""
    privacy: TrainingPrivacy | None
    """The epsilons of the training; None if the protections promise none."""

    @property
    def accuracy(self) -> float:
        """The mean accuracy over seeds."""
        return mean(self.accuracies)


def accuracy_costs(known: Catalog) -> list[AccuracyCost]:
    """Return every training of the table for which a training without protection has the same model, rounds, pictures and batch."""
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
    """Return whether leakage and accuracy were measured on the same model and data, so that one plot may show both."""
    leaks, costs = (load_results("matrix") or {}).get("recipe"), (table() or {}).get("recipe")
    return leaks is not None and costs is not None and leaks["data"] == costs["data"] and same_model(Part(id=leaks["model"]), known)


def costs_with_leakage(known: Catalog, attack: str) -> Iterator[tuple[AccuracyCost, Cell]]:
    """Yield the accuracy cost and the leakage of every protection for which both were measured.

    Args:
        known: the plug-ins.
        attack: the id of the attack that measured the leakage.

    Yields:
        The training with the smallest accuracy drop, and the cell with the highest PSNR.
    """
    lines = {_key(line.stack, known): line for line in matrix(known) if line.clients == 1}
    costs = ((_key(cost.stack, known), cost) for cost in accuracy_costs(known) if not cost.model)
    cheapest = best_of_each(((key, cost) for key, cost in costs if key in lines), lambda cost: -cost.accuracy_drop)
    for key, cost in cheapest.items():
        duel = lines[key].duels.get(attack)
        cells = [cell for cell in (duel.naive, duel.best) if cell and "psnr" in cell] if duel else []
        if cells:
            yield cost, max(cells, key=lambda cell: cell["psnr"])


def same_stack(first: Sequence[Part], second: Sequence[Part], known: Catalog) -> bool:
    """Return whether these are the same protections of the same strength, in the same order."""
    return _key(first, known) == _key(second, known)


def _key(stack: Sequence[Part], known: Catalog) -> str:
    return json.dumps([with_defaults(part, known).model_dump() for part in stack], sort_keys=True)
