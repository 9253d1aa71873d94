"""A check of the last layer: whether rows of it are emptied or exchanged."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.checks._received_model import head_of
from leakage.engine.client import weights_of
from leakage.engine.core import Check, Handed, flag, param

NEGLIGIBLE = 1e-6  # of the largest number of a row
CLOSER = 0.5
AT_ONCE = 1024  # rows


@dataclass(frozen=True, kw_only=True)
class HeadRows(Check):
    """The fraction of rows of the layer that computes the logits (W, without biases) that are emptied or exchanged.

    A row is emptied if all its numbers are equal, such as 0, or all but one are 0: its class then has the same score for all pictures, or
    a score by one feature. A row i is exchanged if it lies less than half as far from another row j of an earlier head than from row i of
    it: ||W_i - W'_j|| < ||W_i - W'_i|| / 2. The earlier head is that of the round before, and, if `published` is set, that of the agreed
    network's initial weights. So a server that exchanges rows from the first round on trips the check only with published weights.
    The check is not defined without such a layer, nor where it has a single input. A network whose last layer begins with zeros trips
    it as well. A server that adds a little noise to emptied rows passes.
    Source: designed here, against Wen et al. 2022 (fishing) and the exchanged labels of Geiping et al. 2020, appendix A.2.
    """

    title = "Looks for emptied or exchanged rows of the last layer (head rows)"
    short = "Head rows"
    plain = "The phone counts rows of the last layer that are empty, repeat one number, or changed places since the round before."
    hint = "It sees class fishing and feature fishing. It sees exchanged rows from round two on, or at once with published weights."
    source = "https://arxiv.org/abs/2202.00580"
    measures = "which fraction of the last layer's rows is emptied or exchanged"

    threshold: float = param(0, 0, 1, "The check trips if a larger fraction of the rows than this is emptied or exchanged.")
    published: bool = flag(False, "Compare the rows also with the initial weights on which the phones agreed; they must be published.")

    def measure(self, handed: Handed) -> float:
        head = head_of(handed)
        rows = weights_of(handed.model)[head.weight].detach().double() if head else torch.empty(0, 0)  # (K, n)
        if head is None or rows.shape[1] < 2:
            return math.nan
        found = _emptied(rows)
        for weights in (*handed.earlier[-1:], *([weights_of(handed.agreed)] if self.published else [])):
            before = weights.get(head.weight)
            if before is not None and before.shape == rows.shape:
                found = found | _exchanged(rows, before.detach().double())
        return float(found.double().mean())


def _emptied(rows: Tensor) -> Tensor:
    """Return which rows (K,) of (K, n) are constant, or have at most one entry that is not 0."""
    least = NEGLIGIBLE * rows.abs().amax(1)  # (K,)
    return (rows.amax(1) - rows.amin(1) <= least) | ((rows.abs() > least.unsqueeze(1)).sum(1) <= 1)


def _exchanged(rows: Tensor, before: Tensor) -> Tensor:
    """Return which rows (K,) are much closer to another row of `before` (K, n) than to the same row."""
    own = (rows - before).norm(dim=1)  # (K,)
    nearest = torch.cat([torch.cdist(part, before).amin(1) for part in rows.split(AT_ONCE)])  # (K,)
    return torch.lt(nearest, CLOSER * own)
