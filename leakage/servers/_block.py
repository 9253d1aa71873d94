"""A block of layers in front of a network: pictures go through it before they enter the network."""

from collections import OrderedDict
from collections.abc import Mapping
from statistics import NormalDist

from torch import nn

from leakage.spec.words import too_large_block


def refuse_large_block(name: str, pixels: int, units: int, *, inputs: int = 0) -> None:
    """Raise ValueError if the layers of a block have too many weights; the arguments are those of `too_large_block`."""
    if words := too_large_block(name, pixels, units, inputs=inputs):
        raise ValueError(words)


def put_in_front(name: str, layers: Mapping[str, nn.Module], model: nn.Module) -> nn.Sequential:
    """Return a network that sends pictures through a block of layers before they enter `model`.

    Args:
        name: the name of the block in the network.
        layers: name -> layer, in order: pictures (B, C, H, W) -> tensors of the same shape.
        model: the network; its layers keep their names if it is a plain sequence of layers, else they get the prefix "body.".
    """
    plain = type(model) is nn.Sequential and not model._forward_pre_hooks and not model._forward_hooks
    parts = model.named_children() if plain else [("body", model)]
    return nn.Sequential(OrderedDict([(name, nn.Sequential(OrderedDict(layers))), *parts]))


def normal_edges(bins: int, mean: float, deviation: float) -> list[float]:
    """Return the lower edges of bins that a normally distributed number falls into equally often; the first bin has no lower edge (-inf).

    >>> [round(edge, 3) for edge in normal_edges(4, 0.5, 0.1)]
    [-inf, 0.433, 0.5, 0.567]
    """
    law = NormalDist(mean, deviation)
    return [float("-inf"), *(law.inv_cdf(number / bins) for number in range(1, bins))]
