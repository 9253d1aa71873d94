"""What a client's gradient is the gradient of: cross-entropy, or another loss of a network with one output."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.chain import TwoClasses
from leakage.networks.k_curve import Loss

OF_MARGIN: dict[Loss, Callable[[Tensor], Tensor]] = {  # of mu = +-z
    "cross-entropy": lambda mu: F.softplus(-mu),
    "exponential": lambda mu: (-mu).exp(),
    "hinge": lambda mu: (1 - mu).relu(),
}


@dataclass(frozen=True, eq=False)
class CustomLoss:
    """A loss that the caller of the API gave: what a client minimises on one batch.

    Args:
        function: (logits (B, K), labels (B,) or (B, K)) -> a scalar
        title: what it is called where assumptions are printed
    """

    function: Callable[[Tensor, Tensor], Tensor]
    title: str


UNREAD = (
    "Labels are read from the gradient of cross-entropy, and this client minimises another loss ({}). Grant them to the attacker, or "
    "choose an attack that searches labels together with the pictures, such as dlg."
)


def set_loss(model: nn.Module, loss: CustomLoss) -> None:
    """From now on clients of this model, and of its copies, minimise `loss`."""
    model.__dict__["client_loss"] = loss


def client_loss(model: nn.Module) -> Loss | CustomLoss:
    """What this model is trained by: cross-entropy, unless one was set, or it has one output and names another."""
    custom: list[Loss | CustomLoss] = [layer.__dict__["client_loss"] for layer in model.modules() if "client_loss" in layer.__dict__]
    named = [layer.loss for layer in model.modules() if isinstance(layer, TwoClasses)]
    return [*custom, *named, "cross-entropy"][0]


def loss_of(model: nn.Module) -> Loss:
    """The same for what works with the loss's formula. Raises ValueError for a CustomLoss."""
    loss = client_loss(model)
    if isinstance(loss, CustomLoss):
        raise ValueError(UNREAD.format(loss.title))
    return loss


def classes_of(y: Tensor) -> Tensor:
    """The class of each picture (B,); of probabilities (B, K) the likeliest."""
    return y.argmax(1) if y.dim() == 2 else y


def fractions_of(y: Tensor, num_classes: int) -> Tensor:
    """How much each picture belongs to each class, (B, K): probabilities as they are, of labels (B,) a 1 at the class."""
    return y if y.dim() == 2 else F.one_hot(y, num_classes).to(torch.get_default_dtype())


def batch_loss(loss: Loss | CustomLoss, logits: Tensor, y: Tensor) -> Tensor:
    """The loss of a batch: its mean, or what a CustomLoss makes of it.

    Args:
        loss: log(1 + exp(-mu)) summed over classes (cross-entropy), exp(-mu) or max(0, 1 - mu), or a CustomLoss.
        logits: (B, K); for the exponential and the hinge loss those of two classes, (0, z).
        y: labels (B,), or probabilities (B, K): then each picture counts for both classes, as much as it is likely to be in them.

    Returns:
        A scalar.
    """
    if isinstance(loss, CustomLoss):
        return loss.function(logits, y)
    if loss == "cross-entropy":
        return F.cross_entropy(logits, y)
    z = logits[:, 1] - logits[:, 0]
    each = torch.stack([OF_MARGIN[loss](-z), OF_MARGIN[loss](z)], 1)  # (B, 2), by class
    share = y if y.is_floating_point() else F.one_hot(y, 2).to(each.dtype)
    return (share * each).sum(1).mean()


def derivatives_by_class(loss: Loss, logits: Tensor) -> Tensor:
    """dL/dz of one output at logits (P, 2), for either class: (P, 2)."""
    z = (logits[:, 1] - logits[:, 0]).detach().requires_grad_()
    with torch.enable_grad():
        found = [torch.autograd.grad(OF_MARGIN[loss](sign * z).sum(), z)[0] for sign in (-1, 1)]
    return torch.stack(found, 1)
