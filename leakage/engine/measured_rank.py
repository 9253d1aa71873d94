"""The rank of a convolution's equations by singular values, for random weights and a random derivative; float64.

K are the gradient equations, K0 for every channel, and W the weight equations of `engine/equations.py`. Two smaller matrices are
decomposed instead of [K; W]: with a basis N of the null space of K0 (K0 N = 0)

rank [K; W] = Ci rank K0 + rank (W (I (x) N))

W times a picture is the output of the convolution, so W itself is never built. A rank is the number of singular values above 1e-12 of
the largest. Source: ours; the sum holds for every pair of matrices.
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
AHEAD = 1.5  # rows for each column that are read at once: random matrices of this shape are well conditioned


def measured_rank(layer: Map, seed: int, *, should_stop: Callable[[], bool] = lambda: False) -> int | None:
    """Compute the rank of the linear equations for a convolution's input that its output and its weight's gradient give together.

    The rank is that for one picture, with random weights and a random derivative dL/dz; it is at most the number of the input's entries.

    Args:
        layer: the shapes of the convolution.
        seed: of the random weights w and the random derivative dL/dz.
        should_stop: called before every decomposition.

    Returns:
        The rank; None where the matrices would be too large (`too_large`).

    Raises:
        StoppedError: `should_stop` returned True.
    """
    if too_large(layer):
        return None
    rng = torch.Generator().manual_seed(seed)
    channels, height, width = layer.x
    k = torch.randn(layer.z, generator=rng, dtype=torch.float64)
    w = torch.randn(layer.z[0], channels, layer.size, layer.size, generator=rng, dtype=torch.float64)
    # Pixels that the kernel reaches at some position.
    reached = int(gradient_rows(k[:1], layer.size, layer.stride, layer.padding, (height, width)).any(0).sum())
    known, rows = _rank(_gradient(k, layer), reached, 0.0, should_stop)
    if known == reached:
        return channels * reached
    if should_stop():
        raise StoppedError
    free = torch.linalg.svd(rows).Vh[known:].reshape(-1, 1, height, width)  # N: (m, 1, H, W)
    longest = float(w.flatten(1).norm(dim=1).max())
    return channels * known + _rank(_weight(w, free, layer), channels * (reached - known), longest, should_stop)[0]


def _gradient(k: Tensor, layer: Map) -> Iterator[Tensor]:
    """Yield the rows of the gradient equations' matrix K0 (`gradient_rows`), a few filters at a time, given k = dL/dz (Co, Ho, Wo)."""
    _, height, width = layer.x
    for filters in k.split(_at_once(layer.size**2, height * width)):
        yield gradient_rows(filters, layer.size, layer.stride, layer.padding, (height, width))


def _weight(w: Tensor, free: Tensor, layer: Map) -> Iterator[Tensor]:
    """Yield the rows of W (I (x) N), a few filters at a time: the outputs of the convolution for every picture in `free`, in every channel.

    Args:
        w: the weight of the convolution, (Co, Ci, s, s); W is the convolution as a matrix.
        free: N, a basis of the pictures that leave the weight's gradient unchanged, (m, 1, H, W).
        layer: the shapes of the convolution.
    """
    channels, positions = w.shape[1], layer.outputs // len(w)
    for filters in w.split(_at_once(positions, channels * len(free))):
        outputs = F.conv2d(free, filters.reshape(-1, 1, layer.size, layer.size), stride=layer.stride, padding=layer.padding)
        outputs = outputs.reshape(len(free), len(filters), channels, positions)  # (m, Co', Ci, Ho Wo)
        yield outputs.permute(1, 3, 2, 0).reshape(len(filters) * positions, -1)  # (Co' Ho Wo, Ci m)


def _at_once(rows: int, columns: int) -> int:
    """Return how many filters to read at once, so that a part has about AHEAD rows for each column.

    Args:
        rows: the rows of one filter.
        columns: the columns of the matrix.
    """
    return max(1, round(AHEAD * columns / rows))


def _rank(parts: Iterator[Tensor], full: int, scale: float, should_stop: Callable[[], bool]) -> tuple[int, Tensor]:
    """Return the rank of a matrix that arrives in blocks of rows, and rows that span the same space.

    The filters of a convolution are drawn from one distribution and independently, so a part adds at most as much rank as the part before
    it. Reading ends after a part that adds nothing.

    Args:
        parts: blocks of rows.
        full: the largest rank that is possible; reading ends there.
        scale: a singular value counts if it is above FAINT times the largest, or FAINT times `scale` where that is larger.
        should_stop: called before every decomposition.

    Raises:
        StoppedError: `should_stop` returned True.
    """
    rows, rank = next(parts), 0
    while True:
        if should_stop():
            raise StoppedError
        if len(rows) > rows.shape[1]:
            rows = torch.linalg.qr(rows, mode="r").R  # the same singular values
        values = torch.linalg.svdvals(rows)
        before, rank = rank, int((values > FAINT * max(float(values[0]), scale)).sum())
        more = next(parts, None) if before < rank < full else None
        if more is None:
            return rank, rows
        rows = torch.cat((rows, more))
