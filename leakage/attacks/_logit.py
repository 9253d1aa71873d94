"""What the gradient of a single output says of one picture: the logit, and with it what enters the last layer."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.optimize import brentq
from torch import Tensor

TURN = 1.2784645427610738  # where mu / (1 + exp(mu)) is largest: mu = 1 + exp(-mu)
FAR = 700.0  # beyond it exp overflows


@dataclass(frozen=True)
class Top:
    """One explanation of the last layer's gradient k x^T.

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
    """Every mu with -mu / (1 + exp(mu)) = c: one for c >= 0, two below; the turning point where noise has put c below the minimum."""

    def gap(mu: float) -> float:
        return -mu / (1 + math.exp(mu)) - c

    if c >= 0:
        return [brentq(gap, -2 * c - 2, 0.0, xtol=1e-300, rtol=1e-15)]
    if gap(TURN) >= 0:
        return [TURN]
    return [brentq(gap, 0.0, TURN, xtol=1e-300, rtol=1e-15), brentq(gap, TURN, FAR, xtol=1e-300, rtol=1e-15)]


def one_output(weight: Tensor, gradient: Tensor, labels: list[int], slope: Callable[[Tensor], Tensor]) -> list[Top]:
    """Every explanation of the gradient (1, D) of a single output without a bias, for the labels that are possible.

    mu l'(mu) = <gradient, weight> for the logistic loss l; then k = +-l'(mu). `slope` is that of the bend behind the output, as a function
    of what comes out; the bend must be homogeneous (ReLU, LeakyReLU).
    Source: Zhu and Blaschko 2021, section 3, equation 5.
    """
    found = []
    for label in labels:
        sign = 2 * label - 1
        for mu in roots(float((gradient * weight).sum())):
            k = -sign / (1 + math.exp(mu)) * slope(gradient.new_tensor([sign * mu]))
            found.append(Top(label, k, gradient[0] / k, mu))
    return found
