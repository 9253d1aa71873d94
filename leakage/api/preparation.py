"""The preparation of a call: a copy of the model, checked pictures and labels; an error where they cannot be attacked."""

import torch
from torch import Tensor, nn

from leakage.api import input_check
from leakage.api.arguments import ClientArguments, Shape
from leakage.api.loss_check import check_loss, check_searched, custom_loss
from leakage.api.model_check import outputs, prepared
from leakage.api.second_derivative import check_second_derivative
from leakage.engine.core import Attack, Observation
from leakage.engine.logit_layer import last_layer
from leakage.engine.losses import set_loss


def prepare_batch(arguments: ClientArguments, model: nn.Module, x: Tensor, y: Tensor) -> tuple[nn.Module, Tensor, Tensor, int]:
    """Check a batch and make the model ready for it.

    Args:
        arguments: of the call.
        model: the caller's network.
        x: the pictures (B, C, H, W) in [0, 1].
        y: their labels (B,) or (B, K).

    Returns:
        A copy of the model, the pictures in its precision, the labels as int64 (B,) or as floats (B, K), and the number of classes K.

    Raises:
        TypeError, ValueError: when the model, the pictures or the labels cannot be attacked.
    """
    x = input_check.pictures(x)
    x = x.to(next((value.dtype for value in module_of(model).parameters()), x.dtype))
    prepared_model = prepared(model, x, arguments.normalization)
    logits = outputs(prepared_model, x)
    num_classes, loss = logits.shape[1], custom_loss(arguments.loss, logits.shape[1])
    members = arguments.federation.aggregation.members
    if len(x) % members:
        raise ValueError(f"{len(x)} pictures cannot be shared evenly by {members} clients. Give a multiple of {members}.")
    y = input_check.labels(y, x, num_classes, custom=loss is not None)
    if loss:
        check_loss(loss, logits, y)
        set_loss(prepared_model, loss)
    return prepared_model, x, y, num_classes


def check_fit(model: nn.Module, attacker: Attack, seen: Observation, x: Tensor) -> None:
    """Raise ValueError when this attack cannot work on this observation."""
    input_check.check_length(seen.received.update)
    if hasattr(attacker, "steps"):  # it searches
        check_second_derivative(model, x, torch.zeros(len(x), dtype=torch.long, device=x.device))
        check_searched(attacker, seen)
    if seen.granted.labels is None and attacker.reads_labels:
        last_layer(seen)


def random_pictures(model: nn.Module, image_shape: Shape, batch_size: int) -> Tensor:
    """Draw pictures (B, C, H, W) in [0, 1], in the precision and on the device of the model."""
    parameter = next(model.parameters(), torch.zeros(()))
    dtype = parameter.dtype if parameter.is_floating_point() else torch.float32
    return torch.rand((batch_size, *image_shape), generator=torch.Generator().manual_seed(0), dtype=dtype).to(parameter.device)


def module_of(model: object) -> nn.Module:
    """Return the model as a module. Raises TypeError when it is none."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module; got a {type(model).__name__}.")
    return model
