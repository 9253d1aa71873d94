"""How often each class is in a batch, as probabilities: from what is expected of every class, given that all counts add up."""

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

TINY = 1e-300


def count_probabilities(expected: Tensor, variance: Tensor, batch_size: int, weakened: float = 1.0) -> Tensor:
    """P(n_c = k) (..., K, B + 1) at whole numbers k from 0 to B, given sum_c n_c = B and what a linear fit says of each class.

    expected, variance  (..., K) each: the fit's mean of n_c and its variance, where every class was as likely as any
    weakened  the factor by which what the fit says is to be weakened

    Before the fit the counts are multinomial, of mean m = B / K and variance s^2 = m (1 - 1 / K). Were they normal, the fit would follow
    from a likelihood L of log L(k) = (expected - m) (k - m) / v - (k - m)^2 (1 / v - 1 / s^2) / 2, with the fit's variance v, s^2 at most.
    So the joint probability of counts is prod_c L_c(n_c)^(1 / weakened) / n_c!. The sum over the other classes is exact: the products over
    the classes before and after c are convolved along k (forward-backward), in float64.
    """
    classes = expected.shape[-1]
    number, share = torch.arange(batch_size + 1, dtype=torch.float64), 1 / classes
    mean, spread = batch_size * share, batch_size * share * (1 - share)
    off, v = number - mean, variance.double().clamp(max=spread)[..., None]
    score = (expected.double()[..., None] - mean) * off / v - off.square() * (1 / v - 1 / spread) / 2
    score = score / weakened - (number + 1).lgamma()
    own = (score - score.amax(-1, keepdim=True)).exp().clamp(min=TINY)  # (..., K, B + 1)
    start = F.one_hot(torch.tensor(0), batch_size + 1).double().expand_as(own[..., 0, :])
    before, after = [start], [start]
    for one in range(classes - 1):
        before.append(_added(before[-1], own[..., one, :]))
        after.append(_added(after[-1], own[..., classes - 1 - one, :]))
    rest = torch.stack([_added(left, right) for left, right in zip(before, reversed(after), strict=True)], -2)  # the others together
    joint = own * rest.flip(-1)
    return joint / joint.sum(-1, keepdim=True).clamp(min=TINY)


def likeliest(probabilities: Tensor) -> tuple[Tensor, float]:
    """Labels (B,), sorted, of the likeliest counts given P(n_c = k), (K, B + 1), and the fraction of them that is expected to be right."""
    taken, fraction = likeliest_counts(probabilities)
    return torch.arange(len(taken)).repeat_interleave(taken.long()), float(fraction)


def likeliest_counts(probabilities: Tensor) -> tuple[Tensor, Tensor]:
    """Counts (..., K) that match most of the batch on average, and the fraction of it that is expected to be right (...,).

    Of P(n_c = k), (..., K, B + 1): taking class c m_c times gets min(m_c, n_c) right, on average sum_{k <= m_c} P(n_c >= k). So the B pairs
    (c, k) of largest P(n_c >= k) are taken, which falls with k, and their mean is what is expected.
    """
    at_least = _at_least(probabilities)
    size = at_least.shape[-1]
    values, places = at_least.flatten(-2).sort(dim=-1, descending=True, stable=True)
    taken = F.one_hot(places[..., :size] // size, at_least.shape[-2]).sum(-2)
    return taken.double(), values[..., :size].mean(-1)


@cache
def guessed_right(batch_size: int, classes: int) -> float:
    """The fraction of the likeliest labels that is right on average where nothing is known: of one picture 1 / K."""
    nothing = torch.full((classes,), batch_size / classes), torch.full((classes,), torch.inf)
    return likeliest(count_probabilities(*nothing, batch_size))[1]


def expected_right(labels: Tensor, probabilities: Tensor) -> float:
    """The fraction of labels (B,) that is expected to be right, given P(n_c = k) (K, B + 1): sum_c sum_{k <= m_c} P(n_c >= k) / B."""
    at_least = _at_least(probabilities)
    taken = torch.bincount(labels.cpu(), minlength=len(probabilities))  # m_c
    number = torch.arange(1, at_least.shape[1] + 1)
    return float((at_least * (number <= taken.unsqueeze(1))).sum()) / len(labels)


def _at_least(probabilities: Tensor) -> Tensor:
    """P(n_c >= k) (..., K, B) at k from 1 to B, given P(n_c = k) (..., K, B + 1)."""
    return probabilities.flip(-1).cumsum(-1).flip(-1)[..., 1:].clamp(max=1)


def _added(one: Tensor, other: Tensor) -> Tensor:
    """The distributions (..., B + 1) of the sums of two independent counts, up to B, scaled to add up to 1."""
    size = one.shape[-1]
    left, right = one.reshape(1, -1, size), other.reshape(-1, 1, size)
    total = F.conv1d(left, right.flip(-1), padding=size - 1, groups=len(right))[0, :, :size]
    return (total / total.sum(-1, keepdim=True).clamp(min=TINY)).reshape(one.shape)
