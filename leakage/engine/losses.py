"""The loss that a client minimizes: cross-entropy, another loss of a network with one output, or a loss passed to the API."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.chain import TwoClasses
from leakage.engine.inapplicable import UnreadableLabelsError
from leakage.networks.k_curve import Loss

OF_MARGIN: dict[Loss, Callable[[Tensor], Tensor]] = {  # of mu = +-z
    "cross-entropy": lambda mu: F.softplus(-mu),
    "exponential": lambda mu: (-mu).exp(),
    "hinge": lambda mu: (1 - mu).relu(),
}


@dataclass(frozen=True, eq=False)
class CustomLoss:
    """A loss that the caller of the API passed; a client minimizes it on each batch.

    Args:
        function: (logits (B, K), labels (B,) or (B, K)) -> a scalar
        title: its name where assumptions are printed
        shows_labels: whether, for labels of 0 and 1 (B, K), dL/dz is negative exactly where the label is 1, as of binary cross-entropy
    """

    function: Callable[[Tensor, Tensor], Tensor]
    title: str
    shows_labels: bool = False


UNREAD = (
    "Labels are read from the gradient of cross-entropy, and this client minimises another loss ({}). Grant them to the attacker, or "
    "choose an attack that searches labels together with the pictures, such as dlg."
)


def set_loss(model: nn.Module, loss: CustomLoss) -> None:
    """Set the loss that clients of this model, and of its later copies, minimize."""
    model.__dict__["client_loss"] = loss


def client_loss(model: nn.Module) -> Loss | CustomLoss:
    """Return the loss that clients of this model minimize: the loss that was set, else that of `TwoClasses`, else cross-entropy."""
    custom: list[Loss | CustomLoss] = [layer.__dict__["client_loss"] for layer in model.modules() if "client_loss" in layer.__dict__]
    named = [layer.loss for layer in model.modules() if isinstance(layer, TwoClasses)]
    return [*custom, *named, "cross-entropy"][0]


def loss_of(model: nn.Module) -> Loss:
    """Return the loss of a model for code that needs its formula. Raises UnreadableLabelsError for a CustomLoss."""
    loss = client_loss(model)
    if isinstance(loss, CustomLoss):
        raise UnreadableLabelsError(UNREAD.format(loss.title))
    return loss


def classes_of(y: Tensor) -> Tensor:
    """Return the class of each picture, (B,), given labels (B,) or probabilities (B, K); the likeliest class for probabilities."""
    return y.argmax(1) if y.dim() == 2 else y


def fractions_of(y: Tensor, num_classes: int) -> Tensor:
    """Return the fraction of each picture that belongs to each class, (B, K): probabilities unchanged, labels (B,) as one-hot vectors."""
    return y if y.dim() == 2 else F.one_hot(y, num_classes).to(torch.get_default_dtype())


def batch_loss(loss: Loss | CustomLoss, logits: Tensor, y: Tensor) -> Tensor:
    """Return the loss of a batch: the mean over its pictures, or the value of a CustomLoss.

    Args:
        loss: "cross-entropy", "exponential" or "hinge", or a CustomLoss. With mu = z for class 1 and mu = -z for class 0, the loss of two
            logits (0, z) is log(1 + exp(-mu)), exp(-mu) or max(0, 1 - mu).
        logits: (B, K); for the exponential and the hinge loss the logits of two classes, (0, z).
        y: labels (B,), or probabilities (B, K): each picture then counts for both classes, weighted by probability.

    Returns:
        A scalar.
    """
    if isinstance(loss, CustomLoss):
        return loss.function(logits, y)
    if loss == "cross-entropy":
        return F.cross_entropy(logits, y)
    z = logits[:, 1] - logits[:, 0]
    each = torch.stack([OF_MARGIN[loss](-z), OF_MARGIN[loss](z)], 1)  # (B, 2), by class
    fraction = y if y.is_floating_point() else F.one_hot(y, 2).to(each.dtype)
    return (fraction * each).sum(1).mean()


def derivatives_by_class(loss: Loss, logits: Tensor) -> Tensor:
    """Return dL/dz of a single output z for a picture of class 0 and for a picture of class 1, (P, 2), at logits (P, 2)."""
    z = (logits[:, 1] - logits[:, 0]).detach().requires_grad_()
    with torch.enable_grad():
        derivatives = [torch.autograd.grad(OF_MARGIN[loss](sign * z).sum(), z)[0] for sign in (-1, 1)]
    return torch.stack(derivatives, 1)
