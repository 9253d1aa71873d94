"""The views of a Snapshot as pictures: pictures side by side, a layer's maps as a mosaic, a list of numbers as a block."""

import math

import torch
from torch import Tensor

MOST_MAPS = 64


def draw_view(view: Tensor) -> Tensor:
    """Draw a view as a picture (1 or 3, H', W') in [0, 1] on the CPU.

    Args:
        view: pictures (B, C, H, W) in pixel space, which are clamped and drawn side by side; or maps of a layer (C, H, W), of which the
            first MOST_MAPS are scaled, each from its smallest to its largest value, and drawn as a mosaic; or a list (n,), which is
            scaled likewise and drawn row by row as a block.
    """
    x = view.detach().to("cpu", torch.float32)
    if x.dim() == 4:
        return torch.cat(list(torch.nan_to_num(x, nan=0.5).clamp(0, 1)), 2)
    if x.dim() == 3:
        return _mosaic(_scaled(x[:MOST_MAPS].flatten(1)).view_as(x[:MOST_MAPS]))
    side = math.ceil(math.sqrt(x.numel()))
    rows = math.ceil(x.numel() / side)
    block = torch.full((rows * side,), 0.5)
    block[: x.numel()] = _scaled(x.view(1, -1))[0]
    return block.view(1, rows, side)


def _scaled(x: Tensor) -> Tensor:
    """Scale every row of x (n, m) from its smallest finite value (0) to its largest (1); NaN and rows of equal values become 0.5."""
    known = x.isfinite()
    low = torch.where(known, x, torch.inf).amin(1, keepdim=True)
    high = torch.where(known, x, -torch.inf).amax(1, keepdim=True)
    scaled = torch.where(high > low, (x - low) / (high - low), 0.5)
    return torch.nan_to_num(scaled, nan=0.5).clamp(0, 1)


def _mosaic(maps: Tensor) -> Tensor:
    """Arrange maps (n, H, W) in about as many columns as rows, with one grey pixel between them: (1, H', W')."""
    count, height, width = maps.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    sheet = torch.full((rows * (height + 1) - 1, columns * (width + 1) - 1), 0.5)
    for index, picture in enumerate(maps):
        top, left = index // columns * (height + 1), index % columns * (width + 1)
        sheet[top : top + height, left : left + width] = picture
    return sheet.unsqueeze(0)
