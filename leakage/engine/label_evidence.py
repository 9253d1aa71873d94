"""Readings of an update's last layer for each class, which grow or fall with the class's count; and the linear fit from readings to counts.

Row c of the weight's gradient is (1/B) sum_b (p_bc - [y_b = c]) h_b, about (pbar_c - n_c / B) h with the batch's mean feature h. So every
entry of the row carries the same information as the bias. `fit` finds out which of these readings survive a protection, and how well.
"""

from typing import NamedTuple

import torch
from torch import Tensor

TINY = 1e-30
STEPS = 3  # of the power iteration that finds the direction that all rows share
RIDGE = 1e-6
ORDINAL = 8  # number of last readings that a protection does not change when it scales some rows or entries
FOLDS = 4  # of the cross-validation over rehearsals
UNLIKE = 0.01  # fraction of every reading's variance that is independent of the other readings
RESEMBLES = 0.1  # rehearsals with a weight below this fraction of the largest weight do not resemble the update
LEAST = 1e-4  # least variance of a count: no count is known better than to 0.01


class CountFit(NamedTuple):
    """A linear function from readings of a last layer to the number of labels of each class; called with readings (K, F), it returns (K,).

    An expected count has the variance base + growth * count.

    Args:
        weights: the factor of each reading, (F,)
        base: variance of a count that is expected to be 0
        growth: growth of the variance with the expected count
        tested: cross-validation: the counts of each of S rehearsals, as expected by a fit to other rehearsals, (S, K)
    """

    weights: Tensor
    base: float
    growth: float
    tested: Tensor

    def __call__(self, evidence: Tensor) -> Tensor:
        """Return the expected counts (K,), given evidence (K, F)."""
        return evidence @ self.weights

    def variance(self, expected: Tensor) -> Tensor:
        """Return the variances of counts, given their expected values."""
        return (self.base + self.growth * expected.clamp(min=0)).clamp(min=LEAST)


def evidence(weight_gradient: Tensor, rows: Tensor | None, feature: Tensor, prediction: Tensor, batch_size: int) -> Tensor:
    """Return F readings for each of K classes, (K, F): numbers of the last layer's gradient that depend on the class's number of labels.

    For each class: its row along the mean feature, over all entries and over nonzero entries only; the row's lowest entry; its component
    along the direction that all rows share; its length; the bias. Each of these appears as it is and divided by the sum of its negative
    values. The last ORDINAL readings compare rather than measure: the signs of the first reading, of the bias and of the lowest entry; the
    row's sum and its lowest entry relative to its own size; whether its lowest entry is among the B lowest; the mean prediction; and 1.

    Args:
        weight_gradient: the gradient of the weight, (K, D): a row for each class.
        rows: the gradient of the bias, (K,), or None.
        feature: mean input of the last layer over a batch, (D,).
        prediction: mean probability of each class by the model, (K,).
        batch_size: B.
    """
    square = feature.dot(feature).clamp(min=TINY)
    along = weight_gradient @ feature / square
    there = ((weight_gradient != 0) * feature.square()).sum(1)
    shared = feature
    for _ in range(STEPS):
        shared = weight_gradient.T @ (weight_gradient @ shared)
        shared = shared / shared.norm().clamp(min=TINY)
    length = shared.dot(feature)
    lowest, highest = weight_gradient.amin(1), weight_gradient.amax(1)
    alone = [
        weight_gradient.sum(1) / weight_gradient.abs().sum(1).clamp(min=TINY),
        lowest / (highest - lowest).clamp(min=TINY),
        (lowest.argsort().argsort() < batch_size).to(along),
    ]
    parts = [
        along,
        weight_gradient @ feature / there.clamp(min=1e-3 * float(square)),
        lowest / feature.abs().max().clamp(min=TINY),
        weight_gradient @ shared * length.sign() / length.abs().clamp(min=1e-3 * float(square.sqrt())),
        weight_gradient.norm(dim=1) / square.sqrt() * along.sign(),
    ]
    parts += [] if rows is None else [rows]
    fractions = [part / -part.clamp(max=0).sum().clamp(max=-TINY) for part in parts]
    signs = [(part < 0).to(part) for part in (along, along if rows is None else rows, lowest)]
    return torch.stack([*parts, *fractions, *signs, *alone, prediction, torch.ones_like(along)], 1)


def size_of(weight_gradient: Tensor) -> Tensor:
    """Return two sizes of a last layer's gradient that do not depend on the order of the classes, (2,).

    They are the logarithm of its norm, and how few rows have most of its squared norm: 0 for a single row, less for more rows.

    Args:
        weight_gradient: the gradient of the weight, (K, D).
    """
    squares = weight_gradient.square().sum(1)
    total = squares.sum().clamp(min=TINY)
    return torch.stack([total.log() / 2, (squares.square().sum().clamp(min=TINY * TINY) / total.square()).log() / 2])


