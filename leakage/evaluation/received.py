"""A description of the update for the page: one strip of shades and one norm per layer, as plain numbers for JSON."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from leakage.engine.core import Params
from leakage.engine.tensor_names import OF

CELLS = 64  # of a strip, at most
INDEX_BYTES = 4  # of the index of an entry


def describe(update: Params, gradient: Params, singles: Iterable[Params]) -> dict[str, Any]:
    """Describe what the server received, as data for the page that draws tensors as strips of shades (`strip`).

    Args:
        update: what was sent, by parameter.
        gradient: what the attacker makes of it, an average gradient by parameter.
        singles: the gradients of single pictures, which are never sent.

    Returns:
        "entries" and "bytes": the size of all entries, or of the entries other than zero with their indices, whichever takes fewer bytes;
        "norm": the l2 norm of `gradient`, which is the distance of a guess without any gradient; "layers": name, shape, norm and strip of
        each tensor; "singles": the strip of each single gradient.
    """
    # Where a tensor arrives from each client alone, the sum of these is left out, because the server computes it.
    update = {name: value for name, value in update.items() if f"0{OF}{name}" not in update}
    survivors = {name: int((value != 0).sum()) for name, value in update.items()}
    whole = sum(value.element_size() * value.numel() for value in update.values())
    sparse = sum((value.element_size() + INDEX_BYTES) * survivors[name] for name, value in update.items())
    return {
        "entries": sum(survivors.values()) if sparse < whole else sum(value.numel() for value in update.values()),
        "bytes": min(sparse, whole),
        "norm": float(torch.cat([value.flatten() for value in gradient.values()]).norm()),
        "layers": [{"name": name, "shape": list(g.shape), "norm": float(g.norm()), "strip": strip(g)} for name, g in update.items()],
        "singles": [strip(torch.cat([value.flatten() for value in single.values()])) for single in singles],
    }


def strip(values: Tensor) -> list[int]:
    """Summarize a tensor in at most CELLS shades 0..255: mean magnitudes of neighbouring entries, on a log scale over three decades."""
    magnitude = values.detach().abs().flatten().cpu()
    if not len(magnitude):
        return []
    cells = torch.stack([part.mean() for part in magnitude.tensor_split(min(CELLS, len(magnitude)))])
    top = cells.max().clamp_min(1e-30)
    return ((cells / top).clamp_min(1e-3).log10() / 3 + 1).mul(255).round().int().tolist()
