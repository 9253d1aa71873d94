"""A description of the model that a server hands out, layer by layer, beside the network that was agreed on, as plain data for JSON."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from leakage.engine.core import Params

CELLS = 16  # rows and columns of a summary, at most
MOVED = 4  # a description names the origin of at most so many rows


def describe_layers(agreed: nn.Module, handed: nn.Module, received: Sequence[Params]) -> list[dict[str, Any]]:
    """Describe each layer with weights of the model that clients receive, in the order of the network.

    A layer that keeps its name behind a prefix, such as "body.", and its shapes is the same layer.

    Args:
        agreed: the network on which the clients agreed, with its initial weights.
        handed: the network that is handed out; its own weights mean nothing here.
        received: the weights that each client receives, by parameter.

    Returns:
        For each layer "name", "kind" (the name of its class), "change" ("same", "changed" or "added"; at the end of the list "removed") and
        "tensors". Each tensor has "name" and "shape"; in a layer that is changed or added also "agreed", its `summary` as agreed on (empty
        if it is added), and "copies", one for each different value that clients received, see `_copy`.
    """
    old = dict(_layers(agreed))
    described = []
    for name, layer in _layers(handed):
        before = next((other for other in old if f".{name}".endswith(f".{other}") and _shapes(old[other]) == _shapes(layer)), None)
        values = {} if before is None else dict(old.pop(before).named_parameters(recurse=False))
        tensors = [_tensor(own, [weights[f"{name}.{own}"] for weights in received], values.get(own)) for own in _shapes(layer)]
        changed = any(copy["changed"] for tensor in tensors for copy in tensor["copies"])
        change = "added" if before is None else "changed" if changed else "same"
        if change == "same":
            tensors = [{**tensor, "agreed": [], "copies": []} for tensor in tensors]
        described.append({"name": name, "kind": type(layer).__name__, "change": change, "tensors": tensors})
    removed = [{"name": name, "kind": type(layer).__name__, "change": "removed", "tensors": []} for name, layer in old.items()]
    return described + removed


def _layers(model: nn.Module) -> Iterable[tuple[str, nn.Module]]:
    """Yield the name and the module of every layer that has parameters of its own."""
    return ((name, layer) for name, layer in model.named_modules() if any(True for _ in layer.parameters(recurse=False)))


def _shapes(layer: nn.Module) -> Mapping[str, torch.Size]:
    return {name: value.shape for name, value in layer.named_parameters(recurse=False)}


def _tensor(name: str, values: Sequence[Tensor], agreed: Tensor | None) -> dict[str, Any]:
    """Describe a tensor as the clients received it; clients that received the same values are told together."""
    groups = list[tuple[Tensor, list[int]]]()
    for client, value in enumerate(values, 1):
        group = next((clients for other, clients in groups if other is value or torch.equal(other, value)), None)
        if group is None:
            groups.append((value, [client]))
        else:
            group.append(client)
    before = None if agreed is None else _rows(agreed.detach())
    copies = [{"clients": clients, **_copy(_rows(value.detach()), before)} for value, clients in groups]
    return {"name": name, "shape": list(values[0].shape), "agreed": [] if before is None else summary(before), "copies": copies}


def _rows(value: Tensor) -> Tensor:
    """Return a tensor as a matrix (K, n): its parts along the first dimension."""
    return value.flatten(1) if value.dim() > 1 else value.unsqueeze(1)


def _copy(rows: Tensor, agreed: Tensor | None) -> dict[str, Any]:
    """Describe the rows (K, n) of a tensor beside those that were agreed on.

    Returns:
        "changed"; as counts "changed_rows", "zero_rows" and "flat_rows" (of one value throughout); "value" of all entries, if they are
        equal; "moved", pairs of a row and the other row of the agreed tensor that it equals, if few rows are changed; "cells", a
        `summary`; and for each row of cells in "marks" whether a row is changed.
    """
    changed, moved = torch.ones(len(rows), dtype=torch.bool), list[tuple[int, int]]()
    if agreed is not None:
        changed = (rows != agreed).any(1)
        places = changed.nonzero().flatten().tolist()
        for row in places if len(places) <= MOVED else ():
            found = (agreed == rows[row]).all(1).nonzero().flatten().tolist()
            moved += [(row, found[0])] if len(found) == 1 else []
    flat = (rows == rows[:, :1]).all(1)
    return {
        "changed": bool(changed.any()),
        "changed_rows": int(changed.sum()),
        "zero_rows": int((rows == 0).all(1).sum()),
        "flat_rows": int(flat.sum()),
        "value": float(rows[0, 0]) if bool((rows == rows[0, 0]).all()) else None,
        "moved": moved,
        "cells": summary(rows),
        "marks": [bool(band.any()) for band in changed.tensor_split(min(CELLS, len(rows)))],
    }


def summary(rows: Tensor) -> list[list[int]]:
    """Summarize a matrix (K, n) in at most CELLS x CELLS whole numbers from -100 to 100.

    Each stands for the entry of the largest magnitude among its neighbours: 100 sqrt(magnitude / largest magnitude of the matrix), signed.

    >>> summary(torch.tensor([[0.0, 1.0], [-4.0, 0.04]]))
    [[0, 50], [-100, 10]]
    """
    top = rows.abs().max().clamp_min(torch.finfo(rows.dtype).tiny)
    bands = rows.tensor_split(min(CELLS, len(rows)))
    extremes = torch.stack([torch.stack([_extreme(cell) for cell in band.tensor_split(min(CELLS, band.shape[1]), 1)]) for band in bands])
    cells: list[list[int]] = (100 * extremes.sign() * (extremes.abs() / top).sqrt()).round().int().tolist()
    return cells


def _extreme(values: Tensor) -> Tensor:
    low, high = values.aminmax()
    return torch.where(high >= -low, high, low)
