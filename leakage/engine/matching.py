"""What gradient-matching attacks share: starts, distances between updates, a prior on pictures, and when a start has failed."""

from collections.abc import Callable

import torch
from torch import Tensor

from leakage.engine.core import Observation, Params

Distance = Callable[[Params], Tensor]  # update -> scalar
LOST = 1e3  # a pixel beyond this: the optimiser has diverged


def flatten(update: Params) -> Tensor:
    """All entries of an update as one vector (P,)."""
    return torch.cat([value.reshape(-1) for value in update.values()])


def squared_distance(target: Params) -> Distance:
    """||g - g*||^2 over all tensors (Zhu et al. 2019)."""
    wanted = flatten(target).detach()

    def distance(update: Params) -> Tensor:
        return (flatten(update) - wanted).square().sum()

    return distance


def cosine_distance(target: Params) -> Distance:
    """1 - <g, g*> / (||g|| ||g*||), one cosine over all tensors (Geiping et al. 2020)."""
    wanted = flatten(target).detach()
    unit = wanted / wanted.norm()

    def distance(update: Params) -> Tensor:
        flat = flatten(update)
        cosine: Tensor = flat @ unit / flat.norm()
        return 1 - cosine

    return distance


def total_variation(x: Tensor) -> Tensor:
    """Anisotropic total variation: mean |dx| + mean |dy|, each over all its entries; 0 on a constant picture."""
    return (x[..., 1:] - x[..., :-1]).abs().mean() + (x[..., 1:, :] - x[..., :-1, :]).abs().mean()


def normal_start(seen: Observation, rng: torch.Generator) -> Tensor:
    """Pictures ~ N(0, 1) in the model's own (normalised) space: (B, C, H, W)."""
    return torch.randn((seen.batch_size, *seen.image_shape), generator=rng).to(seen.device)


def box(seen: Observation) -> tuple[Tensor, Tensor]:
    """The pixels 0 and 1 in normalised space, (1, C, 1, 1) each."""
    mean, std = seen.scale
    return -mean / std, (1 - mean) / std


def to_pixels(seen: Observation) -> Callable[[Tensor], Tensor]:
    """The map from normalised space to pixels; the identity for a model that takes raw pixels."""
    mean, std = seen.scale
    if bool((mean == 0).all() and (std == 1).all()):
        return lambda z: z
    return lambda z: z * std + mean


def lost(x: Tensor, loss: float) -> bool:
    """Whether this start has diverged: the loss is not finite, or a pixel lies beyond LOST."""
    return loss != loss or loss == float("inf") or not bool(torch.isfinite(x).all()) or float(x.abs().max()) > LOST
