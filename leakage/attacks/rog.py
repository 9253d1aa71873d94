"""ROG: the attack searches for a small picture and enlarges it; with fewer unknowns than pixels it resists noise and missing numbers."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.attacks._adam import Descent, replays
from leakage.attacks._labels import labels_of
from leakage.attacks._objective import Unknowns
from leakage.engine.core import Attack, Observation, Snapshot, choice, param
from leakage.engine.discrepancy import goal_of
from leakage.engine.labels import rule_field


@dataclass(frozen=True, kw_only=True)
class ROG(Attack):
    """min over z (B, C, H / factor, W / factor) in [0, 1] of D(g(up(z), y), g*), where up is bicubic interpolation to (H, W).

    g(x, y) is the gradient of pictures x with labels y, g* the received gradient, D their `distance`. Adam has a cosine schedule. z has
    factor^2 times fewer unknowns than pixels, so quantised, pruned and noisy updates still determine it. Fine detail is not reconstructed.
    Unlike the paper: no network sharpens the answer afterwards, and the factor is 2 by default, as the pictures here are small.
    Source: Yue et al. 2023, section 4.1.
    """

    title = "Guess and compare a smaller picture (ROG)"
    short = "ROG"
    plain = "Searches a smaller picture, enlarged for the comparison: coarse, but hard to disturb."
    hint = "Try it where the update was rounded, pruned or made noisy. Fewer unknowns need fewer numbers."
    source = "https://arxiv.org/abs/2206.04055"
    reads_labels = True
    loss_name = "gradient distance"
    presets = {
        "paper (Yue et al. 2023)": {"factor": 4, "steps": 100, "step_size": 0.05, "distance": "squared"},
        "ours: half the side, 300 steps": {"factor": 2, "steps": 300, "step_size": 0.05, "distance": "cosine"},
    }

    factor: int = param(2, 1, 16, "How many times smaller the sides of the searched picture are.")
    steps: int = param(300, 1, 10000, "Optimiser steps.")
    step_size: float = param(0.05, 0.0001, 10, "How far one step moves a pixel of the small picture at first.")
    distance: str = choice("cosine", ("cosine", "squared"), "How two gradients are compared.")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, self.label_rule)
        goal = goal_of(seen, self.distance)
        channels, height, width = seen.batch.image_shape
        small = (seen.batch.size, channels, -(-height // self.factor), -(-width // self.factor))
        z = torch.rand((1, *small), generator=rng).to(seen.device, seen.dtype)
        unknowns = Unknowns(lambda z: enlarged(z, (height, width)), lambda z: z.clamp(0, 1))
        descent = Descent(self.steps, self.step_size, "cosine", signed=False, unknowns=unknowns, floor=goal.floor)
        note |= goal.note
        yield from descent.minimize(seen, z, labels, lambda x: goal.distance(replays(seen, x, labels)), None, note=note, rng=rng)


def enlarged(z: Tensor, sides: tuple[int, int]) -> Tensor:
    """Enlarge pictures z (S, B, C, h, w) to sides (H, W) by bicubic interpolation."""
    x = F.interpolate(z.flatten(0, 1), sides, mode="bicubic")
    return x.view(*z.shape[:2], *x.shape[1:])
