"""What a client's gradient is the gradient of: cross-entropy, or another loss of a network with one output."""

from collections.abc import Callable

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


def loss_of(model: nn.Module) -> Loss:
    """What this model is trained by: cross-entropy, unless it has one output and says otherwise."""
    return next((layer.loss for layer in model.modules() if isinstance(layer, TwoClasses)), "cross-entropy")


def mean_loss(loss: Loss, logits: Tensor, y: Tensor) -> Tensor:
    """The mean over a batch.

    Args:
        loss: log(1 + exp(-mu)) summed over classes (cross-entropy), exp(-mu) or max(0, 1 - mu).
        logits: (B, K); for another loss than cross-entropy those of two classes, (0, z).
        y: labels (B,), or probabilities (B, K): then each picture counts for both classes, as much as it is likely to be in them.

    Returns:
        A scalar.
    """
    if loss == "cross-entropy":
        return F.cross_entropy(logits, y)
    z = logits[:, 1] - logits[:, 0]
    each = torch.stack([OF_MARGIN[loss](-z), OF_MARGIN[loss](z)], 1)  # (B, 2), by class
    share = y if y.is_floating_point() else F.one_hot(y, 2).to(each.dtype)
    return (share * each).sum(1).mean()


def slopes_by_class(loss: Loss, logits: Tensor) -> Tensor:
    """dL/dz of one output at logits (P, 2), for either class: (P, 2)."""
    z = (logits[:, 1] - logits[:, 0]).detach().requires_grad_()
    with torch.enable_grad():
        found = [torch.autograd.grad(OF_MARGIN[loss](sign * z).sum(), z)[0] for sign in (-1, 1)]
    return torch.stack(found, 1)