def fit(given: Tensor, counts: Tensor, likeness: Tensor) -> CountFit:
    """Return the linear function from readings to label counts, fitted to rehearsals (simulated clients with known labels).

    The fit is by weighted least squares. Cross-validation shows how much of the fit is random: fits to the other rehearsals predict the
    counts of each rehearsal, and the regression coefficient, 0 to 1, of the true counts on these predictions shrinks the whole fit. Behind
    noise that hides all counts the coefficient is 0, and every class is equally likely. The remaining squared errors are fitted too: base +
    growth * expected. Source of the shrinkage: Copas 1983, section 3.

    Args:
        given: readings (`evidence`) of S rehearsals, (S, K, F); the last of the F readings is 1.
        counts: the number of labels of each class, (S, K).
        likeness: the weight of each rehearsal, (S,).
    """
    scale = given.flatten(0, 1).square().mean(0).sqrt().clamp(min=TINY)
    unit = given / scale  # (S, K, F)
    weighted = unit * likeness[:, None, None]
    ridge = RIDGE * counts.shape[1] * likeness.sum() * torch.eye(given.shape[2], dtype=given.dtype)
    folds = [slice(start, None, FOLDS) for start in range(FOLDS)]
    sums = [(torch.einsum("skf,skg->fg", weighted[f], unit[f]), torch.einsum("skf,sk->f", weighted[f], counts[f])) for f in folds]
    left, right = ridge + torch.stack([square for square, _ in sums]).sum(0), torch.stack([product for _, product in sums]).sum(0)
    expected = torch.empty_like(counts)
    for fold, (square, product) in zip(folds, sums, strict=True):
        expected[fold] = unit[fold] @ torch.linalg.solve(left - square, right - product)
    each = likeness.repeat_interleave(counts.shape[1])
    coefficient, offset = _line(expected.flatten(), counts.flatten(), each)
    weights = coefficient * torch.linalg.solve(left, right) / scale
    weights[-1] += offset
    expected = offset + coefficient * expected.flatten()
    line = torch.stack([torch.ones_like(expected), expected.clamp(min=0)], 1) * each.sqrt()[:, None]
    squares = (expected - counts.flatten()).square()
    base, growth = torch.linalg.lstsq(line, (squares * each.sqrt())[:, None]).solution[:, 0].tolist()
    return CountFit(weights, base, growth, expected.view_as(counts))


def _line(x: Tensor, y: Tensor, weight: Tensor) -> tuple[float, float]:
    """Return the coefficient, 0 to 1, and the offset of the weighted straight line of y over x, (N,) each."""
    fraction = weight / weight.sum()
    across, up = x - (fraction * x).sum(), y - (fraction * y).sum()
    coefficient = float((fraction * across * up).sum() / (fraction * across.square()).sum().clamp(min=TINY))
    coefficient = min(max(coefficient, 0.0), 1.0)
    return coefficient, float((fraction * (y - coefficient * x)).sum())


class Misfit(NamedTuple):
    """How strongly the readings of an update's last layer contradict each other, compared with those of simulated clients (rehearsals).

    The measure is the squared distance of the readings from their expectation (`misfit`), divided by the same distance of rehearsals.

    Args:
        usual: the ratio to the weighted mean over all rehearsals; at least 1
        most: the ratio to the largest distance of a rehearsal that resembles the update
    """

    usual: float
    most: float


def misfit(given: Tensor, counts: Tensor, likeness: Tensor, received: Tensor, update_counts: Tensor) -> Misfit:
    """Return how strongly an update's readings contradict each other, compared with those of rehearsals (simulated clients).

    The rehearsals give the expected readings for a count n, a + b n + c n^2, and the covariance of the F readings. The squared Mahalanobis
    distance of the received readings from the readings expected at the counts found is averaged over the classes, and compared with the
    same mean for rehearsals. Variances are enlarged by the ratio of the two. Source: Birge 1932 (the ratio of consistency by which errors
    are multiplied when measurements scatter more than these allow).

    Args:
        given: readings of the rehearsals, (S, K, F).
        counts: the rehearsals' number of labels of each class, (S, K).
        likeness: the weight of each rehearsal, (S,).
        received: readings of the update, (K, F).
        update_counts: counts found for the update, (K,).
    """
    weight = likeness.repeat_interleave(counts.shape[1]).unsqueeze(1)
    flat, base = given[..., :-1].flatten(0, 1), _powers(counts.flatten())  # the last reading is 1
    curve = torch.linalg.lstsq(base * weight.sqrt(), flat * weight.sqrt()).solution
    left = flat - base @ curve
    covariance = (left * weight).T @ left / weight.sum()
    least = LEAST * (flat.var(0) + LEAST * flat.square().mean(0))  # no reading determines a count better than `fit` assumes
    scale = (covariance.diagonal() + least).clamp(min=TINY).sqrt()
    inverse = torch.linalg.inv(covariance / scale / scale[:, None] + UNLIKE * torch.eye(len(scale), dtype=flat.dtype))
    off = (received[:, :-1] - _powers(update_counts) @ curve) / scale
    distance = float(((off @ inverse) * off).sum(1).mean())
    each = ((left / scale @ inverse) * (left / scale)).sum(1).view(len(given), -1).mean(1)  # (S,)
    usual = float((each * likeness).sum() / likeness.sum())
    most = float(each[likeness > RESEMBLES * likeness.max()].max())
    return Misfit(max(distance / max(usual, TINY), 1.0), distance / max(most, TINY))


def _powers(counts: Tensor) -> Tensor:
    return torch.stack([torch.ones_like(counts), counts, counts.square()], 1)
