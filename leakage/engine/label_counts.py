"""The probabilities of each class's count in a batch, from linear estimates for each class and the sum of all counts."""

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

TINY = 1e-300
AT_ONCE = 2**22  # products of probabilities that are computed at once, in 32 MB


def count_probabilities(expected: Tensor, variance: Tensor, batch_size: int, weakened: float = 1.0) -> Tensor:
    """Return the probability P(n_c = k) that class c has k of the batch's B labels, for k from 0 to B, (..., K, B + 1).

    Given are a linear fit's estimate of each count n_c, and sum_c n_c = B. Before the fit, the counts are multinomial with mean m = B / K
    and variance s^2 = m (1 - 1 / K). If they were normal, the fit would follow from a likelihood L with log L(k) = (expected - m) (k - m) /
    v - (k - m)^2 (1 / v - 1 / s^2) / 2, where v is the fit's variance, at most s^2. So the joint probability of counts is prod_c
    L_c(n_c)^(1 / weakened) / n_c!. The sum over the other classes is exact, in float64 (`_sums_without_each`).

    Args:
        expected: the fit's estimate of n_c, (..., K), with equal prior probabilities for all classes.
        variance: the variance of that estimate, (..., K).
        batch_size: B.
        weakened: the factor by which the log-likelihood is divided.
    """
    classes = expected.shape[-1]
    number, fraction = torch.arange(batch_size + 1, dtype=torch.float64), 1 / classes
    mean, spread = batch_size * fraction, batch_size * fraction * (1 - fraction)
    off, v = number - mean, variance.double().clamp(max=spread)[..., None]
    score = (expected.double()[..., None] - mean) * off / v - off.square() * (1 / v - 1 / spread) / 2
    score = score / weakened - (number + 1).lgamma()
    likelihood = (score - score.amax(-1, keepdim=True)).exp().clamp(min=TINY)  # (..., K, B + 1)
    joint = likelihood * _sums_without_each(likelihood).flip(-1)
    return joint / joint.sum(-1, keepdim=True).clamp(min=TINY)


def likeliest(probabilities: Tensor) -> tuple[Tensor, float]:
    """Return the sorted labels (B,) of which most are right on average, and the fraction of them that is expected to be right.

    Args:
        probabilities: P(n_c = k), that class c has k labels in the batch, (K, B + 1).
    """
    taken, fraction = likeliest_counts(probabilities)
    return torch.arange(len(taken)).repeat_interleave(taken.long()), float(fraction)


def likeliest_counts(probabilities: Tensor) -> tuple[Tensor, Tensor]:
    """Return the counts (..., K) that match most of the batch on average, and the fraction of the batch that they match, (...,).

    If class c has n_c labels and is chosen m_c times, min(m_c, n_c) of these are right, on average sum_{k <= m_c} P(n_c >= k). So the B
    pairs (c, k) of largest P(n_c >= k), which falls with k, are chosen; their mean is the fraction that is expected to be right.

    Args:
        probabilities: P(n_c = k) for k from 0 to B, (..., K, B + 1).
    """
    at_least = _at_least(probabilities)
    size = at_least.shape[-1]
    values, indices = at_least.flatten(-2).sort(dim=-1, descending=True, stable=True)
    taken = F.one_hot(indices[..., :size] // size, at_least.shape[-2]).sum(-2)
    return taken.double(), values[..., :size].mean(-1)


@cache
def guessed_right(batch_size: int, classes: int) -> float:
    """Return the fraction of the likeliest labels that is right on average for an attacker without knowledge; 1 / K for one picture."""
    nothing = torch.full((classes,), batch_size / classes), torch.full((classes,), torch.inf)
    return likeliest(count_probabilities(*nothing, batch_size))[1]


def expected_right(labels: Tensor, probabilities: Tensor) -> float:
    """Return the fraction of labels that is expected to be right: sum_c sum_{k <= m_c} P(n_c >= k) / B.

    Args:
        labels: the labels, (B,), of which m_c are of class c.
        probabilities: P(n_c = k), that class c truly has k labels, for k from 0 to B, (K, B + 1).
    """
    at_least = _at_least(probabilities)
    taken = torch.bincount(labels.cpu(), minlength=len(probabilities))  # m_c
    number = torch.arange(1, at_least.shape[1] + 1)
    return float((at_least * (number <= taken.unsqueeze(1))).sum()) / len(labels)


def _at_least(probabilities: Tensor) -> Tensor:
    """Return P(n_c >= k), (..., K, B) at k from 1 to B, given P(n_c = k), (..., K, B + 1)."""
    return probabilities.flip(-1).cumsum(-1).flip(-1)[..., 1:].clamp(max=1)


def _sums_without_each(counts: Tensor) -> Tensor:
    """Return for each class the distribution of the sum of all other classes' counts, (..., K, B + 1), given each class's distribution.

    Classes are added in pairs, and pairs of pairs, up to the whole. On the way back, the classes outside a pair are added to one class of
    the pair, which gives the sum without the other one. So K classes need 2 log2 K rounds, and all additions of a round are one.
    """
    classes, nothing = counts.shape[-2], F.one_hot(torch.tensor(0), counts.shape[-1]).to(counts)  # a count that is surely 0
    if classes == 1:
        return nothing.expand_as(counts)
    even, odd = counts[..., 0::2, :], counts[..., 1::2, :]
    if classes % 2:
        odd = torch.cat([odd, nothing.expand_as(even[..., :1, :])], -2)
    outside = _sums_without_each(_added(even, odd))
    return torch.stack([_added(outside, odd), _added(outside, even)], -2).flatten(-3, -2)[..., :classes, :]


def _added(first: Tensor, second: Tensor) -> Tensor:
    """Return the distribution of the sum of two independent counts, given both distributions (..., B + 1); cut off at B and normalized."""
    size = first.shape[-1]
    if first.numel() * size <= AT_ONCE:
        shifted = F.pad(first, (size - 1, 0)).unfold(-1, size, 1)  # in row k: first[k - B], ..., first[k]
        total = (shifted @ second.flip(-1).unsqueeze(-1)).squeeze(-1)
    else:
        total = torch.zeros_like(first)
        for number in range(size):
            total[..., number:] += first[..., number : number + 1] * second[..., : size - number]
    return total / total.sum(-1, keepdim=True).clamp(min=TINY)
