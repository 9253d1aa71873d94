"""The check of a loss from the caller: a function that the attacks can use, or an error that says why they cannot."""

import warnings

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.engine.core import Attack, Observation, generator
from leakage.engine.losses import CustomLoss, client_loss

FAILS = (RuntimeError, ValueError, TypeError, IndexError, AttributeError, AssertionError)
SEARCHED = (
    "This attack searches labels as probabilities (B, K), which the loss does not take ({}). Grant the labels: "
    "threat_model=ThreatModel(labels=True)."
)


def custom_loss(given: object, num_classes: int) -> CustomLoss | None:
    """Return the loss that the caller gave; None for the mean cross-entropy, which is the default. Raises TypeError."""
    if given is None:
        return None
    if not callable(given):
        raise TypeError(f"loss must be a function of (logits (B, K), y) that gives one number; got a {type(given).__name__}.")
    if _is_cross_entropy(given, num_classes):
        return None
    return CustomLoss(given, _title(given), shows_labels=_shows_labels(given, num_classes))


def check_loss(loss: CustomLoss, logits: Tensor, y: Tensor) -> None:
    """Raise ValueError unless the loss of logits (B, K) and labels y is a single finite number that depends on the logits."""
    z = logits.detach().clone().requires_grad_()
    try:
        value = loss.function(z, y)
    except FAILS as error:
        raise ValueError(
            f"loss fails on logits {tuple(z.shape)} and labels {tuple(y.shape)} of {y.dtype}: {_line(error)}. "
            "Give labels (B,) as whole numbers, or numbers (B, K), as the loss takes them."
        ) from None
    if not isinstance(value, Tensor) or value.dim() or not bool(value.isfinite()):
        got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) and value.dim() else repr(value)
        raise ValueError(f"loss must give one finite number, a tensor without dimensions; got {got}. Take its mean or its sum.")
    if not value.requires_grad:
        raise ValueError("loss does not depend on the logits in a way that can be differentiated. Detach nothing in it, and round nothing.")
    with torch.no_grad():
        again = loss.function(z, y)
    if not torch.equal(again, value.detach()):
        raise ValueError("loss gives another number when it is called again: nobody could replay the client. Take its randomness out.")


def check_searched(attacker: Attack, seen: Observation) -> None:
    """Raise ValueError where this attack cannot search: the loss has no second derivative, or takes no probabilities."""
    loss = client_loss(seen.model)
    if not isinstance(loss, CustomLoss):
        return
    z = torch.randn((seen.batch.size, seen.batch.num_classes), generator=generator(0, "loss")).to(seen.device, seen.dtype).requires_grad_()
    y = z.detach().softmax(1) if seen.granted.labels is None else seen.granted.labels
    if seen.granted.labels is None and not attacker.reads_labels:
        try:
            check_loss(loss, z, y)
        except ValueError as error:
            raise ValueError(SEARCHED.format(error)) from None
    elif seen.granted.labels is None:  # `last_layer` raises the error of an attack that reads labels
        return
    try:
        # without this factor a derivative that cannot be differentiated looks like a constant
        factor = torch.ones_like(z[0, 0]).detach().requires_grad_()
        (first,) = torch.autograd.grad(factor * loss.function(z, y), z, create_graph=True)
        first.square().sum().backward()
    except FAILS as error:
        raise ValueError(
            f"loss has no second derivative, which an attack that searches needs ({_line(error)}). Write it by torch's functions."
        ) from None


def _is_cross_entropy(given: object, num_classes: int) -> bool:
    """Return whether a loss equals the mean cross-entropy on random logits: for three pictures, for one, and for every class."""
    assert callable(given)
    rng = generator(0, "cross-entropy")
    batches = [torch.randint(num_classes, (3,), generator=rng), torch.randint(num_classes, (1,), generator=rng), torch.arange(num_classes)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # squared error warns of labels (B,), which do not have the shape of the logits
        try:
            for y in batches:
                z = 3 * torch.randn((len(y), num_classes), generator=rng)
                if not torch.allclose(given(z, y), F.cross_entropy(z, y), rtol=1e-5):
                    return False
        except FAILS:  # the loss takes no classes, or is on another device
            return False
    return True


def _shows_labels(given: object, num_classes: int) -> bool:
    """Return whether the derivative of a loss by each logit is negative exactly where the label is 1, on random logits and labels."""
    assert callable(given)
    rng = generator(0, "signs")
    for count in (1, 1, 3):
        z = 3 * torch.randn((count, num_classes), generator=rng)
        y = torch.randint(2, (count, num_classes), generator=rng).to(z.dtype)
        z.requires_grad_()
        try:
            (gradient,) = torch.autograd.grad(given(z, y), z)
        except FAILS:  # the loss takes no labels of several classes
            return False
        if not torch.equal(gradient < 0, y > 0) or not bool((gradient != 0).all()):
            return False
    return True


def _title(given: object) -> str:
    name = getattr(given, "__name__", type(given).__name__)
    return "a function of the caller" if name == "<lambda>" else str(name)


def _line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")
