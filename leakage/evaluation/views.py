"""What an attack shows beside its guess, as pictures: a layer's maps as a mosaic, a list of numbers as a block."""

import math

import torch
from torch import Tensor

MOST_MAPS = 64


def drawn(view: Tensor) -> Tensor:
    """(1 or 3, H', W') in [0, 1] on the CPU.

    view    pictures (B, C, H, W) in pixel space, drawn side by side and clamped; maps of a layer (C, H, W), at most MOST_MAPS of them,
            each stretched from its smallest to its largest value, in a mosaic; or a list (n,), as a block row by row, stretched alike
    """
    x = view.detach().to("cpu", torch.float32)
    if x.dim() == 4:
        return torch.cat(list(torch.nan_to_num(x, nan=0.5).clamp(0, 1)), 2)
    if x.dim() == 3:
        return _mosaic(_stretched(x[:MOST_MAPS].flatten(1)).view_as(x[:MOST_MAPS]))
    side = math.ceil(math.sqrt(x.numel()))
    rows = math.ceil(x.numel() / side)
    block = torch.full((rows * side,), 0.5)
    block[: x.numel()] = _stretched(x.view(1, -1))[0]
    return block.view(1, rows, side)


def _stretched(x: Tensor) -> Tensor:
    """Every row (n, m) from 0, its smallest finite value, to 1; a row of equal values is grey, and so is what is no number."""
    known = x.isfinite()
    low = torch.where(known, x, torch.inf).amin(1, keepdim=True)
    high = torch.where(known, x, -torch.inf).amax(1, keepdim=True)
    scaled = torch.where(high > low, (x - low) / (high - low), 0.5)
    return torch.nan_to_num(scaled, nan=0.5).clamp(0, 1)


def _mosaic(maps: Tensor) -> Tensor:
    """(n, H, W) in about as many columns as rows, one grey pixel between them: (1, H', W')."""
    count, height, width = maps.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    sheet = torch.full((rows * (height + 1) - 1, columns * (width + 1) - 1), 0.5)
    for place, one in enumerate(maps):
        top, left = place // columns * (height + 1), place % columns * (width + 1)
        sheet[top : top + height, left : left + width] = one
    return sheet.unsqueeze(0)
