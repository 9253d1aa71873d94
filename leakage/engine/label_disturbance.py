"""What an update shows by itself of having been changed after it was computed, and the same change made to another last layer."""

from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.engine.core import generator
from leakage.engine.label_probes import Head

FEW, ROUNDING = 0.01, 1e-4  # what counts as no zeros, and as no error of a column's sum, as shares
AT_MOST = 1.2  # of the entries' size: noise makes columns add up to no more
EQUAL, ROWS = 1e-6, 3  # sizes that differ by less, relatively, are equal; in so many rows they are not at random
SHORTEST = 0.01  # fraction of its length that a gradient hidden in noise may have kept


@dataclass(frozen=True)
class Disturbance:
    """What an update shows by itself of having been changed: of dL/dW = (1/B) sum_b (p_b - e_(y_b)) h_b^T every column adds up to 0.

    zeros, bias_zeros   fraction of entries that are 0, of weight and bias, but for rows and columns of zeros alone
    scattered           whether the entries that are 0 look as if drawn at random: classes and features have about as many of them
    limited, bias_limited   fraction of entries of the largest size, where at least three rows have some: a limit cut them off
    uneven              whether columns add up to more than noise can explain: entries were scaled one by one
    deviation           of noise that would explain the columns' sums; 0 where entries lack, were cut off or are rounding.
                        Or of noise that would explain why readings contradict each other (`RehearsalSetup.explain`)
    shortest            fraction of its length that the gradient may have kept before noise was added. What adds noise mostly limits the
                        length first, and where most of an update is noise, its own length does not show that
    """

    zeros: float = 0.0
    bias_zeros: float = 0.0
    scattered: bool = False
    limited: float = 0.0
    bias_limited: float = 0.0
    uneven: bool = False
    deviation: float = 0.0
    shortest: float = 1.0

    @staticmethod
    def of(last: Head, *, plain: bool = True) -> "Disturbance":
        """That of the last layer of an update. Where an activation follows it (not `plain`), its columns' sums say nothing."""
        there = last.weight_gradient != 0
        inside = there[there.any(1)][:, there.any(0)]  # a class or a feature may be 0 by itself
        lacks = inside.numel() > 0 and 1 - float(inside.double().mean()) >= FEW
        lacks = lacks or (last.bias is not None and bool(((last.bias == 0) & there.any(1)).any()))
        zeros = 1 - float(there[:, there.any(0)].double().mean()) if lacks else 0.0
        lacking = 0.0 if last.bias is None or not lacks else float((last.bias == 0).double().mean())
        scattered = lacks and _scattered(there)
        limited, bias_limited = _limited(last.weight_gradient), 0.0 if last.bias is None else _limited(last.bias.unsqueeze(1))
        off, usual = (
            float(last.weight_gradient.double().sum(0).square().mean().sqrt()),
            float(last.weight_gradient.double().square().mean().sqrt()),
        )
        deviation = off / len(last.weight_gradient) ** 0.5 if plain and not (lacks or limited) and off > ROUNDING * usual else 0.0
        uneven = deviation > AT_MOST * usual
        deviation = 0.0 if uneven else deviation
        shortest = SHORTEST if deviation**2 > usual**2 / 2 else 1.0
        return Disturbance(zeros, lacking, scattered, limited, bias_limited, uneven, deviation, shortest)

    @property
    def none(self) -> bool:
        return self == Disturbance()

    def apply(self, weight_gradient: Tensor, rows: Tensor | None, seed: int) -> tuple[Tensor, Tensor | None]:
        """The same done to another last layer: noise is added, then as many entries are 0, and as many of the largest cut off.

        Before that it is shortened at random, at most to the fraction `shortest` of its length, uniformly by the logarithm.
        """
        rng = generator(0, "label disturbance", seed)
        left = self.shortest ** float(torch.rand((), generator=rng))
        weight_gradient, rows = left * weight_gradient, None if rows is None else left * rows
        changed = _cut(self._dropped(self._noisy(weight_gradient, rng), self.zeros, rng), self.limited)
        return changed, None if rows is None else _cut(self._dropped(self._noisy(rows, rng), self.bias_zeros, rng), self.bias_limited)

    def _dropped(self, values: Tensor, share: float, rng: torch.Generator) -> Tensor:
        """The values, that share of them set to 0: drawn at random (`scattered`), or the smallest."""
        return values * (torch.rand(values.shape, generator=rng) >= share) if self.scattered else _pruned(values, share)

    def _noisy(self, values: Tensor, rng: torch.Generator) -> Tensor:
        return values + self.deviation * torch.randn(values.shape, generator=rng).double()


def intact(last: Head, *, plain: bool = True) -> bool:
    """Whether nothing shows that the last layer's gradient was changed after it was computed, but for its length."""
    return Disturbance.of(last, plain=plain).none


def _pruned(values: Tensor, share: float) -> Tensor:
    """The values, that share of the smallest set to 0."""
    dropped = round(share * values.numel())
    if dropped == 0:
        return values
    return values * (values.abs() > values.abs().flatten().kthvalue(min(dropped, values.numel())).values)


def _scattered(there: Tensor) -> bool:
    """Whether the entries that are there (K, D) scatter over classes and features as entries drawn at random do (index of dispersion)."""
    share = float(there.double().mean())
    return 0 < share < 1 and all(
        abs(float(lines.double().sum(1).var()) / (lines.shape[1] * share * (1 - share)) - 1) < 4 * (2 / len(lines)) ** 0.5
        for lines in (there, there.T)
    )


def _limited(values: Tensor) -> float:
    """The share of the values (K, D) that have the largest size, if these are in three rows or more; else 0."""
    largest = values.abs() >= values.abs().max() * (1 - EQUAL)
    return float(largest.double().mean()) if bool(values.any()) and int(largest.any(1).sum()) >= ROWS else 0.0


def _cut(values: Tensor, share: float) -> Tensor:
    """The values, that share of the largest cut off at the smallest of them."""
    count = round(share * values.numel())
    if count == 0:
        return values
    limit = float(values.abs().flatten().kthvalue(values.numel() - count + 1).values)
    return values.clamp(-limit, limit)
