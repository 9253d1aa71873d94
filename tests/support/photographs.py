"""Private pictures for tests of servers: photographs of CIFAR-10 where the data set is here, else the gallery and smooth pictures."""

import torch
from small_problems import smooth
from torch import Tensor

from leakage.data.datasets import datasets
from leakage.data.images import gallery, read


def photographs(count: int, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Return pictures (count, 3, 32, 32) in [0, 1], in float64, and their labels (count,)."""
    source = datasets()["cifar10"]
    rng = torch.Generator().manual_seed(seed)
    if source.is_available:
        rows = source.rows()
        chosen = torch.randperm(len(rows.pixels), generator=rng)[:count].numpy()
        return from_bytes(rows.pixels[chosen]), torch.from_numpy(rows.labels[chosen]).long()
    items = gallery()[:count]
    pictures = torch.cat([from_bytes(read("gallery", item.id, 32, 3)[None]) for item in items])
    left = count - len(items)
    return torch.cat([pictures, smooth(left, 3, 32, seed).double()]), torch.tensor([*(item.label for item in items), *[0] * left])


def from_bytes(pixels: object) -> Tensor:
    """Return pictures (N, C, H, W) in [0, 1] for bytes (N, H, W, C)."""
    return torch.as_tensor(pixels).permute(0, 3, 1, 2).double() / 255
