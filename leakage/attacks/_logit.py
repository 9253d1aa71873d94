"""What the gradient of a single output says of one picture: the logit, and with it what enters the last layer."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from leakage.networks import k_curve
from leakage.networks.k_curve import Loss


@dataclass(frozen=True)
class LastLayer:
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


def one_output(
    weight: Tensor, gradient: Tensor, labels: list[int], derivative: Callable[[Tensor], Tensor], loss: Loss = "cross-entropy"
) -> list[LastLayer]:
    """Every explanation of the gradient (1, D) of a single output without a bias, for the labels that are possible.

    mu l'(mu) = <gradient, weight> for the loss l; then k = +-l'(mu). `derivative` is that of the activation behind the output, as a
    function of what comes out; the activation must be homogeneous (ReLU, LeakyReLU).
    Source: Zhu and Blaschko 2021, section 3.1 and figure 1.
    """
    found = []
    for label in labels:
        sign = 2 * label - 1
        for mu in k_curve.nearest(loss, float((gradient * weight).sum())):
            k = sign * k_curve.derivative(loss, mu) * derivative(gradient.new_tensor([sign * mu]))
            found.append(LastLayer(label, k, gradient[0] / k, mu))
    return found
