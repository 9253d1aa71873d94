"""What an update says before any attack: states of the model in which a finding would mean little, and the labels."""

import torch
from torch import Tensor

from leakage.api.reading import UpdateReading
from leakage.engine.core import Observation
from leakage.engine.logit_layer import last_layer

VANISHED = 1e-6  # length of an update as a fraction of the length of its weights, below which rounding hides what it says
FADED = (
    "The update is {:.1g} times as long as the weights: the activations vanish in this model. Rounding hides what such an update says, so "
    "no finding on this model means much. Audit trained weights."
)
ZERO_HEAD = (
    "The last layer has weights of 0, so no gradient reaches the layers before it: in this round only the last layer's own gradient "
    "arrives. After one step of training more arrives. Audit the model of a later round too."
)
FROZEN = (
    "Only the last layer is trained, so the client sends nothing of the layers before it. The gradient of the last layer reveals labels, "
    "and the numbers that enter the layer, but no pixels."
)


def notices(seen: Observation, *, complete: bool) -> list[str]:
    """Return sentences on states of the model that limit what an audit can find.

    Args:
        seen: what the server has.
        complete: whether the client sends all parameters of the model.
    """
    gradient, weights = seen.as_gradient(), seen.received.weights
    found = list[str]()
    fraction = _length(gradient) / max(_length(weights), 1e-300)
    if fraction < VANISHED:
        found.append(FADED.format(fraction))
    try:
        name, _ = last_layer(seen)
    except ValueError:
        return found
    layer = name.rpartition(".")[0]
    others = {key: value for key, value in gradient.items() if key.rpartition(".")[0] != layer}
    if not others and not complete:
        found.append(FROZEN)
    elif others and not any(bool(value.any()) for value in others.values()) and not bool(weights[name].any()):
        found.append(ZERO_HEAD)
    return found


def labels_sentence(read: UpdateReading, true: list[int]) -> str:
    """Describe the labels that the update reveals without an attack, and how many of them are right.

    Args:
        read: what the update says by itself.
        true: the true classes.
    """
    if read.labels is None:
        return f"Labels: not read from the update. {read.rule}"
    right = sum(min(read.labels.count(label), true.count(label)) for label in set(true))
    wrong = f", {len(read.labels) - right} wrong" if len(read.labels) > right else ""
    return f"Labels (the classes of the pictures): {right} of {len(true)} read right from the update{wrong}, by this rule: {read.rule}."


def _length(tensors: dict[str, Tensor]) -> float:
    return float(torch.stack([value.detach().double().square().sum() for value in tensors.values()]).sum().sqrt())
