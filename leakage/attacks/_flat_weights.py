"""The weights of a generator as one row of unknowns, and what it generates with others in their place."""

import torch
from torch import Tensor, nn
from torch.func import functional_call


def flat_weights(network: nn.Module) -> Tensor:
    """All weights of a network, one after the other: (1, P)."""
    return torch.cat([weight.detach().flatten() for weight in network.parameters()])[None]


def generate_with(network: nn.Module, flat: Tensor, v: Tensor) -> Tensor:
    """What a network makes of v with the weights (1, P) in place of its own, which stay as they are."""
    own = dict(network.named_parameters())
    parts = flat[0].split([weight.numel() for weight in own.values()])
    weights = {name: part.view_as(own[name]) for name, part in zip(own, parts, strict=True)}
    x: Tensor = functional_call(network, weights, (v,))
    return x
