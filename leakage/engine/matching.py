"""What gradient-matching attacks share: initial pictures, distances between gradients, priors on pictures, and a test for divergence.

Distances and priors work on S guesses at once (lanes): gradients have S in front of every shape, pictures are (S, B, C, H, W), and the
result is (S,).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.core import Observation, Params
from leakage.engine.whole_distance import Distance, WholeDistance, flatten

LOST = 1e3  # a pixel of larger magnitude means that the optimiser has diverged
DISTANCES = ("cosine", "squared", "absolute", "largest", "cosine per layer")
LAYERS = ("all", "largest 10", "largest 50", "first half", "last half")
WEIGHTS = ("equal", "linear", "exponential")
STARTS = ("normal", "uniform", "grey", "tiles")
TILE = 4  # pixels of a side of a tile
NONSMOOTH = (nn.ReLU, nn.LeakyReLU, nn.MaxPool2d)  # piecewise linear: second derivatives are zero or undefined


def squared_distance(target: Params, entry_weights: Params | None = None) -> Distance:
    """Return the function g -> ||g - g*||^2 over all tensors, for one gradient g; g* is `target`, `entry_weights` as in `distance`.

    Source: Zhu et al. 2019.
    """
    return _single(distance("squared", target, entry_weights=entry_weights))


def cosine_distance(target: Params, entry_weights: Params | None = None) -> Distance:
    """Return the function g -> 1 - <g, g*> / (||g|| ||g*||) for one gradient g; the other arguments are those of `squared_distance`.

    It is one cosine over all tensors.
    Source: Geiping et al. 2020.
    """
    return _single(distance("cosine", target, entry_weights=entry_weights))


def _single(lanes: Distance) -> Distance:
    return lambda update: lanes({name: value.unsqueeze(0) for name, value in update.items()})[0]


def distance(kind: str, target: Params, importance: Mapping[str, float] | None = None, entry_weights: Params | None = None) -> Distance:
    """Return a function that computes the distance (S,) of S gradients g from the gradient g* = `target`.

    cosine            1 - <g, g*> / (||g|| ||g*||), sums over all tensors
    squared           sum of (g - g*)^2
    absolute          sum of |g - g*|
    largest           sum over the tensors of max |g - g*|
    cosine per layer  mean over the tensors of 1 - cos(g_l, g*_l)

    Args:
        kind: one of DISTANCES.
        target: g*, by parameter.
        importance: parameter -> weight of the tensor; tensors that are not named are left out. None: every tensor has weight 1.
        entry_weights: weights of the errors of single entries, by parameter and of its shape; tensors that are not named have weight 1.
            Both cosine distances only leave out the entries of weight 0, because a cosine needs the true size of every other entry.

    Source: Geiping et al. 2020, reference implementation.
    """
    weights = {name: 1.0 for name in target} if importance is None else dict(importance)
    kept = {name: target[name].detach() for name in weights}
    by_entry = {name: (entry_weights or {}).get(name, torch.ones_like(value)) for name, value in kept.items()}
    if "cosine" in kind:
        by_entry = {name: (weight > 0).to(weight) for name, weight in by_entry.items()}
    products = {name: weights[name] * weight for name, weight in by_entry.items()}
    if kind in ("cosine", "squared", "absolute"):
        equal = not entry_weights and all(weight == 1 for weight in weights.values())
        return WholeDistance.of(kind, kept, None if equal else flatten(products).to(flatten(kept)))

    def per_layer(update: Params) -> Tensor:
        parts = []
        for name, value in kept.items():
            g, wanted, weight = update[name].reshape(len(update[name]), -1), value.flatten(), products[name].flatten()
            if kind == "largest":
                parts.append((weight * (g - wanted).abs()).amax(1))
            else:
                mask = by_entry[name].flatten()
                parts.append(weights[name] * (1 - F.cosine_similarity(mask * g, (mask * wanted)[None], dim=1)) / len(kept))
        return torch.stack(parts).sum(0)

    return per_layer


@dataclass(frozen=True)
class Smoothness:
    """The prior `weight` times the total variation, (S,) of S guesses (S, B, C, H, W), with its derivative."""

    weight: float

    def __call__(self, x: Tensor) -> Tensor:
        return self.weight * total_variation(x)

    def derivative(self, x: Tensor) -> Tensor:
        """Return the derivative by the guesses, of their shape."""
        across, down = (x[..., 1:] - x[..., :-1]).sign_(), (x[..., 1:, :] - x[..., :-1, :]).sign_()
        derivative = torch.zeros_like(x)
        for signs, before, after in (
            (across, derivative[..., :-1], derivative[..., 1:]),
            (down, derivative[..., :-1, :], derivative[..., 1:, :]),
        ):
            share = self.weight / max(signs[0].numel(), 1)
            after.add_(signs, alpha=share)
            before.sub_(signs, alpha=share)
        return derivative


def total_variation(x: Tensor) -> Tensor:
    """Compute the anisotropic total variation (S,) of S guesses (S, B, C, H, W): mean |dx| + mean |dy|; 0 for a constant picture."""
    across, down = x[..., 1:] - x[..., :-1], x[..., 1:, :] - x[..., :-1, :]
    return across.abs().flatten(1).mean(1) + down.abs().flatten(1).mean(1)


def isotropic_variation(x: Tensor) -> Tensor:
    """Compute the isotropic total variation (S,) of S guesses (S, B, C, H, W): the mean of sqrt(dx^2 + dy^2 + 1e-8)."""
    across, down = x[..., :-1, 1:] - x[..., :-1, :-1], x[..., 1:, :-1] - x[..., :-1, :-1]
    return (across.square() + down.square() + 1e-8).sqrt().flatten(1).mean(1)


def start(kind: str, seen: Observation, rng: torch.Generator) -> Tensor:
    """Draw the initial pictures (B, C, H, W) of an attack, in the model's normalised space.

    Args:
        kind: normal: N(0, 1); uniform: U(-1, 1); grey: 0, the mean picture of a model that normalises; tiles: one tile of TILE x TILE
            pixels ~ N(0, 1) for each channel of each picture, repeated.
        seen: the observation, for shape, device and precision.
        rng: the generator of the random numbers, on the CPU.
    """
    shape = seen.batch.shape
    if kind == "tiles":
        height, width = shape[2:]
        tile = torch.randn((*shape[:2], TILE, TILE), generator=rng)
        return tile.repeat(1, 1, -(-height // TILE), -(-width // TILE))[..., :height, :width].contiguous().to(seen.device, seen.dtype)
    if kind == "uniform":
        return (2 * torch.rand(shape, generator=rng) - 1).to(seen.device, seen.dtype)
    return (torch.zeros(shape) if kind == "grey" else torch.randn(shape, generator=rng)).to(seen.device, seen.dtype)


def grey_pictures(seen: Observation) -> Tensor:
    """Return pictures (B, C, H, W) with all pixels 0.5, the guess of an attack that found nothing."""
    return torch.full(seen.batch.shape, 0.5, device=seen.device, dtype=seen.dtype)


def normal_start(seen: Observation, rng: torch.Generator) -> Tensor:
    """Draw pictures (B, C, H, W) ~ N(0, 1) in the model's normalised space."""
    return start("normal", seen, rng)


