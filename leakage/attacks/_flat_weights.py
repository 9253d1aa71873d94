"""The weights of a generator as a row of unknowns, and the generator's output with other weights."""

import torch
from torch import Tensor, nn
from torch.func import functional_call


def flat_weights(network: nn.Module) -> Tensor:
    """Concatenate all weights of a network: (1, P)."""
    return torch.cat([weight.detach().flatten() for weight in network.parameters()])[None]


def generate_with(network: nn.Module, flat: Tensor, v: Tensor) -> Tensor:
    """Compute a network's output for v with the weights `flat` (1, P), without changing the network."""
    parameters = dict(network.named_parameters())
    parts = flat[0].split([weight.numel() for weight in parameters.values()])
    weights = {name: part.view_as(parameters[name]) for name, part in zip(parameters, parts, strict=True)}
    x: Tensor = functional_call(network, weights, (v,))
    return x
