"""Normalisation of pictures: as the first layer of a model, or as a hook that changes pictures before they enter the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


class Normalise(nn.Module):
    """The layer (x - mean) / std for each channel, the first of a model: outside a model pictures are in [0, 1]."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


@dataclass(frozen=True, eq=False)
class InputNormalisation:
    """A forward pre-hook that normalises what enters a model; the model's layers, names and forward stay as they are."""

    mean: Tensor
    """The mean of each channel, (1, C, 1, 1)."""
    std: Tensor
    """The standard deviation of each channel, (1, C, 1, 1)."""

    def __call__(self, _model: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        x: Tensor = given[0]
        return ((x - self.mean.to(x.device, x.dtype)) / self.std.to(x.device, x.dtype), *given[1:])


def normalise_input(model: nn.Module, mean: Tensor, std: Tensor) -> None:
    """Register a hook that normalises pictures before they enter the model, and before the model's other hooks."""
    model.register_forward_pre_hook(InputNormalisation(mean.view(1, -1, 1, 1), std.view(1, -1, 1, 1)), prepend=True)


def normalisation_of(model: nn.Module) -> tuple[Tensor, Tensor] | None:
    """Return the mean and the standard deviation, (1, C, 1, 1) each, with which a model normalises pictures; None where it does not.

    A hook (`normalise_input`) and a first layer (`Normalise`) count as one normalisation.
    """
    before = next((hook for hook in model._forward_pre_hooks.values() if isinstance(hook, InputNormalisation)), None)
    first = next((layer for layer in model.modules() if isinstance(layer, Normalise)), None)
    if before is None or first is None:
        only = before or first
        return (only.mean, only.std) if only else None
    return before.mean + first.mean * before.std, first.std * before.std  # ((x - m) / s - m') / s' = (x - m - m' s) / (s s')
