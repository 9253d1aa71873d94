"""The rank of a convolution's equations by singular values, for random weights and a random derivative; float64.

K are the gradient equations, K0 for every channel, and W the weight equations of `engine/equations.py`. Only two smaller matrices are
decomposed: with a basis N of what K0 leaves open (K0 N = 0)

rank [K; W] = Ci rank K0 + rank (W (I (x) N))

Each row of W times a picture is an output of its convolution, so W itself is never made. A rank is the number of singular values above
1e-12 of the largest. Source: ours; the sum holds for every pair of matrices.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.engine.equations import gradient_rows
from leakage.engine.stopping import StoppedError
from leakage.networks.grammar import Map
from leakage.networks.rank_cost import too_large

FAINT = 1e-12
AHEAD = 1.5  # rows that are read at once, for each column: so many are well conditioned


def measured_rank(layer: Map, seed: int, *, should_stop: Callable[[], bool] = lambda: False) -> int | None:
    """The rank of all equations of one picture, |x| at most; None where the layer is too large.

    `should_stop` is called before every decomposition. Raises StoppedError when it returns True.
    """
    if too_large(layer):
        return None
    rng = torch.Generator().manual_seed(seed)
    channels, height, width = layer.x
    k = torch.randn(layer.z, generator=rng, dtype=torch.float64)
    w = torch.randn(layer.z[0], channels, layer.size, layer.size, generator=rng, dtype=torch.float64)
    met = int(gradient_rows(k[:1], layer.size, layer.stride, layer.padding, (height, width)).any(0).sum())  # pixels that some place meets
    known, rows = _rank(_gradient(k, layer), met, 0.0, should_stop)
    if known == met:
        return channels * met
    if should_stop():
        raise StoppedError
    free = torch.linalg.svd(rows).Vh[known:].reshape(-1, 1, height, width)  # N: (m, 1, H, W)
    longest = float(w.flatten(1).norm(dim=1).max())
    return channels * known + _rank(_weight(w, free, layer), channels * (met - known), longest, should_stop)[0]


def _gradient(k: Tensor, layer: Map) -> Iterator[Tensor]:
    """The rows of K0, some filters at a time."""
    _, height, width = layer.x
    for some in k.split(_at_once(layer.size**2, height * width)):
        yield gradient_rows(some, layer.size, layer.stride, layer.padding, (height, width))


def _weight(w: Tensor, free: Tensor, layer: Map) -> Iterator[Tensor]:
    """The rows of W (I (x) N), some filters at a time: every picture of N in every channel, convolved."""
    channels, positions = w.shape[1], layer.outputs // len(w)
    for some in w.split(_at_once(positions, channels * len(free))):
        made = F.conv2d(free, some.reshape(-1, 1, layer.size, layer.size), stride=layer.stride, padding=layer.padding)
        made = made.reshape(len(free), len(some), channels, positions)  # (m, Co', Ci, Ho Wo)
        yield made.permute(1, 3, 2, 0).reshape(len(some) * positions, -1)  # (Co' Ho Wo, Ci m)


def _at_once(rows: int, columns: int) -> int:
    """Filters with so many rows each."""
    return max(1, round(AHEAD * columns / rows))


def _rank(parts: Iterator[Tensor], full: int, scale: float, should_stop: Callable[[], bool]) -> tuple[int, Tensor]:
    """The rank of the rows of all parts, `full` at most, and rows that span the same; parts that can add nothing are not read.

    Filters are drawn alike and independently, so a part adds at most what the one before it added: after one that adds nothing none does.
    A singular value counts if it is above FAINT times the largest, or times `scale` where that is larger.
    """
    held, rank = next(parts), 0
    while True:
        if should_stop():
            raise StoppedError
        if len(held) > held.shape[1]:
            held = torch.linalg.qr(held, mode="r").R  # the same singular values
        values = torch.linalg.svdvals(held)
        before, rank = rank, int((values > FAINT * max(float(values[0]), scale)).sum())
        more = next(parts, None) if before < rank < full else None
        if more is None:
            return rank, held
        held = torch.cat((held, more))