def box(seen: Observation) -> tuple[Tensor, Tensor]:
    """Return the pixel values 0 and 1 in the model's normalised space, (1, C, 1, 1) each."""
    mean, std = seen.scale
    return -mean / std, (1 - mean) / std


def to_pixels(seen: Observation) -> Callable[[Tensor], Tensor]:
    """Return the function from the model's normalised space to pixels; the identity for a model that takes raw pixels."""
    mean, std = seen.scale
    if bool((mean == 0).all() and (std == 1).all()):
        return lambda z: z
    return lambda z: z * std + mean


def from_pixels(seen: Observation, x: Tensor) -> Tensor:
    """Convert pixels to the model's normalised space, the inverse of `to_pixels`."""
    mean, std = seen.scale
    return (x - mean) / std


def diverged(x: Tensor, loss: float) -> bool:
    """Return whether an optimiser has diverged: the loss is NaN or +infinity, or a pixel is not finite or above LOST in magnitude."""
    return loss != loss or loss == float("inf") or not bool(torch.isfinite(x).all()) or float(x.abs().max()) > LOST


def nonsmooth_layer(model: nn.Module) -> str:
    """Return the class name of the model's first piecewise linear layer (NONSMOOTH); empty where the model has none."""
    return next((type(layer).__name__ for layer in model.modules() if isinstance(layer, NONSMOOTH)), "")


def median_filter(x: Tensor) -> Tensor:
    """Replace every pixel of (..., H, W) by the median of its 3 x 3 neighbourhood; edges are mirrored."""
    height, width = x.shape[-2:]
    flat = F.pad(x.reshape(-1, 1, height, width), (1, 1, 1, 1), mode="reflect")
    return F.unfold(flat, 3).median(1).values.view_as(x)


def importance(target: Params, layers: str, weights: str) -> dict[str, float]:
    """Return the weight of every tensor that a distance compares, by name; `distance` leaves out the other tensors.

    Args:
        target: the gradient, by parameter.
        layers: one of LAYERS: all tensors, those of the largest norms, or the first or last half.
        weights: one of WEIGHTS, by the index i of the n tensors: 1, 1 - i / n or exp(-i).

    Source: Geiping et al. 2020, reference implementation ("indices" and "weights").
    """
    names = list(target)
    if layers.startswith("largest"):
        most = int(layers.split()[1])
        names = sorted(names, key=lambda name: -float(target[name].norm()))[:most]
        names = [name for name in target if name in names]
    elif layers != "all":
        middle = -(-len(names) // 2)
        names = names[:middle] if layers == "first half" else names[-middle:]

    def weight(index: int) -> float:
        return {"equal": 1.0, "linear": 1 - index / len(names), "exponential": math.exp(-index)}[weights]

    return {name: weight(index) for index, name in enumerate(names)}
