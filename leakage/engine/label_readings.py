"""Counts of classes read from an update by comparison with rehearsals: their weights, the fit, contradictions, overconfidence."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.engine.label_counts import count_probabilities, likeliest, likeliest_counts
from leakage.engine.label_evidence import ORDINAL, CountFit, Misfit, fit, misfit

ENOUGH = 24.0  # least sum of the weights of rehearsals that resemble the update
WEAKEST, HALVINGS = 1e3, 7  # the largest factor by which an overconfident fit is weakened; steps to find the factor


@dataclass(frozen=True)
class Rehearsed:
    """The readings of S rehearsals.

    Args:
        evidence: (S, K, F)
        sizes: (S, 2), see `size_of`
        counts: (S, K), the true counts
        logit_gains: (S,), by how much the model raises the logits of the right classes
        misses: (S,), mean squared error of the mean feature that is read
    """

    evidence: Tensor
    sizes: Tensor
    counts: Tensor
    logit_gains: Tensor
    misses: Tensor


def read_counts(rehearsals: Rehearsed, weights: Tensor, received: Tensor, batch_size: int) -> tuple[Tensor, Misfit]:
    """Return the probability of every count, (K, B + 1), and the misfit, given rehearsals of weights (S,) and received readings (K, F).

    Only the last ORDINAL readings are used where they contradict each other less than all readings do and expect more labels to be right.
    """
    whole = _read(rehearsals, weights, received, batch_size)
    ordinal = replace(rehearsals, evidence=rehearsals.evidence[..., -ORDINAL:])
    last = _read(ordinal, weights, received[:, -ORDINAL:], batch_size)
    fewer_contradictions = last[1].usual < whole[1].usual
    return last if fewer_contradictions and likeliest(last[0])[1] > likeliest(whole[0])[1] else whole


def _read(rehearsals: Rehearsed, weights: Tensor, received: Tensor, batch_size: int) -> tuple[Tensor, Misfit]:
    """Return the probability of every count, (K, B + 1), and the misfit, by all readings in `received` (K, F)."""
    contradicted, count_fit, expected = contradiction(rehearsals, weights, received, batch_size)
    weakened = contradicted.usual * overconfidence(count_fit, rehearsals.counts, weights, batch_size)
    return count_probabilities(expected, count_fit.variance(expected), batch_size, weakened), contradicted


def contradiction(rehearsals: Rehearsed, weights: Tensor, received: Tensor, batch_size: int) -> tuple[Misfit, CountFit, Tensor]:
    """Return the misfit of the readings `received` (K, F), the fit to the rehearsals, and the counts (K,) that the fit expects.

    Readings outside the range of all rehearsals are clamped to it, because nothing was learned outside.
    """
    received = received.clamp(rehearsals.evidence.amin((0, 1)), rehearsals.evidence.amax((0, 1)))
    count_fit = fit(rehearsals.evidence, rehearsals.counts, weights)
    expected = count_fit(received)
    taken, _ = likeliest_counts(count_probabilities(expected, count_fit.variance(expected), batch_size))
    return misfit(rehearsals.evidence, rehearsals.counts, weights, received, taken), count_fit, expected


def overconfidence(count_fit: CountFit, counts: Tensor, weights: Tensor, batch_size: int) -> float:
    """Return the factor, at least 1, that weakens a fit so that it expects no more right labels than it gets right.

    Both fractions come from rehearsals that were left out of the fit.

    Args:
        count_fit: the fit.
        counts: true counts of the rehearsals, (S, K).
        weights: the weight of each rehearsal, (S,).
        batch_size: B.
    """
    variance, normalized = count_fit.variance(count_fit.tested), weights / weights.sum()

    def expected(weakened: float) -> tuple[Tensor, float]:
        taken, fraction = likeliest_counts(count_probabilities(count_fit.tested, variance, batch_size, weakened))
        return taken, float((normalized * fraction).sum())

    taken, claimed = expected(1.0)
    right = float((normalized * taken.minimum(counts).sum(1)).sum()) / batch_size
    if claimed <= right:
        return 1.0
    low, high = 0.0, math.log(WEAKEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(math.exp(middle))[1] > right else (low, middle)
    return math.exp(high)


def likeness(sizes: Tensor, logit_gains: Tensor, seen: Tensor) -> Tensor:
    """Return the weight of each rehearsal, (S,), by the distance of its sizes (S, 2) from the update's (2,), in units of random spread.

    The random spread is the deviation of the sizes from their trend with `logit_gains`. The unit grows until the weights add up to ENOUGH.
    """
    trend = torch.stack([torch.ones_like(logit_gains), logit_gains, logit_gains.square()], 1)
    left = sizes - trend @ torch.linalg.lstsq(trend, sizes).solution
    distance = ((sizes - seen) / left.std(0).clamp(min=0.05)).square().sum(1)
    width = 1.0
    for _ in range(40):
        weight: Tensor = (-(distance - distance.min()) / (2 * width)).exp()
        if float(weight.sum()) >= min(ENOUGH, len(sizes) / 2):
            break
        width *= 1.5
    return weight


def mean_feature(weight_gradient: Tensor, rows: Tensor | None, usual: Tensor) -> Tensor:
    """Return the batch's mean feature (D,): least squares of dL/dW (K, D) = dL/db h^T over the nonzero entries; `usual` where all are 0."""
    if rows is None or not bool(rows.any()):
        rows = weight_gradient @ usual / usual.dot(usual).clamp(min=1e-300)
    squares = (rows.square().unsqueeze(1) * (weight_gradient != 0)).sum(0)
    return torch.where(squares > 1e-3 * rows.dot(rows), rows @ weight_gradient / squares.clamp(min=1e-300), usual)
