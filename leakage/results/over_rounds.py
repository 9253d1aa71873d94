"""The leakage of many rounds beside that of a single round, as precomputed in assets/rounds.json: PSNR and epsilon by number of rounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leakage.results.accuracy_cost import epsilon_of_json, epsilon_words, with_defaults
from leakage.results.differences import protection, sentence_case
from leakage.results.precomputed import Cell, load_results, seen_words
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Part
from leakage.spec.words import counted

RESULTS = "rounds"


@dataclass(frozen=True)
class Curve:
    """The precomputed results of a protection against one strategy of an attacker, over the number of rounds that the attacker watched."""

    title: str
    defense: Part
    strategy: str
    cells: tuple[Cell, ...]
    """The results by number of rounds, as benchmarks/published/rounds.py writes them."""

    @property
    def epsilons(self) -> list[float | None]:
        """The epsilon after as many updates as each cell of `cells` has rounds: infinite if it bounds nothing, None if none is promised."""
        return [epsilon_of_json(cell["epsilon"]["value"]) if cell["epsilon"] else None for cell in self.cells]

    @property
    def best(self) -> float:
        """The PSNR after the most rounds, in dB."""
        return float(self.cells[-1]["psnr"])

    def sentence(self) -> str:
        """Describe the PSNR and the verdict after the fewest and after the most rounds, and epsilon there."""
        ends = [
            f"after {counted(cell['rounds'], 'round')} {cell['psnr']:.1f} dB, {seen_words(cell)}"
            for cell in (self.cells[0], self.cells[-1])
        ]
        return f"{sentence_case('; '.join(ends))}. {self._promise()}"

    def _promise(self) -> str:
        first, last = self.epsilons[0], self.epsilons[-1]
        if first is None or last is None:
            return "The protection promises no privacy budget (epsilon)."
        if math.isinf(first):
            return "Its privacy budget (epsilon) is above 200 from the first round on: it bounds nothing."
        return f"Its privacy budget (epsilon) says so: {epsilon_words(first, 1)} after the first, {epsilon_words(last, 1)} in the end" + (
            ", above 200." if math.isinf(last) else "."
        )


def curves(known: Catalog) -> list[Curve]:
    """Return a curve for every protection and strategy, in the order in which they were measured."""
    cells = [cell for cell in (load_results(RESULTS) or {"cells": []})["cells"] if known.defenses.find(cell["defense"]["id"])]
    peers = [Part(**cell["defense"]) for cell in cells]
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell, part in zip(cells, peers, strict=True):
        groups.setdefault((part.model_dump_json(), cell["who"]), []).append(cell)
    return [
        Curve(
            title=sentence_case(protection([part := Part(**group[0]["defense"])], peers, known)),
            defense=part,
            strategy=group[0]["who"],
            cells=tuple(sorted(group, key=lambda cell: int(cell["rounds"]))),
        )
        for group in groups.values()
    ]


def best_of(defenses: Sequence[Part], known: Catalog) -> Curve | None:
    """Return the curve of the strongest strategy against a single protection of this strength; None if it was not measured."""
    wanted = [with_defaults(part, known) for part in defenses]
    measured = [curve for curve in curves(known) if [with_defaults(curve.defense, known)] == wanted]
    return max(measured, key=lambda curve: curve.best, default=None)
