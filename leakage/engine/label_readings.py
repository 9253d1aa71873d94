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
    """What the attacker reads from the last layers of S rehearsals (simulated clients with known labels), for K classes.

    Args:
        evidence: F readings of each class (`evidence`), (S, K, F)
        sizes: the two numbers of `size_of`, (S, 2)
        counts: the number of labels of each class, (S, K)
        logit_gains: by how much the simulated model raises the logits of the right classes, (S,)
        misses: mean squared error of the mean feature that `mean_feature` finds, (S,)
    """

    evidence: Tensor
    sizes: Tensor
    counts: Tensor
    logit_gains: Tensor
    misses: Tensor


def read_counts(rehearsals: Rehearsed, weights: Tensor, received: Tensor, batch_size: int) -> tuple[Tensor, Misfit]:
    """Return how probable it is that class c has k labels in the batch, (K, B + 1), and how strongly the update's readings contradict it.

    Only the last ORDINAL readings are used if they contradict each other less than all readings do and expect more labels to be right.

    Args:
        rehearsals: the readings of S simulated clients.
        weights: the weight of each rehearsal, (S,).
        received: the readings of the update, (K, F).
        batch_size: B.
    """
    whole = _read(rehearsals, weights, received, batch_size)
    ordinal = replace(rehearsals, evidence=rehearsals.evidence[..., -ORDINAL:])
    last = _read(ordinal, weights, received[:, -ORDINAL:], batch_size)
    fewer_contradictions = last[1].usual < whole[1].usual
    return last if fewer_contradictions and likeliest(last[0])[1] > likeliest(whole[0])[1] else whole


def _read(rehearsals: Rehearsed, weights: Tensor, received: Tensor, batch_size: int) -> tuple[Tensor, Misfit]:
    """Return what `read_counts` returns, computed from all readings in `received` (K, F)."""
    contradicted, count_fit, expected = contradiction(rehearsals, weights, received, batch_size)
    weakened = contradicted.usual * overconfidence(count_fit, rehearsals.counts, weights, batch_size)
    return count_probabilities(expected, count_fit.variance(expected), batch_size, weakened), contradicted


def contradiction(rehearsals: Rehearsed, weights: Tensor, received: Tensor, batch_size: int) -> tuple[Misfit, CountFit, Tensor]:
    """Return the misfit of the update's readings, the linear fit from readings to counts, and the counts (K,) that it gives for the update.

    The update's readings are clamped to the range of all rehearsals, because the fit learned nothing outside.

    Args:
        rehearsals: the readings and known counts of S simulated clients, to which the fit is made.
        weights: the weight of each rehearsal in the fit, (S,).
        received: the readings of the update, (K, F).
        batch_size: B.
    """
    received = received.clamp(rehearsals.evidence.amin((0, 1)), rehearsals.evidence.amax((0, 1)))
    count_fit = fit(rehearsals.evidence, rehearsals.counts, weights)
    expected = count_fit(received)
    taken, _ = likeliest_counts(count_probabilities(expected, count_fit.variance(expected), batch_size))
    return misfit(rehearsals.evidence, rehearsals.counts, weights, received, taken), count_fit, expected


def overconfidence(count_fit: CountFit, counts: Tensor, weights: Tensor, batch_size: int) -> float:
    """Return the factor, at least 1, that weakens a fit's log-likelihood so that the fit expects no more right labels than it gets right.

    Both fractions of right labels come from cross-validation: from rehearsals (simulated clients with known labels) outside the fit.

    Args:
        count_fit: the fit from readings to counts.
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
    """Return the weight of each rehearsal (simulated client), (S,): 1 for the rehearsal that resembles the update most, less for others.

    The weight is exp(-(d - d_min) / (2 width)). d is the squared distance between the sizes of rehearsal and update, in units of the sizes'
    standard deviation around their quadratic trend with `logit_gains`. The width grows until the weights add up to ENOUGH.

    Args:
        sizes: the compared numbers of `size_of` for each rehearsal, (S, 1 or 2).
        logit_gains: by how much each rehearsal raises the logits of the right classes, (S,).
        seen: the same numbers for the update, (1 or 2,).
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
    """Return the batch's mean input h (D,) of the last layer: least squares of dL/dW = dL/db h^T over the nonzero entries.

    Args:
        weight_gradient: dL/dW, (K, D).
        rows: dL/db, (K,); if None or all zeros, dL/dW usual / ||usual||^2 takes its place.
        usual: the mean feature of probe pictures, (D,); the result where (nearly) all entries of a column are 0.
    """
    if rows is None or not bool(rows.any()):
        rows = weight_gradient @ usual / usual.dot(usual).clamp(min=1e-300)
    squares = (rows.square().unsqueeze(1) * (weight_gradient != 0)).sum(0)
    return torch.where(squares > 1e-3 * rows.dot(rows), rows @ weight_gradient / squares.clamp(min=1e-300), usual)
