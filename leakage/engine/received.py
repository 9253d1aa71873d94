"""The update made visible: one strip of shades and one norm per layer. Plain numbers, ready for JSON."""

from typing import Any

import torch
from torch import Tensor

from leakage.engine.core import Params

CELLS = 64


def describe(update: Params, singles: Params) -> dict[str, Any]:
    """What the server received: size, norm, a strip per tensor; and one strip per single picture, which the client never sends.

    `singles` maps names to (B, ...), see `client.single_gradients`.
    """
    entries = sum(value.numel() for value in update.values())
    pictures = torch.cat([value.flatten(1) for value in singles.values()], 1)  # (B, P)
    return {
        "entries": entries,
        "bytes": 4 * entries,
        "norm": float(torch.cat([value.flatten() for value in update.values()]).norm()),
        "layers": [{"name": name, "shape": list(g.shape), "norm": float(g.norm()), "strip": strip(g)} for name, g in update.items()],
        "singles": [strip(picture) for picture in pictures] if len(pictures) > 1 else [],
    }


def strip(values: Tensor) -> list[int]:
    """At most CELLS shades 0..255: the mean magnitude of neighbouring entries, on a logarithmic scale over three decades."""
    magnitude = values.detach().abs().flatten().cpu()
    cells = torch.stack([part.mean() for part in magnitude.tensor_split(min(CELLS, len(magnitude)))])
    top = cells.max().clamp_min(1e-30)
    return ((cells / top).clamp_min(1e-3).log10() / 3 + 1).mul(255).round().int().tolist()
