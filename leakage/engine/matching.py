"""What gradient-matching attacks share: starts, distances between gradients, priors on pictures, and when a start has failed.

Distances and priors serve several guesses at once (lanes): gradients have S in front of every shape, pictures are (S, B, C, H, W), and the
answer is (S,).
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.core import Observation, Params

Distance = Callable[[Params], Tensor]  # gradient -> scalar, or with S in front of every shape -> (S,)
LOST = 1e3  # a pixel beyond this: the optimiser has diverged
DISTANCES = ("cosine", "squared", "absolute", "largest", "cosine per layer")
LAYERS = ("all", "largest 10", "largest 50", "first half", "last half")
WEIGHTS = ("equal", "linear", "exponential")
STARTS = ("normal", "uniform", "grey", "tiles")
TILE = 4  # pixels
NONSMOOTH = (nn.ReLU, nn.LeakyReLU, nn.MaxPool2d)  # straight pieces: second derivatives are zero or undefined


def flatten(update: Params) -> Tensor:
    """All entries of an update as one vector (P,)."""
    return torch.cat([value.reshape(-1) for value in update.values()])


def flatten_lanes(update: Params) -> Tensor:
    """All entries of S updates as (S, P)."""
    return torch.cat([value.reshape(len(value), -1) for value in update.values()], 1)


def squared_distance(target: Params, entry_weights: Params | None = None) -> Distance:
    """||g - g*||^2 over all tensors (Zhu et al. 2019), of one gradient; `entry_weights` as in `distance`."""
    return _single(distance("squared", target, entry_weights=entry_weights))


def cosine_distance(target: Params) -> Distance:
    """1 - <g, g*> / (||g|| ||g*||), one cosine over all tensors (Geiping et al. 2020), of one gradient."""
    return _single(distance("cosine", target))


def _single(lanes: Distance) -> Distance:
    return lambda update: lanes({name: value.unsqueeze(0) for name, value in update.items()})[0]


def distance(kind: str, target: Params, importance: Mapping[str, float] | None = None, entry_weights: Params | None = None) -> Distance:
    """How far S gradients are from `target`: (S,).

    `importance` weighs the tensors; those that it does not name are left out. `entry_weights` weighs the errors of single
    entries; unnamed tensors count 1. Directions, which need the size of every entry, only leave out those that are not trusted at all.

    cosine            1 - <g, g*> / (||g|| ||g*||), sums over all tensors
    squared           sum of (g - g*)^2
    absolute          sum of |g - g*|
    largest           sum over the tensors of max |g - g*|
    cosine per layer  mean over the tensors of 1 - cos(g_l, g*_l)
    Source: Geiping et al. 2020, reference implementation.
    """
    weights = {name: 1.0 for name in target} if importance is None else dict(importance)
    kept = {name: target[name].detach() for name in weights}
    wanted = flatten(kept)
    believed = {name: (entry_weights or {}).get(name, torch.ones_like(value)) for name, value in kept.items()}
    if "cosine" in kind:
        believed = {name: (share > 0).to(share) for name, share in believed.items()}
    shares = {name: weights[name] * share for name, share in believed.items()}
    equal = not entry_weights and all(weight == 1 for weight in weights.values())
    scale = wanted.new_ones(()) if equal else flatten(shares).to(wanted)
    unit = wanted * scale / (wanted.square() * scale).sum().sqrt()

    def cosine(flat: Tensor) -> Tensor:
        norm = flat.norm(dim=1) if equal else (flat.square() * scale).sum(1).sqrt()
        return 1 - flat @ unit / norm

    def squared(flat: Tensor) -> Tensor:
        gap = (flat - wanted).square()
        return gap.sum(1) if equal else (gap * scale).sum(1)

    def absolute(flat: Tensor) -> Tensor:
        return ((flat - wanted).abs() * scale).sum(1)

    whole = {"cosine": cosine, "squared": squared, "absolute": absolute}
    if kind in whole:
        measure = whole[kind]
        return lambda update: measure(flatten_lanes({name: update[name] for name in kept}))

    def per_layer(update: Params) -> Tensor:
        parts = []
        for name, value in kept.items():
            g, wanted, share = update[name].reshape(len(update[name]), -1), value.flatten(), shares[name].flatten()
            if kind == "largest":
                parts.append((share * (g - wanted).abs()).amax(1))
            else:
                seen = believed[name].flatten()
                parts.append(weights[name] * (1 - F.cosine_similarity(seen * g, (seen * wanted)[None], dim=1)) / len(kept))
        return torch.stack(parts).sum(0)

    return per_layer


def total_variation(x: Tensor) -> Tensor:
    """Anisotropic total variation of S guesses: mean |dx| + mean |dy|, each over all its entries; 0 on a constant picture."""
    across, down = x[..., 1:] - x[..., :-1], x[..., 1:, :] - x[..., :-1, :]
    return across.abs().flatten(1).mean(1) + down.abs().flatten(1).mean(1)


def isotropic_variation(x: Tensor) -> Tensor:
    """Isotropic total variation of S guesses: the mean length of (dx, dy); (S,)."""
    across, down = x[..., :-1, 1:] - x[..., :-1, :-1], x[..., 1:, :-1] - x[..., :-1, :-1]
    return (across.square() + down.square() + 1e-8).sqrt().flatten(1).mean(1)


def start(kind: str, seen: Observation, rng: torch.Generator) -> Tensor:
    """Pictures (B, C, H, W) in the model's own (normalised) space.

    normal: N(0, 1); uniform: U(-1, 1); grey: 0, which is the mean picture of a normalised model; tiles: one tile ~ N(0, 1), repeated.
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
    """Pictures (B, C, H, W) of pixels 0.5: the answer of who knows nothing."""
    return torch.full(seen.batch.shape, 0.5, device=seen.device, dtype=seen.dtype)


def normal_start(seen: Observation, rng: torch.Generator) -> Tensor:
    """Pictures ~ N(0, 1) in the model's own (normalised) space: (B, C, H, W)."""
    return start("normal", seen, rng)


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


def from_pixels(seen: Observation, x: Tensor) -> Tensor:
    """Pixels in the model's normalised space: `to_pixels` undone."""
    mean, std = seen.scale
    return (x - mean) / std


def diverged(x: Tensor, loss: float) -> bool:
    """Whether this start has diverged: the loss is not finite, or a pixel lies beyond LOST."""
    return loss != loss or loss == float("inf") or not bool(torch.isfinite(x).all()) or float(x.abs().max()) > LOST


def nonsmooth_layer(model: nn.Module) -> str:
    """The first kind of layer made of straight pieces, as a word; empty when every layer is smooth."""
    return next((type(layer).__name__ for layer in model.modules() if isinstance(layer, NONSMOOTH)), "")


def median_filter(x: Tensor) -> Tensor:
    """The median of every pixel's 3 x 3 neighbourhood; (..., H, W), edges mirrored."""
    height, width = x.shape[-2:]
    flat = F.pad(x.reshape(-1, 1, height, width), (1, 1, 1, 1), mode="reflect")
    return F.unfold(flat, 3).median(1).values.view_as(x)


def importance(target: Params, layers: str, weights: str) -> dict[str, float]:
    """Which tensors count (LAYERS), and how much (WEIGHTS): equally, falling linearly from 1, or as softmax(n .. 1) divided by its first.

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

    def weight(place: int) -> float:
        return {"equal": 1.0, "linear": 1 - place / len(names), "exponential": math.exp(-place)}[weights]

    return {name: weight(place) for place, name in enumerate(names)}
