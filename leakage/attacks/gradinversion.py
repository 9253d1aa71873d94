"""GradInversion: several guesses (seeds) that agree with each other, with the gradient, and with BatchNorm's statistics."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.attacks._adam import Descent
from leakage.attacks._examples import with_examples
from leakage.attacks._labels import labels_of
from leakage.attacks._registration import registered_mean
from leakage.engine.core import Attack, Observation, Snapshot, choice, flag, param
from leakage.engine.discrepancy import goal_of
from leakage.engine.labels import rule_field
from leakage.engine.matching import isotropic_variation, start, to_pixels
from leakage.engine.statistics import batch_statistics

FIRST = 10.0  # the first BatchNorm layer counts so many times as much


@dataclass(frozen=True, kw_only=True)
class GradInversion(Attack):
    """argmin over x_1 .. x_S of D(g(x_s, y), g*) + tv TV(x_s) + l2 ||x_s|| + bn R_bn(x_s) + group ||x_s - mean of all||^2, by Adam.

    x_s are S guesses (seeds) of the batch, g(x, y) is the gradient of pictures x with labels y, g* the received gradient.
    R_bn = sum over BatchNorm layers of ||mean_l(x) - mean_l|| + ||var_l(x) - var_l||, with the mean and the biased variance of the layer's
    input; the first layer counts ten times. The granted statistics are an assumption: none, those stored in the model, or exactly those
    of the private batch. TV is isotropic. Noise of 0.01 times the step size is added to the gradients (Langevin); the step size has a
    cosine schedule. With `reach` > 0 all seeds are shifted by at most so many pixels to match a seed before it is compared with their mean.
    Unlike the paper: D is the cosine distance (D = squared is offered), labels come from the rules of `engine/labels.py`, seeds are
    compared pixel by pixel unless `reach` says otherwise, and then registered by shifts alone, in place of RANSAC-flow.
    Source: Yin et al. 2021, equations 1 to 12; defaults of the package breaching; cosine as Huang et al. 2021.
    """

    title = "Guess and compare a whole batch (GradInversion)"
    short = "GradInversion"
    plain = "Searches several pictures at once that must agree with the gradient, each other and the averages inside the network."
    hint = "Made for batches. Grant it BatchNorm's exact statistics and see how much that gives away; then take them back."
    source = "https://arxiv.org/abs/2104.07586"
    reads_labels = True
    strongest = {"steps": 1500}
    fits = {"pictures": tuple(range(2, 129))}
    loss_name = "gradient distance"
    presets = {"Registered seeds (Yin et al. 2021)": {"starts": 4, "reach": 4}}
    evaluations_per_step = 1.3

    steps: int = param(2000, 1, 24000, "Optimiser steps.")
    step_size: float = param(0.1, 0.0001, 10, "How far one step moves a pixel at first, in the model's normalised units.")
    starts: int = param(2, 1, 16, "How many pictures are searched at once (seeds).")
    tv_weight: float = param(0.05, 0, 10, "How strongly smooth pictures are preferred (weight of the total variation).")
    l2_weight: float = param(0.000001, 0, 1, "How strongly small pixel values are preferred.")
    bn_weight: float = param(0.1, 0, 10, "How strongly the granted BatchNorm statistics are matched; without them it does nothing.")
    group_weight: float = param(0.01, 0, 10, "How strongly the seeds are drawn towards their mean.")
    reach: int = param(0, 0, 32, "By how many pixels at most seeds are shifted onto each other before they are compared (registration).")
    noise: float = param(0.01, 0, 1, "Random change of every pixel, as a fraction of the step size, against getting stuck.")
    signed: bool = flag(True, "Use only the sign of each pixel's gradient.")
    distance: str = choice("cosine", ("cosine", "squared"), "How two gradients are compared.")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, self.label_rule)
        z = torch.stack([start("normal", seen, rng) for _ in range(self.starts)])  # (S, B, C, H, W)
        z, begin_note = with_examples(seen, z, labels)
        goal = goal_of(seen, self.distance)
        descent = Descent(
            steps=self.steps,
            step_size=self.step_size,
            schedule="cosine",
            signed=self.signed,
            jitter=self.noise,
            floor=goal.floor,
        )
        note |= begin_note | goal.note
        note["BatchNorm statistics"] = "used" if seen.granted.statistics and self.bn_weight else "not used"
        yield from descent.run(seen, z, labels, goal.distance, self._prior(seen), note=note, rng=rng)

    def _prior(self, seen: Observation) -> Callable[[Tensor], Tensor]:
        pixels = to_pixels(seen)

        def prior(z: Tensor) -> Tensor:
            """Compute the penalties (S,) of S guesses z (S, B, C, H, W), without the distance of gradients."""
            total: Tensor = self.tv_weight * isotropic_variation(z) + self.l2_weight * z.flatten(1).norm(dim=1)
            if len(z) > 1 and self.group_weight:
                mean = registered_mean(z, self.reach) if self.reach else z.mean(0)
                total = total + self.group_weight * (z - mean).flatten(1).square().mean(1)
            if seen.granted.statistics and self.bn_weight:
                total = total + self.bn_weight * torch.stack([mismatch(seen, pixels(guess)) for guess in z])
            return total

        return prior


def mismatch(seen: Observation, x: Tensor) -> Tensor:
    """Compute R_bn, the distance () between the BatchNorm statistics of a guess x (B, C, H, W) and the granted statistics."""
    assert seen.granted.statistics is not None
    total = x.new_zeros(())
    for index, (name, (mean, variance)) in enumerate(batch_statistics(seen.model, x).items()):
        wanted_mean, wanted_variance = seen.granted.statistics[name]
        gap = (mean - wanted_mean).norm() + (variance - wanted_variance).norm()
        total = total + (FIRST if index == 0 else 1.0) * gap
    return total
