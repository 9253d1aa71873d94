"""The layers LPIPS looks at, of AlexNet, VGG-16 and SqueezeNet 1.1, straight from torchvision's weights: importing that takes seconds."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

Weights = Mapping[str, Tensor]  # "features.N.weight" and so on, as torchvision names them
VGG = ((0, 2), (5, 7), (10, 12, 14), (17, 19, 21), (24, 26, 28))  # its convolutions between two poolings


def layers(net: str, weights: Weights, x: Tensor) -> Iterator[Tensor]:
    """The activations (B, C, h, w) that LPIPS compares, for normalised pictures (B, 3, H, W)."""
    return {"alex": _alex, "vgg": _vgg, "squeeze": _squeeze}[net](weights, x)


def _alex(weights: Weights, x: Tensor) -> Iterator[Tensor]:
    """Source: Krizhevsky 2014, "One weird trick", one tower."""
    for place, stride, padding in ((0, 4, 2), (3, 1, 2), (6, 1, 1), (8, 1, 1), (10, 1, 1)):
        x = F.max_pool2d(x, 3, 2) if place in (3, 6) else x
        x = _convolved(weights, f"features.{place}", x, stride=stride, padding=padding)
        yield x


def _vgg(weights: Weights, x: Tensor) -> Iterator[Tensor]:
    """Source: Simonyan and Zisserman 2015, configuration D."""
    for number, places in enumerate(VGG):
        x = F.max_pool2d(x, 2) if number else x
        for place in places:
            x = _convolved(weights, f"features.{place}", x, padding=1)
        yield x


def _squeeze(weights: Weights, x: Tensor) -> Iterator[Tensor]:
    """Source: Iandola et al. 2016, version 1.1: its fire modules 3 and 4, 6 and 7, 9, 10, 11, 12 by torchvision's numbers."""
    x = _convolved(weights, "features.0", x, stride=2)
    yield x
    for places in ((3, 4), (6, 7), (9,), (10,), (11,), (12,)):
        x = F.max_pool2d(x, 3, 2, ceil_mode=True) if places[0] < 10 else x
        for place in places:
            name = f"features.{place}"
            x = _convolved(weights, f"{name}.squeeze", x)
            x = torch.cat([_convolved(weights, f"{name}.expand1x1", x), _convolved(weights, f"{name}.expand3x3", x, padding=1)], 1)
        yield x


def _convolved(weights: Weights, name: str, x: Tensor, *, stride: int = 1, padding: int = 0) -> Tensor:
    return F.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], stride=stride, padding=padding).relu()
