"""The labels of one picture that may have several, read from the signs of the last bias's gradient."""

from torch import Tensor

from leakage.engine.core import Observation
from leakage.engine.inapplicable import UnreadableLabelsError
from leakage.engine.label_probes import head
from leakage.engine.logit_layer import logit_layer
from leakage.engine.losses import CustomLoss

SIGNS = "the signs of the last bias's gradient, one for each label"
OF_ONE = (
    "With the loss {}, each picture may have several labels. The signs of the last bias's gradient show them, but only of one picture, and "
    "of a last layer with a bias whose outputs are the logits. Grant the labels instead."
)


def labels_by_signs(seen: Observation, loss: CustomLoss) -> Tensor:
    """Return the labels (1, K), 0 or 1 each, of one picture that may have several, from the gradient of the last bias, dL/dz.

    For binary cross-entropy dL/dz_c = (sigmoid(z_c) - y_c) / K, which is negative exactly where y_c = 1. Raises UnreadableLabelsError for a
    batch, whose derivatives are summed, and without such a bias.
    """
    last = head(seen)
    if seen.batch.size > 1 or last.bias is None or not logit_layer(seen).plain:
        raise UnreadableLabelsError(OF_ONE.format(loss.title))
    return (last.bias < 0).to(last.bias)[None]
