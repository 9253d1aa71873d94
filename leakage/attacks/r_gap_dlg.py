"""R-GAP, then DLG: the attack starts DLG's search from R-GAP's answer."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from leakage.attacks._polish import polished
from leakage.attacks.r_gap import RGap, distance
from leakage.engine.core import Attack, Observation, Snapshot, param


@dataclass(frozen=True, kw_only=True)
class RGapDLG(Attack):
    """L-BFGS on the squared gradient distance, started from R-GAP's picture; the picture with the smaller distance is the answer.

    Behind errors in the update the search ends where the gradient fits as well as the errors allow (`attacks/_polish.py`).
    The paper takes 8 % of DLG's usual 300 steps. Unlike the paper: if DLG's picture is further from the gradient, R-GAP's is the answer.
    Source: Zhu and Blaschko 2021, table 2.
    """

    title = "Solve layer by layer and go on guessing (R-GAP then DLG)"
    short = "R-GAP, then DLG"
    plain = "Works the picture out by equations, then polishes it by search."
    hint = "Where equations were almost enough, as with a noisy or rounded gradient, a few steps of search repair much."
    source = "https://arxiv.org/abs/2010.07733"
    reads_labels = True
    way = "Solve layer by layer; then guess, compare, improve."
    evaluations_per_step = 10
    loss_name = "relative gradient distance"

    steps: int = param(24, 1, 2000, "L-BFGS steps of DLG, 20 evaluations of the gradient at most in each.")

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        first: Snapshot | None = None
        for first in RGap().run(seen, rng):
            yield replace(first, note={**first.note, "way": "R-GAP"})
        assert first is not None
        best = replace(first, note={name: value for name, value in first.note.items() if name != "event"} | {"way": "R-GAP"})
        for moment in polished(seen, first, rng, steps=self.steps, line_search=None, smooth=False):
            near = replace(moment, step=first.step + moment.step, loss=distance(seen, moment.x, first.y), note={**best.note, "way": "DLG"})
            yield near
            best = near if near.loss < best.loss else best
        if seen.knowledge.errors != {} and near.loss < first.loss:  # the nearest fits errors too
            best = near
        yield replace(best, step=near.step, views={"R-GAP": first.x, "DLG": near.x})
