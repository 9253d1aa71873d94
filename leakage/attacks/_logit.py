"""The logit of one picture, and the input of the last layer, from the gradient of a single output."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from leakage.networks import k_curve
from leakage.networks.k_curve import Loss


@dataclass(frozen=True)
class LastLayer:
    """One explanation of the last layer's gradient k x^T: a label, k and x that would give this gradient.

    label    the class
    k        dL/dz for the layer's output z, (K,)
    x        the input of that layer, (D,)
    mu       the logit times +1 for label 1 and -1 for label 0; None for a network with several outputs
    """

    label: int
    k: Tensor
    x: Tensor
    mu: float | None = None


def one_output(
    weight: Tensor, gradient: Tensor, labels: list[int], derivative: Callable[[Tensor], Tensor], loss: Loss = "cross-entropy"
) -> list[LastLayer]:
    """Return every explanation (label, dL/dz, input) of the gradient of a last layer with a single output and no bias.

    mu, the logit times +1 for label 1 and -1 for label 0, solves mu l'(mu) = <gradient, weight> for the loss l; then dL/dz = +-l'(mu).
    Source: Zhu and Blaschko 2021, section 3.1 and figure 1.

    Args:
        weight: the last layer's weight, (1, D).
        gradient: the gradient of that weight, (1, D).
        labels: the possible labels, each 0 or 1.
        derivative: the derivative of the activation after the output, as a function of the activation's result; the activation has to be
            homogeneous (ReLU, LeakyReLU).
        loss: the client's loss.
    """
    found = []
    for label in labels:
        sign = 2 * label - 1
        for mu in k_curve.nearest(loss, float((gradient * weight).sum())):
            k = sign * k_curve.derivative(loss, mu) * derivative(gradient.new_tensor([sign * mu]))
            found.append(LastLayer(label, k, gradient[0] / k, mu))
    return found
