"""A check of the first layer: whether its rows are traps, in which the positive weights are a copy of the negative ones."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.checks._received_model import first_rows
from leakage.engine.core import Check, Handed, param

QUANTILES = 512
RESIDUAL = 1e-3  # of the positive weights


@dataclass(frozen=True, kw_only=True)
class TrapRows(Check):
    """The fraction of rows of the first convolution or linear layer that are traps: positive weights as a scaled copy of the negative ones.

    The positive weights and the sizes of the negative weights are sorted and compared at 512 quantiles p and q. The row is a trap if
    ||p - s q|| < 0.001 ||p|| for the best factor s, and if there are as many positive as negative weights, but for one. Such a row cancels
    most pictures, so that few pictures switch its unit on. The check is not defined for rows of fewer than 9 numbers. Weights of a single
    size, as in binary networks, trip it as well; a server that adds noise to its traps passes.
    Source: designed here, against the trap weights of Boenisch et al. 2023.
    """

    title = "Looks for trap weights in the first layer (trap rows)"
    short = "Trap rows"
    plain = "The phone counts rows of the first layer whose positive weights are a scaled copy of the negative ones."
    hint = "It sees trap weights as they were first described. It misses a server that adds noise to them."
    source = "https://arxiv.org/abs/2112.02918"
    measures = "which fraction of the first layer's rows is a trap"

    threshold: float = param(0, 0, 1, "The check trips if a larger fraction of the rows than this is a trap.")

    def measure(self, handed: Handed) -> float:
        rows = first_rows(handed.model)
        if rows is None:
            return math.nan
        balanced = ((rows > 0).sum(1) - (rows < 0).sum(1)).abs() <= 1  # (K,)
        return sum(_is_trap(row) for row in rows[balanced]) / len(rows)


def _is_trap(row: Tensor) -> bool:
    """Return whether the sorted positive numbers of a row (n,) are those of the negative numbers times a factor."""
    if not bool((row > 0).any() and (row < 0).any()):
        return False
    p, q = _quantiles(row[row > 0]), _quantiles(-row[row < 0])
    return bool((p - (p @ q) / (q @ q) * q).norm() < RESIDUAL * p.norm())


def _quantiles(sizes: Tensor) -> Tensor:
    """Return QUANTILES quantiles of some numbers, from the least to the largest, in float64."""
    ordered = sizes.double().sort().values
    index = torch.linspace(0, len(ordered) - 1, QUANTILES, dtype=torch.float64, device=ordered.device)
    below = index.floor().long()
    return torch.lerp(ordered[below], ordered[index.ceil().long()], index - below)
