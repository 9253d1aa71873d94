"""Improved DLG (iDLG): the attack reads the label from the gradient exactly, then searches for the picture."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from leakage.attacks._labels import labels_of
from leakage.attacks._lbfgs import descend
from leakage.engine.core import Attack, Observation, Snapshot, param
from leakage.engine.labels import rule_field


@dataclass(frozen=True, kw_only=True)
class IDLG(Attack):
    """The label is read from the last layer's gradient (the only negative row), then argmin over x of ||g(x, y) - g*||^2 by L-BFGS.

    g(x, y) is the gradient of pictures x with labels y, g* the received gradient.
    Unlike the paper: another start follows a start that sticks or diverges; batches use label counts (`engine/labels.py`).
    Source: Zhao et al. 2020, section 3.
    """

    title = "Guess and compare (iDLG)"
    short = "iDLG"
    plain = "First reads the label straight from the gradient, then changes a noisy picture until its gradient equals the one received."
    hint = "The label of one picture stands in the last layer. Faster and steadier than DLG."
    evaluations_per_step = 10
    loss_name = "squared gradient distance"
    source = "https://arxiv.org/abs/2001.02610"
    reads_labels = True
    strongest = {"steps": 100, "restarts": 3}
    fits = {"pictures": (1, 2, 3, 4)}

    steps: int = param(300, 1, 2000, "L-BFGS steps per start, 20 evaluations of the gradient at most in each.")
    restarts: int = param(8, 1, 16, "How many random starts to try at most, until one succeeds.")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, self.label_rule)
        yield from descend(seen, rng, labels=labels, note=note, steps=self.steps, restarts=self.restarts)
