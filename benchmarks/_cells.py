"""Shared parts of the tables of attackers: totals of a cell, adaptive attackers that do worse, and printing."""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import mean
from typing import Any

import torch
from _table import table
from torch import nn

from leakage.engine.core import generator
from leakage.results.intervals import wilson
from leakage.results.precomputed import SHOWING
from leakage.spec.experiment import Part
from leakage.spec.words import RECOGNIZABLE
from leakage.workers.adapter import plugin

EVERY_ROUND = "nothing is drawn at random here, so every round sends the same, and there is nothing to put together"
FLAT = "the loss is flat inside a step of the rounding, where a search that follows it stops; the naive one follows a smooth loss"
MATTERS = 1.0  # dB: an adaptive attacker that is worse than the naive attacker by this much gets the reason beside it
CellResult = dict[str, Any]


def is_random(defense: Part) -> bool:
    """Return whether a protection is random: with another seed it sends another update."""
    g = {"w": torch.randn(20, 20, generator=torch.Generator().manual_seed(0))}
    own, some = plugin("defense", defense), torch.zeros(1)
    one, other = (own.defend(lambda _w, _x, _y, state: (g, state), nn.Identity(), partial(generator, seed)) for seed in (1, 2))
    return not torch.equal(one(g, some, some, {})[0]["w"], other(g, some, some, {})[0]["w"])


def totals(runs: Sequence[CellResult]) -> CellResult:
    """Return the totals of the runs of one attacker against one protection."""
    seen = sum(run["word"] == RECOGNIZABLE for run in runs)
    return {
        "runs": len(runs),
        **{name: sum(run["word"] == word for run in runs) for name, word in SHOWING.items()},
        "interval": wilson(seen, len(runs)),
        "psnr": mean(run["psnr"] for run in runs),
        "psnr_each": [round(run["psnr"], 2) for run in runs],
        "ssim": mean(run["ssim"] for run in runs),
        "identified": mean(run["scores"]["identified"] for run in runs),
        "labels": mean(run["label_right"] for run in runs),
        "grey_psnr": mean(run["grey_psnr"] for run in runs),
    }


def give_reasons(cells: Sequence[CellResult], below: Mapping[tuple[str, ...], str]) -> None:
    """Add reasons to adaptive attackers that do worse, by protection, attacker and attack or the first two; KeyError without a reason."""
    naive = {_about(one): one for one in cells if one["who"] == "naive"}
    for one in cells:
        base = naive.get(_about(one), {})
        if "psnr" in one and "psnr" in base and one["psnr"] < base["psnr"] - MATTERS:
            names = ((one["defense"] or {"id": "none"})["id"], one["who"])
            one["below"] = below.get((*names, one["attack"])) or below[names]


def _about(cell: CellResult) -> tuple[str, str, int]:
    return str(cell["defense"]), cell["attack"], cell.get("phones", 1)


def print_cells(cells: Sequence[CellResult]) -> None:
    """Print a line for each cell."""
    rows = []
    for one in cells:
        fields = one["defense"]["fields"].values() if one["defense"] else ()
        name = " ".join(
            [
                *([f"{one['phones']} phones"] if "phones" in one else []),
                (one["defense"] or {"id": "none"})["id"],
                *(f"{v:g}" if isinstance(v, float) else str(v) for v in fields),
            ]
        )
        if "runs" not in one:
            why = one.get("same") or one.get("absent") or one["refused"]
            rows.append([name, one["attack"], one["who"], why, "", "", "", ""])
            continue
        right = f"{one['recognizable']} of {one['runs']}" + (f": {one['below']}" if "below" in one else "")
        rows.append([name, one["attack"], one["who"], right, one["psnr"], one["ssim"], one["identified"], one["labels"]])
    table(["protection", "attack", "who", "recognizable", "PSNR", "SSIM", "rank 1", "labels right"], rows)
