"""The first layer of a model that wants its pictures with mean 0 and deviation 1."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Normalise(nn.Module):
    """(x - mean) / std per channel, as the first layer of a model: outside a model pictures are [0, 1]."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std
