"""The imprint over several rounds: in each round the bins that held pictures are divided into narrower bins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from leakage.engine.arranged import Bins
from leakage.engine.core import Params, Round
from leakage.servers.imprint import BELOW, NAME, Imprint

BIAS = f"{NAME}.sort.bias"  # the thresholds, with a minus sign
ABOVE = 2.0  # lower edge of bins that are not used: brighter than a picture can be
ANSWER = 1e-6  # a bin counts as empty if its bias gradient is below this fraction of the largest
FINEST = 16  # the width of the narrowest bin that is divided, in rounding errors of its edges


@dataclass(frozen=True, kw_only=True)
class Bisect(Imprint):
    """The imprint with K thresholds that are placed anew in each round, where pictures have been.

    A bin [l, u) is filled if the difference of two neighbouring entries of the bias's gradient is not 0. In the next round the N filled
    bins share the K thresholds: each bin gets K / N of them, rounded down, and the widest bins get the rest. A bin with k thresholds is
    divided into k equal parts, from l on. It needs none at u: the bins between two filled ones were empty, so the last part may reach
    up to the next filled bin. A bin that is as narrow as rounding allows gets one threshold. So pictures that share a bin are separated in
    a later round, unless their brightness is equal, and a picture that is alone stays alone. The client must have the same pictures in all
    rounds. All clients get the same thresholds, so that a sum of their updates (secure aggregation) can be read like a single update.
    Source: designed here after Diana et al. 2025, who place hyperplanes anew in each round.
    Unlike the paper: the hyperplanes are parallel (brightness), and stand in the imprint's layer (Fowl et al. 2022).
    """

    title = "Sorts pictures by brightness more finely in each round (bisection)"
    short = "Bisection"
    plain = "The server adds a layer that sorts pictures by brightness. From round to round it divides the bins that held pictures."
    hint = "Choose many pictures, watch 6 rounds and attack the last. Compare it with the first: pictures that shared a bin are now apart."
    source = "https://arxiv.org/abs/2505.10264"
    rounds = 2

    def hand_out(self, model: nn.Module, weights: Params, history: Sequence[Round], rng: torch.Generator) -> Params:
        lower, upper = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
        for seen in history:
            lower, upper = filled_bins(seen, lower, upper)
        if not history or not len(lower):
            return weights
        thresholds = shared_out(lower, upper, self.bins, finest=FINEST * torch.finfo(weights[BIAS].dtype).eps)
        return {**weights, BIAS: -thresholds.to(weights[BIAS])}

    def secret(self, model: nn.Module, members: int) -> Bins:
        return replace(super().secret(model, members), every_round=True)


def filled_bins(seen: Round, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower and upper edges (N,) of the bins that held pictures in a round, in rising order.

    Args:
        seen: the round, as the server received it.
        lower: the lower edges of the bins that held pictures in the round before, (M,).
        upper: their upper edges, (M,); a bin of this round ends there at the latest.

    Returns:
        Edges from 0 to 1, in float64 on the CPU.
    """
    edges, d = (-seen.weights[BIAS]).detach().cpu().double(), seen.update[BIAS].detach().cpu().double()
    answer = (d - torch.cat([d[1:], d.new_zeros(1)])).abs()
    filled = answer > ANSWER * answer.max()
    first, last = edges[filled].clamp(0, 1), torch.cat([edges[1:], edges.new_ones(1)])[filled].clamp(0, 1)
    within = (torch.searchsorted(lower, first, right=True) - 1).clamp(min=0)  # the number of the bin that a bin is a part of
    return torch.maximum(first, lower[within]), torch.minimum(last, upper[within])


def shared_out(lower: Tensor, upper: Tensor, count: int, *, finest: float) -> Tensor:
    """Return thresholds (count,) in rising order that divide bins into equal parts: one at the lower edge of a bin, the others inside it.

    The first threshold is below the brightness of any picture. Thresholds that are left over are above it.

    Args:
        lower: the lower edges of N <= `count` bins, (N,).
        upper: their upper edges, (N,).
        count: the number of thresholds.
        finest: the width of a bin that is not divided further.

    >>> shared_out(torch.tensor([0.0, 0.6]), torch.tensor([0.4, 0.7]), 5, finest=1e-6)
    tensor([-10.0000,   0.1333,   0.2667,   0.6000,   0.6500])
    """
    width, parts = upper - lower, torch.ones(len(lower))
    for _ in range(count - len(lower)):
        open = width >= (parts + 1) * finest
        if not open.any():
            break
        fewest = open & (parts == parts[open].min())
        parts[width.where(fewest, -1).argmax()] += 1
    thresholds = [start + size / n * step for start, size, n in zip(lower, width, parts, strict=True) for step in range(int(n))]
    left = torch.full((count - len(thresholds),), ABOVE, dtype=lower.dtype)
    return torch.cat([lower.new_full((1,), BELOW), *([torch.stack(thresholds[1:])] if thresholds[1:] else []), left])
