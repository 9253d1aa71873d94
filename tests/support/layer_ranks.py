"""The layers of a network that a test writes down, and the rank of their equations by singular values."""

import torch

from leakage.engine.equations import gradient_rows, weight_rows
from leakage.networks.grammar import Map, parse, unroll
from leakage.networks.templates import TEMPLATES


def maps(text: str, shape: tuple[int, int, int] = (3, 32, 32), outputs: int = 10) -> tuple[Map, ...]:
    return unroll(parse(TEMPLATES.get(text, text)), shape, outputs)


def numerical_rank(layer: Map, seed: int) -> int:
    """Count the singular values above 1e-12 of the largest, for a random derivative k and random weights, in float64."""
    rng = torch.Generator().manual_seed(seed)
    (channels, *sides), (filters, *after) = layer.x, layer.z
    k = torch.randn(filters, *after, generator=rng, dtype=torch.float64)
    w = torch.randn(filters, channels, layer.size, layer.size, generator=rng, dtype=torch.float64)
    k0 = gradient_rows(k, layer.size, layer.stride, layer.padding, tuple(sides))
    gradient = torch.kron(torch.eye(channels, dtype=torch.float64), k0)  # (Ci Co s^2, Ci H W)
    values = torch.linalg.svdvals(torch.cat((gradient, weight_rows(w, layer.stride, layer.padding, tuple(sides)))))
    return int((values > 1e-12 * values[0]).sum())
