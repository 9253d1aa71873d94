"""The first fully connected layer with ReLU behind it, whatever network it stands in, and what a guess sends into it."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from leakage.engine.core import Normalise, Observation

NEEDS = "This attack tells the pictures of a batch apart by the zeros that ReLU leaves in the gradient of a fully connected layer. "
NONE = NEEDS + "This network has no such layer. Choose the MLP with ReLU."
OTHER = NEEDS + "Here {} follows, which leaves none. Choose ReLU."
NO_BIAS = NEEDS + "Here {} has no bias, which would say how bright each picture is. Choose a network with biases."


@dataclass(frozen=True)
class ReluLayer:
    """Where the attack works.

    name     of the layer: its parameters are `name`.weight (m, n) and `name`.bias (m,)
    direct   whether the picture itself enters it, normalised; else features of it do
    """

    name: str
    direct: bool


class _ReachedError(Exception):
    """Nothing behind the layer has to be computed."""


def relu_layer(seen: Observation) -> ReluLayer:
    """The first of them in the order in which the network calls its layers. Raises ValueError, with a sentence, where there is none."""
    called: list[tuple[str, nn.Module]] = []

    def note(name: str) -> Callable[..., None]:
        return lambda layer, *_: called.append((name, layer))

    single = [(name, layer) for name, layer in seen.model.named_modules() if not list(layer.children())]
    hooks = [layer.register_forward_hook(note(name)) for name, layer in single]
    try:
        with torch.no_grad():
            seen.model(torch.zeros(seen.batch_size, *seen.image_shape, device=seen.device, dtype=seen.dtype))
    finally:
        for hook in hooks:
            hook.remove()
    direct, why = True, NONE
    for (name, layer), (_, behind) in pairwise(called):
        if isinstance(layer, nn.Linear):
            if isinstance(behind, nn.ReLU) and layer.bias is not None:
                return ReluLayer(name, direct)
            if why == NONE and behind is not called[-1][1]:
                why = NO_BIAS.format(name) if isinstance(behind, nn.ReLU) else OTHER.format(type(behind).__name__)
        direct = direct and isinstance(layer, Normalise | nn.Flatten | nn.Identity | nn.Dropout)
    raise ValueError(why)


def entering(seen: Observation, name: str, x: Tensor) -> Tensor:
    """What pictures x (B, C, H, W) in pixels send into the layer: (B, n)."""
    reached: list[Tensor] = []

    def stop(_: nn.Module, given: tuple[Any, ...]) -> None:
        reached.append(given[0])
        raise _ReachedError

    hook = seen.model.get_submodule(name).register_forward_pre_hook(stop)
    try:
        seen.model(x)
    except _ReachedError:
        pass
    finally:
        hook.remove()
    return reached[0]
