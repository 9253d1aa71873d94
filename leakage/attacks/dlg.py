"""Deep Leakage from Gradients: pictures and labels together."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from leakage.attacks._lbfgs import descend
from leakage.engine.core import Attack, Observation, Snapshot, param


@dataclass(frozen=True, kw_only=True)
class DLG(Attack):
    """argmin over x, y of ||g(x, softmax(y)) - g*||^2 by L-BFGS, from x ~ N(0, 1), y ~ N(0, 1), with soft-label cross-entropy.

    g(x, p) is the gradient of pictures x with label probabilities p, g* the received gradient.
    If the experiment grants the labels, only x is searched.
    Unlike the paper: algorithm 1 prints plain gradient descent on x and y; this is L-BFGS, as in the authors' experiments and code. Another
    start follows a start that sticks or diverges, and a start that has settled ends early.
    Source: Zhu et al. 2019, algorithm 1, and their code.
    """

    title = "Guess and compare (DLG)"
    short = "DLG"
    plain = "Starts from noise and changes picture and label together until their gradient equals the one received."
    hint = "Needs smooth layers and few pictures. Now and then a start gets stuck; then it tries another."
    evaluations_per_step = 10
    loss_name = "squared gradient distance"
    source = "https://arxiv.org/abs/1906.08935"

    steps: int = param(300, 1, 2000, "L-BFGS steps per start, 20 evaluations of the gradient at most in each.")
    restarts: int = param(8, 1, 16, "How many random starts to try at most, until one succeeds.")

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        rule = "searched together with the picture" if seen.granted.labels is None else "granted"
        yield from descend(seen, rng, labels=seen.granted.labels, note={"label rule": rule}, steps=self.steps, restarts=self.restarts)
