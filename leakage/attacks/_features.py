"""The search of Inverting Gradients with features in place of gradients: pictures that have given features."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.attacks._adam import Descent
from leakage.engine.computation import reached
from leakage.engine.core import Observation, Snapshot
from leakage.engine.matching import Smoothness, start

STEP_SIZE, SMOOTH = 0.1, 0.02  # Adam's step, and the weight of total variation


def pictures_of(
    seen: Observation, number: int, features: Tensor, labels: Tensor, *, steps: int, rng: torch.Generator
) -> Iterator[Snapshot]:
    """Search for pictures (B, C, H, W) with given features by Adam on signs; if P < B, the pictures from P on are not constrained.

    The objective is mean_i (1 - cos(h(x_i), h_i)) + SMOOTH * total variation.

    Args:
        seen: what the attacker observed.
        number: the index, in the traced computation of the model (`Computation`), of the value that is compared with the features.
        features: the given features h, (P, n).
        labels: the labels (B,) of every Snapshot.
        steps: the number of steps of Adam.
        rng: draws the start.

    Yields:
        Snapshots; the last one is the answer.
    """
    wanted = features.to(seen.device, seen.dtype)

    def matched(x: Tensor) -> Tensor:
        h = reached(seen.model, number, x.flatten(0, 1)[: len(wanted)])
        return (1 - F.cosine_similarity(h, wanted)).mean().view(1)

    z = start("normal", seen, rng).unsqueeze(0)  # (1, B, C, H, W)
    descent = Descent(steps=steps, step_size=STEP_SIZE)
    yield from descent.minimize(seen, z, labels, matched, Smoothness(SMOOTH), note={}, rng=rng)
