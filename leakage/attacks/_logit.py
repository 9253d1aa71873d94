"""What the last layer's gradient says of one picture: the label, the logit, the features that enter that layer."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from scipy.optimize import brentq
from torch import Tensor

from leakage.engine.chain import Link

TURN = 1.2784645427610738  # where mu / (1 + exp(mu)) is largest: mu = 1 + exp(-mu)
FAR = 700.0  # beyond it exp overflows
SCALES = torch.logspace(-4, 4, 2001, dtype=torch.float64)  # lengths of the features that are tried


@dataclass(frozen=True)
class Top:
    """One explanation of the last layer's gradient.

    label    the class
    k        dL/dz of the last layer, (K,)
    x        what enters that layer, (D,)
    mu       the logit times +1 or -1 by label, of a network with one output; else None
    """

    label: int
    k: Tensor
    x: Tensor
    mu: float | None = None


def roots(c: float) -> list[float]:
    """Every mu with -mu / (1 + exp(mu)) = c: one for c >= 0, two below; the turning point where noise has put c below the minimum.

    mu l'(mu) = <g, w> for the logistic loss l and the last layer's gradient g and weight w (Zhu and Blaschko 2021, equation 5).
    """

    def gap(mu: float) -> float:
        return -mu / (1 + math.exp(mu)) - c

    if c >= 0:
        return [brentq(gap, -2 * c - 2, 0.0, xtol=1e-300, rtol=1e-15)]
    if gap(TURN) >= 0:
        return [TURN]
    return [brentq(gap, 0.0, TURN, xtol=1e-300, rtol=1e-15), brentq(gap, TURN, FAR, xtol=1e-300, rtol=1e-15)]


def tops(last: Link, weight: Tensor, gradient: Tensor, bias: Tensor | None, labels: list[int]) -> list[Top]:
    """Every explanation, for the labels that are possible. weight, gradient (K, D); bias: the gradient of the bias (K,), or None.

    With a bias k is its gradient. One output without: k follows from mu. More outputs without: from the length of the features.
    """
    if bias is not None:
        return [Top(label, bias, bias @ gradient / bias.square().sum()) for label in labels[:1]]
    if len(weight) > 1:
        return softmax_tops(last, weight, gradient)
    found = []
    for label in labels:
        sign = 2 * label - 1
        for mu in roots(float((gradient * weight).sum())):
            logit = gradient.new_tensor([sign * mu])
            k = -sign / (1 + math.exp(mu)) * last.slope(last.before(logit))  # a bend behind the last layer is homogeneous
            found.append(Top(label, k, gradient[0] / k, mu))
    return found


def softmax_tops(last: Link, weight: Tensor, gradient: Tensor) -> list[Top]:
    """One picture, cross-entropy over K outputs without a bias: gradient = k x^T with k = softmax(W x) - e_label, times the bend's slope.

    The direction of x and of k follow from the singular vectors; k has one negative entry, the label. The length t of x solves
    softmax(t W u) - e_label = k / t along k: every change of sign on a grid, refined; those that fit all of k come first.
    """
    left, length, right = torch.linalg.svd(gradient, full_matrices=False)
    k, u = left[:, 0] * length[0], right[0]
    if int((k < 0).sum()) != 1:
        k, u = -k, -u
    label = int(k.argmin())
    slope = last.slope(weight @ u)
    logits, whole, k = weight @ u * slope, k, k / slope.clamp(min=1e-12)

    def off(t: float) -> Tensor:
        p = (t * logits).softmax(0)
        p[label] = -(p.sum() - p[label])  # softmax - 1, without cancelling
        return p - k / t

    def along(t: float) -> float:
        return float(off(t) @ k)

    values = [along(float(t)) for t in SCALES]
    lengths = [_refined(along, float(SCALES[n]), float(SCALES[n + 1])) for n in range(len(values) - 1) if values[n] * values[n + 1] <= 0]
    lengths.sort(key=lambda t: float(off(t).norm()) * t)
    return [Top(label, whole / t, u * t) for t in lengths[:2]] or [Top(label, whole, u)]


def _refined(gap: Callable[[float], float], low: float, high: float) -> float:
    return low if gap(low) == 0 else high if gap(high) == 0 else float(brentq(gap, low, high, rtol=1e-15))
