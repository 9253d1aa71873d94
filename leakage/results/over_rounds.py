"""What many rounds give away that one does not, as precomputed in assets/rounds.json: PSNR and epsilon on one axis of rounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leakage.results.accuracy_cost import epsilon_of_json, epsilon_words, with_defaults
from leakage.results.differences import protection, sentence_case
from leakage.results.precomputed import Cell, load_results, seen_words
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Part
from leakage.spec.threat_model import counted

RESULTS = "rounds"


@dataclass(frozen=True)
class Curve:
    """One protection against one strategy of an attacker who watched a phone for longer and longer.

    cells     what it came to, by number of rounds: see benchmarks/published/rounds.py
    """

    title: str
    defense: Part
    strategy: str
    cells: tuple[Cell, ...]

    @property
    def epsilons(self) -> list[float | None]:
        """Of so many uploads; infinite where it bounds nothing, None where no protection promises any."""
        return [epsilon_of_json(cell["epsilon"]["value"]) if cell["epsilon"] else None for cell in self.cells]

    @property
    def best(self) -> float:
        """PSNR after the most rounds."""
        return float(self.cells[-1]["psnr"])

    def sentence(self) -> str:
        """What the first and the last of its cells came to, and epsilon beside it."""
        told = [
            f"after {counted(cell['rounds'], 'round')} {cell['psnr']:.1f} dB, {seen_words(cell)}"
            for cell in (self.cells[0], self.cells[-1])
        ]
        return f"{sentence_case('; '.join(told))}. {self._promise()}"

    def _promise(self) -> str:
        first, last = self.epsilons[0], self.epsilons[-1]
        if first is None or last is None:
            return "It promises no epsilon."
        if math.isinf(first):
            return "Its epsilon is above 200 from the first round on: it bounds nothing."
        return f"Its epsilon says so: {epsilon_words(first, 1)} after the first, {epsilon_words(last, 1)} in the end" + (
            ", above 200." if math.isinf(last) else "."
        )


def curves(known: Catalog) -> list[Curve]:
    """Every protection against every strategy, in the order in which they were measured."""
    cells = [cell for cell in (load_results(RESULTS) or {"cells": []})["cells"] if known.defenses.find(cell["defense"]["id"])]
    peers = [Part(**cell["defense"]) for cell in cells]
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell, part in zip(cells, peers, strict=True):
        groups.setdefault((part.model_dump_json(), cell["who"]), []).append(cell)
    return [
        Curve(
            title=sentence_case(protection([part := Part(**own[0]["defense"])], peers, known)),
            defense=part,
            strategy=own[0]["who"],
            cells=tuple(sorted(own, key=lambda cell: int(cell["rounds"]))),
        )
        for own in groups.values()
    ]


def best_of(defenses: Sequence[Part], known: Catalog) -> Curve | None:
    """The strongest strategy against this protection, alone and of this strength; None where that was not measured."""
    wanted = [with_defaults(part, known) for part in defenses]
    return max((one for one in curves(known) if [with_defaults(one.defense, known)] == wanted), key=lambda one: one.best, default=None)
