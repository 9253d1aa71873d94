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

Distance = Callable[[Params], Tensor]  # gradient -> scalar, or with S in front of every shape -> (S,)
LOST = 1e3  # a pixel of larger magnitude means that the optimiser has diverged
DISTANCES = ("cosine", "squared", "absolute", "largest", "cosine per layer")
LAYERS = ("all", "largest 10", "largest 50", "first half", "last half")
WEIGHTS = ("equal", "linear", "exponential")
STARTS = ("normal", "uniform", "grey", "tiles")
TILE = 4  # pixels of a side of a tile
NONSMOOTH = (nn.ReLU, nn.LeakyReLU, nn.MaxPool2d)  # piecewise linear: second derivatives are zero or undefined


@dataclass(frozen=True, eq=False)
class WholeDistance:
    """A distance of S gradients g that is one formula over all their entries (S, P), with its derivative.

    Args:
        kind: cosine, squared or absolute
        shapes: the shape of each tensor that is compared, by parameter
        goal: the entries of g*, (P,); for cosine each is multiplied by its weight and divided by the weighted norm of g*
        weights: the weight of each entry, (P,); None: 1
    """

    kind: str
    shapes: Mapping[str, torch.Size]
    goal: Tensor
    weights: Tensor | None

    @staticmethod
    def of(kind: str, target: Params, weights: Tensor | None) -> "WholeDistance":
        """Return the distance from g* = `target`, of which every tensor is compared; `weights` as in the class."""
        goal = flatten(target)
        if kind == "cosine":
            squares, weighted = (goal.square(), goal) if weights is None else (goal.square() * weights, goal * weights)
            goal = weighted / squares.sum().sqrt()
        return WholeDistance(kind, {name: value.shape for name, value in target.items()}, goal, weights)

    def __call__(self, update: Params) -> Tensor:
        entries = self._entries(update)
        if self.kind == "cosine":
            return 1 - entries @ self.goal / self._norm(entries)
        gap = entries - self.goal
        return self._weighted(gap.square() if self.kind == "squared" else gap.abs()).sum(1)

    def derivative(self, update: Params) -> tuple[Tensor, Params]:
        """Return the distances (S,), and their derivatives by the gradients, (S, ...); 0 for a parameter that is not compared."""
        distances, derivatives = self._with_derivative(self._entries(update))
        parts = derivatives.split([shape.numel() for shape in self.shapes.values()], 1)
        compared = {name: part.view(len(part), *shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}
        derivative = {name: compared[name] if name in compared else torch.zeros_like(value) for name, value in update.items()}
        return distances, derivative

    def _with_derivative(self, entries: Tensor) -> tuple[Tensor, Tensor]:
        if self.kind == "cosine":
            norm, along = self._norm(entries), entries @ self.goal
            derivative = self._weighted(entries * (along / norm**3).unsqueeze(1))
            return 1 - along / norm, derivative.addcdiv_(self.goal.expand_as(entries), norm.unsqueeze(1), value=-1)
        gap = entries - self.goal
        if self.kind == "squared":
            weighted = self._weighted(gap)
            return (gap * weighted).sum(1), 2 * weighted
        return self._weighted(gap.abs()).sum(1), self._weighted(gap.sign())

    def _entries(self, update: Params) -> Tensor:
        return flatten_lanes({name: update[name] for name in self.shapes})

    def _weighted(self, entries: Tensor) -> Tensor:
        return entries if self.weights is None else entries * self.weights

    def _norm(self, entries: Tensor) -> Tensor:
        return entries.norm(dim=1) if self.weights is None else self._weighted(entries.square()).sum(1).sqrt()


def flatten(update: Params) -> Tensor:
    """Concatenate all entries of an update into one vector (P,)."""
    return torch.cat([value.reshape(-1) for value in update.values()])


def flatten_lanes(update: Params) -> Tensor:
    """Concatenate the entries of each of S updates: name -> (S, ...) becomes (S, P)."""
    return torch.cat([value.reshape(len(value), -1) for value in update.values()], 1)


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
