"""The last layer as the server knows it, and the model's predictions on probe pictures: the start of every rule for labels."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from leakage.engine.core import Observation, generator
from leakage.engine.logit_layer import last_layer
from leakage.engine.random_layer import draw_buffers

PROBES, AREA, FEWEST = 64, 64 * 32 * 32, 16  # number of probe pictures: 64 of 32 x 32, fewer larger ones, at least 16


class Predictions(NamedTuple):
    """What the model computes for P probe pictures: random pictures that the attacker makes to learn what the model predicts.

    Args:
        logits: (P, K)
        features: the inputs of the last layer, (P, D)
    """

    logits: Tensor
    features: Tensor


class Head(NamedTuple):
    """The last layer of a model with its gradient in an update, a row for each class.

    Args:
        weight: the weight, (K, D)
        weight_gradient: the gradient of the weight, (K, D)
        bias: the gradient of the bias, (K,); None without a bias
    """

    weight: Tensor
    weight_gradient: Tensor
    bias: Tensor | None


def head(seen: Observation) -> Head:
    """Return the last layer as the server knows it; a single output z for two classes becomes two rows, for the logits (0, z)."""
    weight, bias = last_layer(seen)
    gradient = seen.as_gradient()
    layer_weight, weight_gradient = seen.received.weights[weight].detach(), gradient[weight].detach()
    rows = gradient[bias].detach() if bias else None
    if len(layer_weight) == seen.batch.num_classes:
        return Head(layer_weight, weight_gradient, rows)
    return Head(
        torch.cat([torch.zeros_like(layer_weight), layer_weight]),
        torch.cat([-weight_gradient, weight_gradient]),
        None if rows is None else torch.cat([-rows, rows]),
    )


def probe_pictures(seen: Observation) -> Tensor:
    """Return smooth random pictures (P, C, H, W), enlarged 4 x 4 noise; the same at each call, and P is a multiple of B."""
    channels, height, width = seen.batch.image_shape
    noise = torch.rand((_number(seen), channels, 4, 4), generator=generator(0, "label probes"), dtype=torch.float32)
    pictures = F.interpolate(noise, size=(height, width), mode="bilinear", align_corners=False).clamp(0, 1)
    return pictures.to(seen.device, seen.dtype)


def varied_pictures(seen: Observation) -> Tensor:
    """Return the pictures of `draw_varied_pictures` for the observed model, P as in `probe_pictures`; the same at each call."""
    return draw_varied_pictures(_number(seen), seen.batch.image_shape).to(seen.device, seen.dtype)


def draw_varied_pictures(number: int, image_shape: tuple[int, int, int]) -> Tensor:
    """Return random pictures that vary in brightness, color, contrast and sharpness as photographs do; the same at each call.

    Noise on grids of 2, 4, 8 and 16 squares is enlarged and summed, with less weight for smaller squares, as the spectrum of photographs
    falls with frequency. The sum gets a standard deviation drawn from [0.05, 0.35] and a brightness drawn from [0.15, 0.85].

    Args:
        number: P, the number of pictures.
        image_shape: (C, H, W) of one.

    Returns:
        Pictures (P, C, H, W) in [0, 1], on the CPU.
    """
    channels, height, width = image_shape
    rng = generator(0, "varied label probes")
    total = torch.zeros((number, channels, height, width))
    for grid in (2, 4, 8, 16):
        weight = torch.rand((number, 1, 1, 1), generator=rng) / grid**0.5
        noise = torch.randn((number, channels, grid, grid), generator=rng) + torch.randn((number, 1, grid, grid), generator=rng)
        total += weight * F.interpolate(noise, size=(height, width), mode="bilinear", align_corners=False)
    total = total / total.flatten(1).std(1, correction=0).clamp(min=1e-6).view(-1, 1, 1, 1)
    light = 0.15 + 0.7 * torch.rand((number, 1, 1, 1), generator=rng) + 0.1 * torch.randn((number, channels, 1, 1), generator=rng)
    contrast = 0.05 + 0.3 * torch.rand((number, 1, 1, 1), generator=rng)
    return (light + contrast * total).clamp(0, 1)


def _number(seen: Observation) -> int:
    """Return how many probe pictures to draw: a multiple of B, fewer for larger pictures."""
    _, height, width = seen.batch.image_shape
    return math.ceil(min(max(AREA // (height * width), FEWEST), PROBES) / seen.batch.size) * seen.batch.size


def predict(seen: Observation, pictures: Tensor | None = None) -> Predictions:
    """Return the model's outputs on pictures (P, C, H, W), or on `probe_pictures` if None; B pictures at a time, as BatchNorm may need.

    Layers that draw random numbers on the client draw other numbers here, from the same distribution.
    """
    pictures = probe_pictures(seen) if pictures is None else pictures
    features, rng = list[Tensor](), generator(0, "label probes drawn")
    layer = seen.model.get_submodule(last_layer(seen)[0].rpartition(".")[0])
    with layer.register_forward_pre_hook(lambda _, given: features.append(given[0])), torch.no_grad():
        parts = [functional_call(seen.model, draw_buffers(seen.model, x, rng), (x,)) for x in pictures.split(seen.batch.size)]
    return Predictions(torch.cat(parts), torch.cat(features))
