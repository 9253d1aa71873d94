"""The last layer as the server holds it, and what the model makes of probe pictures: what every rule of labels begins with."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from leakage.engine.core import Observation, generator
from leakage.engine.logit_layer import last_layer
from leakage.engine.random_layer import drawn

PROBES, AREA, FEWEST = 64, 64 * 32 * 32, 16  # probe pictures: 64 of 32 x 32, fewer of larger ones


class Predictions(NamedTuple):
    """What the model makes of the probe pictures: logits (P, K) and the features that enter the last layer (P, D)."""

    logits: Tensor
    features: Tensor


class Head(NamedTuple):
    """The last layer, a row per class: its weight and that weight's gradient (K, D), and the gradient of its bias (K,) or None."""

    weight: Tensor
    weight_gradient: Tensor
    bias: Tensor | None


def head(seen: Observation) -> Head:
    """The last layer as the server holds it. One output z, for two classes, stands for the logits (0, z): its row beside one of zeros."""
    weight, bias = last_layer(seen)
    gradient = seen.as_gradient()
    own, weight_gradient, rows = (
        seen.received.weights[weight].detach(),
        gradient[weight].detach(),
        gradient[bias].detach() if bias else None,
    )
    if len(own) == seen.batch.num_classes:
        return Head(own, weight_gradient, rows)
    return Head(
        torch.cat([torch.zeros_like(own), own]),
        torch.cat([-weight_gradient, weight_gradient]),
        None if rows is None else torch.cat([-rows, rows]),
    )


def probe_pictures(seen: Observation) -> Tensor:
    """Smooth random pictures (P, C, H, W), 4x4 noise enlarged: always the same ones, drawn by a seed of their own, B or a multiple."""
    channels, height, width = seen.batch.image_shape
    noise = torch.rand((_number(seen), channels, 4, 4), generator=generator(0, "label probes"), dtype=torch.float32)
    pictures = F.interpolate(noise, size=(height, width), mode="bilinear", align_corners=False).clamp(0, 1)
    return pictures.to(seen.device, seen.dtype)


def varied_pictures(seen: Observation) -> Tensor:
    """Random pictures (P, C, H, W) that differ in brightness, color, contrast and sharpness, as photographs do: always the same ones.

    Noise on grids of 2, 4, 8 and 16 squares is enlarged and added up, weaker as the squares get smaller (as photographs fall with
    frequency), to a standard deviation drawn from [0.05, 0.35] around a brightness from [0.15, 0.85].
    """
    channels, height, width = seen.batch.image_shape
    number, rng = _number(seen), generator(0, "varied label probes")
    total = torch.zeros((number, channels, height, width))
    for grid in (2, 4, 8, 16):
        weight = torch.rand((number, 1, 1, 1), generator=rng) / grid**0.5
        noise = torch.randn((number, channels, grid, grid), generator=rng) + torch.randn((number, 1, grid, grid), generator=rng)
        total += weight * F.interpolate(noise, size=(height, width), mode="bilinear", align_corners=False)
    total = total / total.flatten(1).std(1, correction=0).clamp(min=1e-6).view(-1, 1, 1, 1)
    light = 0.15 + 0.7 * torch.rand((number, 1, 1, 1), generator=rng) + 0.1 * torch.randn((number, channels, 1, 1), generator=rng)
    contrast = 0.05 + 0.3 * torch.rand((number, 1, 1, 1), generator=rng)
    return (light + contrast * total).clamp(0, 1).to(seen.device, seen.dtype)


def _number(seen: Observation) -> int:
    """How many probe pictures there are: B, or a multiple."""
    _, height, width = seen.batch.image_shape
    return math.ceil(min(max(AREA // (height * width), FEWEST), PROBES) / seen.batch.size) * seen.batch.size


def predict(seen: Observation, pictures: Tensor | None = None) -> Predictions:
    """The model on pictures (P, C, H, W), the probes if None, B at a time: so BatchNorm may take its statistics.

    Layers that draw numbers on the phone draw others here, of the same distribution.
    """
    pictures = probe_pictures(seen) if pictures is None else pictures
    features, rng = list[Tensor](), generator(0, "label probes drawn")
    layer = seen.model.get_submodule(last_layer(seen)[0].rpartition(".")[0])
    hook = layer.register_forward_pre_hook(lambda _, given: features.append(given[0]))
    try:
        with torch.no_grad():
            some = [functional_call(seen.model, drawn(seen.model, x, rng), (x,)) for x in pictures.split(seen.batch.size)]
            logits = torch.cat(some)  # (P, K)
    finally:
        hook.remove()
    return Predictions(logits, torch.cat(features))
