"""A check of the first layer: whether its rows repeat each other."""

import math
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from leakage.checks._received_model import first_rows
from leakage.engine.core import Check, Handed, param

ALIKE = 0.999  # absolute cosine
AT_ONCE = 256  # rows


@dataclass(frozen=True, kw_only=True)
class EqualRows(Check):
    """The fraction of rows (kernels) of the first convolution or linear layer with |cos| > 0.999 to another row; rows of zeros count not.

    Rows that differ by a factor and a bias alone answer to the same number of a picture, with different thresholds: so an imprint sorts
    pictures. The check is not defined for rows of fewer than 9 numbers. A server that turns its rows a little passes, and so does one
    that puts another layer before them.
    Source: designed here, against algorithm 1 of Fowl et al. 2022.
    """

    title = "Looks for repeated rows in the first layer (equal rows)"
    short = "Equal rows"
    plain = "The phone counts rows of the first layer that nearly equal another row or a multiple of it."
    hint = "It sees layers that sort pictures by one number, such as their brightness."
    source = "https://arxiv.org/abs/2110.13057"
    measures = "which fraction of the first layer's rows repeats another row"

    threshold: float = param(0, 0, 1, "The check trips if a larger fraction of the rows than this repeats another row.")

    def measure(self, handed: Handed) -> float:
        rows = first_rows(handed.model)
        if rows is None:
            return math.nan
        units = F.normalize(rows, dim=1, eps=torch.finfo(rows.dtype).tiny)  # (K, n)
        alike = sum(int((((part @ units.T).abs() > ALIKE).sum(1) > 1).sum()) for part in units.split(AT_ONCE))  # itself is one of them
        return alike / len(rows)
