"""What several checks read from a received model: the rows of its first layer, its last layer, and the gradients of single pictures."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from leakage.engine.client import single_gradients, weights_of
from leakage.engine.core import Handed, Params, UnreadableLabelsError
from leakage.engine.logit_layer import LogitLayer, logit_layer_of

LEAST = 9  # numbers of a row, as in a 3x3 kernel on a grey picture: shorter rows are alike, or have one large number, by chance
PROBED = 4  # pictures at a time with which the last layer is found


def first_rows(model: nn.Module) -> Tensor | None:
    """Return the kernels of the first convolution, or the rows of the first linear layer, whichever comes first in the model.

    Returns:
        (K, n), a row for each channel or unit, in float32 or float64; None if there is no such layer, or rows have under LEAST numbers.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear):
            rows = layer.weight.detach().flatten(1)  # (K, n)
            return rows.to(torch.promote_types(rows.dtype, torch.float32)) if rows.shape[1] >= LEAST else None
    return None


def head_of(handed: Handed) -> LogitLayer | None:
    """Return the names of the parameters of the linear layer that computes the logits; None if the received model has no such layer."""
    try:
        return logit_layer_of(handed.model, handed.x[:PROBED])
    except UnreadableLabelsError:
        return None


def picture_gradients(handed: Handed) -> Iterator[Params] | None:
    """Return the gradient of each of the client's pictures alone; None if BatchNorm mixes the pictures of a batch."""
    if any(isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.training for layer in handed.model.modules()):
        return None
    return single_gradients(handed.model, weights_of(handed.model), handed.x, handed.y)
