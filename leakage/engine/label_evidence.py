"""What one update's last layer says of every class, as numbers that grow or fall with the class's count; and the fit from these to counts.

Row c of the weight's gradient is (1/B) sum_b (p_bc - [y_b = c]) h_b, about (pbar_c - n_c / B) h with the batch's mean feature h: every
entry of the row says the same as the bias, over and over. Which of these readings a protection leaves, and how well, `fit` finds out.
"""

from typing import NamedTuple

import torch
from torch import Tensor

TINY = 1e-30
STEPS = 3  # of the power iteration that finds the direction that all rows share
RIDGE = 1e-6
ORDINAL = 8  # readings, the last ones of all, that stay as they are where a protection stretches some rows or entries
FOLDS = 4  # of the rehearsals, by which a fit is tested
UNLIKE = 0.01  # share of every reading's variance that no other reading has
RESEMBLES = 0.1  # of the largest weight of a rehearsal: those of less do not resemble the update
LEAST = 1e-4  # variance of a count: nothing is known better than to 0.01


class CountFit(NamedTuple):
    """A linear fit of counts: evidence (K, F) -> expected counts evidence @ weights, with variance base + growth * expected.

    tested  (S, K), what fits to other rehearsals expect of each rehearsal
    """

    weights: Tensor
    base: float
    growth: float
    tested: Tensor

    def __call__(self, evidence: Tensor) -> Tensor:
        """Expected counts (K,)."""
        return evidence @ self.weights

    def variance(self, expected: Tensor) -> Tensor:
        """Those of counts of which so many are expected."""
        return (self.base + self.growth * expected.clamp(min=0)).clamp(min=LEAST)


def evidence(weight_gradient: Tensor, rows: Tensor | None, feature: Tensor, prediction: Tensor, batch_size: int) -> Tensor:
    """(K, F) of the weight's gradient (K, D) and the bias's (K,), given a mean feature (D,) and a mean prediction (K,).

    By class: the row along the mean feature, all entries or those alone that are not 0; its lowest entry; along the direction that all
    rows share; its length; the bias. Each of these as it is, and as a multiple of what all negative ones add up to. The last ORDINAL
    compare more than they measure: the signs of the first, of the bias and of the lowest entry; the row's sum and its lowest entry beside
    its own size; whether its lowest entry is among the B lowest; the mean prediction; and 1.
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
    shares = [part / -part.clamp(max=0).sum().clamp(max=-TINY) for part in parts]
    signs = [(part < 0).to(part) for part in (along, along if rows is None else rows, lowest)]
    return torch.stack([*parts, *shares, *signs, *alone, prediction, torch.ones_like(along)], 1)


def size_of(weight_gradient: Tensor, rows: Tensor | None) -> Tensor:
    """Numbers (2,) that tell updates apart whatever their classes: the log of the weight's gradient's length, and how few rows hold it."""
    squares = weight_gradient.square().sum(1)
    total = squares.sum().clamp(min=TINY)
    return torch.stack([total.log() / 2, (squares.square().sum().clamp(min=TINY * TINY) / total.square()).log() / 2])


def fit(given: Tensor, counts: Tensor, likeness: Tensor) -> CountFit:
    """Weighted least squares of counts (S, K) by evidence (S, K, F), whose last reading is 1, with a weight (S,) for each rehearsal.

    How much of the fit is random is seen by cross-validation: counts are expected by fits to the other rehearsals, and the true counts'
    coefficient over these, 0 to 1, shrinks the whole fit. Behind noise that hides all counts it is 0, and every class is as likely as any.
    The squared errors left are fitted themselves: base + growth * expected. Source of the shrinkage: Copas 1983, section 3.
    """
    scale = given.flatten(0, 1).square().mean(0).sqrt().clamp(min=TINY)
    unit = given / scale  # (S, K, F)
    weighted = unit * likeness[:, None, None]
    ridge = RIDGE * counts.shape[1] * likeness.sum() * torch.eye(given.shape[2], dtype=given.dtype)
    folds = [slice(place, None, FOLDS) for place in range(FOLDS)]
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
    share = weight / weight.sum()
    across, up = x - (share * x).sum(), y - (share * y).sum()
    coefficient = float((share * across * up).sum() / (share * across.square()).sum().clamp(min=TINY))
    coefficient = min(max(coefficient, 0.0), 1.0)
    return coefficient, float((share * (y - coefficient * x)).sum())


class Misfit(NamedTuple):
    """How strongly an update's readings contradict each other: their squared distance, see `misfit`, over that of rehearsals.

    usual   over the mean of the rehearsals; 1 at least
    most    over the largest of all rehearsals that resemble the update
    """

    usual: float
    most: float


def misfit(given: Tensor, counts: Tensor, likeness: Tensor, received: Tensor, found: Tensor) -> Misfit:
    """How strongly an update's readings (K, F) contradict each other.

    Of every count n the F readings that are expected, a + b n + c n^2, and their covariance are those of the rehearsals, (S, K, F) with
    counts (S, K) and a weight (S,) for each. Their squared Mahalanobis distance from the readings received, given the counts found (K,),
    has a mean over the classes; of rehearsals the same is known. Variances are enlarged by its ratio to their mean.
    Source: Birge 1932 (the ratio of consistency by which errors are multiplied when measurements scatter more than these allow).
    """
    weight = likeness.repeat_interleave(counts.shape[1]).unsqueeze(1)
    flat, base = given[..., :-1].flatten(0, 1), _powers(counts.flatten())  # the last reading is 1
    curve = torch.linalg.lstsq(base * weight.sqrt(), flat * weight.sqrt()).solution
    left = flat - base @ curve
    covariance = (left * weight).T @ left / weight.sum()
    least = LEAST * (flat.var(0) + LEAST * flat.square().mean(0))  # no reading shows a count better than `fit` says
    scale = (covariance.diagonal() + least).clamp(min=TINY).sqrt()
    inverse = torch.linalg.inv(covariance / scale / scale[:, None] + UNLIKE * torch.eye(len(scale), dtype=flat.dtype))
    off = (received[:, :-1] - _powers(found) @ curve) / scale
    own = float(((off @ inverse) * off).sum(1).mean())
    each = ((left / scale @ inverse) * (left / scale)).sum(1).view(len(given), -1).mean(1)  # (S,)
    usual = float((each * likeness).sum() / likeness.sum())
    most = float(each[likeness > RESEMBLES * likeness.max()].max())
    return Misfit(max(own / max(usual, TINY), 1.0), own / max(most, TINY))


def _powers(counts: Tensor) -> Tensor:
    return torch.stack([torch.ones_like(counts), counts, counts.square()], 1)
