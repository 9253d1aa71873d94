"""Signs in an update that it was changed after it was computed, and the same change applied to another last layer."""

from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.engine.core import generator
from leakage.engine.label_probes import Head

FEW, ROUNDING = 0.01, 1e-4  # smaller fractions count as no zeros, and as no error in a column's sum
AT_MOST = 1.2  # of the entries' root mean square: larger column sums are not explained by noise
EQUAL, ROWS = 1e-6, 3  # sizes with a smaller relative difference are equal; equal largest entries in so many rows are no coincidence
SHORTEST = 0.01  # least fraction of its length that a gradient hidden in noise may have kept


@dataclass(frozen=True)
class Disturbance:
    """Signs that a protection changed a last layer's gradient: zeros, cut-off entries, noise.

    An unchanged gradient dL/dW = (1/B) sum_b (p_b - e_(y_b)) h_b^T has columns that add up to 0: p_b are the predicted probabilities of
    picture b, e_(y_b) its one-hot label, h_b the input of the layer.

    Args:
        zeros: fraction of the weight's entries that are 0, without columns of zeros
        bias_zeros: fraction of the bias's entries that are 0
        scattered: whether the zeros look as if drawn at random: all classes and all features have about equally many
        limited: fraction of the weight's entries that have the largest size, where at least three rows have such entries: a limit cut them
            off
        bias_limited: the same for the bias
        uneven: whether the columns' sums are too large to be noise: entries were scaled individually
        deviation: standard deviation of noise that would explain the columns' sums, or contradictory readings of the labels
            (`RehearsalSetup.explain`); 0 where entries are missing or cut off, and where rounding explains the sums
        shortest: least fraction of its length that the gradient may have kept before noise was added. A protection that adds noise usually
            limits the length first; where most of an update is noise, its length does not show that
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
        """Return the disturbance of the last layer of an update.

        Args:
            last: the last layer.
            plain: whether its outputs are the logits. If an activation follows, the columns' sums show nothing and are left out.
        """
        nonzero = last.weight_gradient != 0
        inside = nonzero[nonzero.any(1)][:, nonzero.any(0)]  # a class or a feature may be 0 by itself
        has_zeros = inside.numel() > 0 and 1 - float(inside.double().mean()) >= FEW
        has_zeros = has_zeros or (last.bias is not None and bool(((last.bias == 0) & nonzero.any(1)).any()))
        zeros = 1 - float(nonzero[:, nonzero.any(0)].double().mean()) if has_zeros else 0.0
        bias_zeros = 0.0 if last.bias is None or not has_zeros else float((last.bias == 0).double().mean())
        scattered = has_zeros and _scattered(nonzero)
        limited, bias_limited = _limited(last.weight_gradient), 0.0 if last.bias is None else _limited(last.bias.unsqueeze(1))
        entries = last.weight_gradient.double()
        column_sum, usual = float(entries.sum(0).square().mean().sqrt()), float(entries.square().mean().sqrt())  # root mean squares
        noisy = plain and not (has_zeros or limited) and column_sum > ROUNDING * usual
        deviation = column_sum / len(entries) ** 0.5 if noisy else 0.0
        uneven = deviation > AT_MOST * usual
        deviation = 0.0 if uneven else deviation
        shortest = SHORTEST if deviation**2 > usual**2 / 2 else 1.0
        return Disturbance(zeros, bias_zeros, scattered, limited, bias_limited, uneven, deviation, shortest)

    @property
    def none(self) -> bool:
        """Whether there is no sign of a change."""
        return self == Disturbance()

    def apply(self, weight_gradient: Tensor, rows: Tensor | None, seed: int) -> tuple[Tensor, Tensor | None]:
        """Return another last layer's gradient with the same change: the same noise, fraction of zeros, and fraction of entries cut off.

        Before that, the gradient is shortened by a random factor between `shortest` and 1, uniform in its logarithm.

        Args:
            weight_gradient: of the weight, (K, D).
            rows: of the bias, (K,), or None.
            seed: of the random numbers.

        Returns:
            The changed gradients of weight and bias.
        """
        rng = generator(0, "label disturbance", seed)
        left = self.shortest ** float(torch.rand((), generator=rng))
        weight_gradient, rows = left * weight_gradient, None if rows is None else left * rows
        changed = _cut(self._dropped(self._noisy(weight_gradient, rng), self.zeros, rng), self.limited)
        return changed, None if rows is None else _cut(self._dropped(self._noisy(rows, rng), self.bias_zeros, rng), self.bias_limited)

    def _dropped(self, values: Tensor, fraction: float, rng: torch.Generator) -> Tensor:
        """Return the values with a fraction of them set to 0: random ones where the zeros are `scattered`, otherwise the smallest."""
        return values * (torch.rand(values.shape, generator=rng) >= fraction) if self.scattered else _pruned(values, fraction)

    def _noisy(self, values: Tensor, rng: torch.Generator) -> Tensor:
        return values + self.deviation * torch.randn(values.shape, generator=rng).double()


def intact(last: Head, *, plain: bool = True) -> bool:
    """Return whether the last layer's gradient shows no sign of a change after it was computed; a change of its length would not show.

    Args:
        last: the last layer with its gradient.
        plain: whether its outputs are the logits.
    """
    return Disturbance.of(last, plain=plain).none


def _pruned(values: Tensor, fraction: float) -> Tensor:
    """Return the values with the smallest of them set to 0: this fraction, by magnitude."""
    dropped = round(fraction * values.numel())
    if dropped == 0:
        return values
    return values * (values.abs() > values.abs().flatten().kthvalue(min(dropped, values.numel())).values)


def _scattered(nonzero: Tensor) -> bool:
    """Return whether the nonzero entries (K, D) scatter over classes and features as if drawn at random (index of dispersion)."""
    fraction = float(nonzero.double().mean())
    return 0 < fraction < 1 and all(
        abs(float(lines.double().sum(1).var()) / (lines.shape[1] * fraction * (1 - fraction)) - 1) < 4 * (2 / len(lines)) ** 0.5
        for lines in (nonzero, nonzero.T)
    )


def _limited(values: Tensor) -> float:
    """Return the fraction of the values (K, D) that have the largest magnitude, if these lie in at least ROWS rows; otherwise 0.

    So many equal values show that a limit cut them off.
    """
    largest = values.abs() >= values.abs().max() * (1 - EQUAL)
    return float(largest.double().mean()) if bool(values.any()) and int(largest.any(1).sum()) >= ROWS else 0.0


def _cut(values: Tensor, fraction: float) -> Tensor:
    """Return the values with the largest of them cut off: this fraction, by magnitude, is clamped to the smallest magnitude among them."""
    count = round(fraction * values.numel())
    if count == 0:
        return values
    limit = float(values.abs().flatten().kthvalue(values.numel() - count + 1).values)
    return values.clamp(-limit, limit)
