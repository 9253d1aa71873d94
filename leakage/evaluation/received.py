"""The update made visible: one strip of shades and one norm per layer. Plain numbers, ready for JSON."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from leakage.engine.core import Params
from leakage.engine.tensor_names import OF

CELLS = 64
PLACE = 4  # bytes that say where an entry belongs


def describe(update: Params, gradient: Params, singles: Iterable[Params]) -> dict[str, Any]:
    """What the server received: size, a strip per tensor, and one strip per single picture's gradient, which is never sent.

    "norm" is the length of `gradient`, what the attacker makes of the update: the distance of a guess without any gradient.
    Zeros need not be sent: an update with many counts as its other entries with their places, where these take fewer bytes.
    """
    update = {name: value for name, value in update.items() if f"0{OF}{name}" not in update}  # else the server makes the sum itself
    survivors = {name: int((value != 0).sum()) for name, value in update.items()}
    whole = sum(value.element_size() * value.numel() for value in update.values())
    placed = sum((value.element_size() + PLACE) * survivors[name] for name, value in update.items())
    return {
        "entries": sum(survivors.values()) if placed < whole else sum(value.numel() for value in update.values()),
        "bytes": min(placed, whole),
        "norm": float(torch.cat([value.flatten() for value in gradient.values()]).norm()),
        "layers": [{"name": name, "shape": list(g.shape), "norm": float(g.norm()), "strip": strip(g)} for name, g in update.items()],
        "singles": [strip(torch.cat([value.flatten() for value in single.values()])) for single in singles],
    }


def strip(values: Tensor) -> list[int]:
    """At most CELLS shades 0..255: the mean magnitude of neighbouring entries, on a logarithmic scale over three decades."""
    magnitude = values.detach().abs().flatten().cpu()
    if not len(magnitude):
        return []
    cells = torch.stack([part.mean() for part in magnitude.tensor_split(min(CELLS, len(magnitude)))])
    top = cells.max().clamp_min(1e-30)
    return ((cells / top).clamp_min(1e-3).log10() / 3 + 1).mul(255).round().int().tolist()
