"""The directions along which the gradient of a fully connected layer is sparse; each of them belongs to one picture of the batch.

For a layer of m units followed by ReLU and a batch of B pictures, G = dL/dW = D X with D = dL/dz (m, B) and the layer's inputs X (B, n).
G has rank B. With its left singular vectors U, D = U Q. Column i of D is 0 for every unit that picture i leaves off, which is about half of
its entries. So the columns of Q are the directions q for which U q has so many zeros; any other direction has them only at random.
Source: Dimitrov, Baader, Mueller and Vechev 2024 (`sample`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.engine.core import generator

DIGITS = 1e-7  # singular values below this fraction of the largest are rounding
BEYOND = 8  # singular values computed in addition to one for each picture: they measure rounding and noise
LARGE, SKETCH = 1024, 512  # a matrix with more rows than LARGE is replaced by SKETCH random mixtures of its columns
STARTS, STEPS, ROUNDS = 64, 250, 40  # starting points of `descend` in each round, steps of each, and the most rounds
STEP, FALL = 0.3, 0.965  # the length of the first step, and the factor from each step to the next
DECIDE = 0.12  # a direction is refined by this fraction of the rows: the smallest ones along it
SPARSE = 0.15  # the least fraction of zeros of a picture's direction
SAME = 1e-3  # two directions with |cosine| above 1 - SAME count as equal: noise moves them
ROUNDING = 1e-13  # an entry below this fraction of the largest counts as zero in any case
SURE = 6.0  # an entry below so many standard deviations of the noise counts as zero
SAMPLES, TOGETHER = 50_000, 1000  # the most samples of `sample`, and how many are drawn at a time
MOST = 4  # times the rank: how many directions are kept


@dataclass(frozen=True)
class GradientSpectrum:
    """The singular values and vectors of G (m, n), cut where the singular values are rounding or noise.

    values   all singular values, falling: (min(m, n),); approximate for a G of more than LARGE rows and columns: (SKETCH,)
    left     the first left singular vectors, (m, rank)
    right    left^T G, (rank, n)
    noise    the root mean square of the entries of G - left right
    full     how many singular values are more than rounding
    """

    values: Tensor
    left: Tensor
    right: Tensor
    noise: float
    full: int

    @property
    def rank(self) -> int:
        """The number of pictures that the gradient distinguishes."""
        return self.left.shape[1]

    def zeros(self, q: Tensor) -> Tensor:
        """Return which entries of `left @ q` are 0 within rounding and noise, for directions q (rank, K): (m, K) bool."""
        noise = SURE * self.noise * (q / self.right.norm(dim=1, keepdim=True)).norm(dim=0)
        found: Tensor = (self.left @ q).abs() <= noise.clamp(min=ROUNDING * float(self.left.abs().max()))
        return found

    def alive(self) -> Tensor:
        """Return which units at least one picture activates, so that their rows are not 0: (m,) bool."""
        return ~self.zeros(torch.eye(self.rank, dtype=self.left.dtype)).all(1)


def spectrum(weight_gradient: Tensor, most: int) -> GradientSpectrum:
    """Compute the singular values and vectors of G (m, n), float64, cut after at most `most` of them.

    The eigenvectors of a Gram matrix take a third of the time of a singular value decomposition. For a large G the Gram matrix is that of
    SKETCH random mixtures of its rows or columns; one more multiplication by G restores the precision that mixing costs.
    Source: Halko, Martinsson and Tropp 2011, algorithms 4.1 and 4.3.
    """
    flat = weight_gradient if len(weight_gradient) <= weight_gradient.shape[1] else weight_gradient.T
    mixed = flat if len(flat) <= LARGE else flat @ mixtures(flat.shape[1])  # (m, n) or (m, SKETCH)
    squares, vectors = torch.linalg.eigh(mixed @ mixed.T if mixed is flat else mixed.T @ mixed)
    values = squares.flip(0).clamp(min=0).sqrt()
    first = vectors.flip(1)[:, : min(most + BEYOND, len(flat) - 1)]
    base, _ = torch.linalg.qr(first if mixed is flat else mixed @ first)
    base, _ = torch.linalg.qr(flat @ (flat.T @ base))  # restores the digits that squaring lost
    u, s, v = torch.linalg.svd(base.T @ flat, full_matrices=False)
    beyond = flat - base @ (base.T @ flat)
    deviation = float(beyond.norm()) / math.sqrt((flat.shape[0] - len(s)) * (flat.shape[1] - len(s)))
    rank = min(rank_of(s, flat.shape, deviation), most)
    left, right = base @ u[:, :rank], s[:rank, None] * v[:rank]
    noise = float((flat - left @ right).square().mean().sqrt())
    if flat is not weight_gradient:
        left, right = v[:rank].T, s[:rank, None] * (base @ u[:, :rank]).T
    return GradientSpectrum(values, left, right, noise, int((values > DIGITS * values[0]).sum()))


def rank_of(values: Tensor, shape: torch.Size, noise: float) -> int:
    """Return the number of singular values that exceed rounding and noise.

    Args:
        values: singular values of a matrix, falling.
        shape: the shape of the matrix.
        noise: standard deviation of the noise in each entry of the matrix.

    The threshold for noise is lambda(beta) sqrt(n) noise for sides m <= n, beta = m / n. Source: Gavish and Donoho 2014.
    """
    beta = min(shape) / max(shape)
    factor = math.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + math.sqrt(beta**2 + 14 * beta + 1)))
    return int((values > max(DIGITS * float(values[0]), factor * math.sqrt(max(shape)) * noise)).sum())


def mixtures(count: int) -> Tensor:
    """Draw a random matrix (count, SKETCH) that keeps lengths on average; it is the same in every call."""
    drawn = torch.randn((count, SKETCH), generator=generator(0, "sketch"), dtype=torch.float64)
    return drawn / math.sqrt(SKETCH)


def descend(cut: GradientSpectrum, rng: torch.Generator) -> Iterator[Tensor]:
    """Find sparse directions by descent; yield after every round the K directions found so far, as columns (rank, K), the sparsest first.

    A direction q is sparse if many entries of U q are 0, where U is `cut.left` (m, rank), with a row U_j for each unit of the
    layer. The descent minimizes sum_j |<U_j, q>| / |U_j| over the unit sphere by subgradients, from STARTS points at once. Half of the
    points are rows U_j, which lie close to sparse directions already; the others are random, and every other random point is orthogonal to
    the directions found.
    Dimitrov et al. sample instead (`sample`), which needs twice as many samples for each further picture.
    """
    if cut.rank == 1:
        yield cut.left.new_ones(1, 1)
        return
    rows = cut.left[cut.alive()]
    fast = (rows / rows.norm(dim=1, keepdim=True)).float()
    found = cut.left.new_zeros(cut.rank, 0)
    for _ in range(ROUNDS):
        random_points = torch.randn(STARTS // 2, cut.rank, generator=rng, dtype=torch.float64)
        outside = random_points[::2] - random_points[::2] @ found @ torch.linalg.pinv(found)
        random_points[::2] = torch.where(outside.norm(dim=1, keepdim=True) > SAME, outside, random_points[::2])
        q = torch.cat([fast[torch.randint(len(fast), (STARTS // 2,), generator=rng)], random_points.float()])
        q = q / q.norm(dim=1, keepdim=True)  # (S, B)
        for step in range(STEPS):
            p = (q @ fast.T).sign() @ fast
            p = p - (p * q).sum(1, keepdim=True) * q
            q = q - STEP * FALL**step * p / p.norm(dim=1, keepdim=True).clamp(min=torch.finfo(p.dtype).tiny)
            q = q / q.norm(dim=1, keepdim=True)
        found = add_directions(cut, found, torch.stack([refine(cut, rows, direction) for direction in q.double()], 1))
        yield found


def sample(cut: GradientSpectrum, rng: torch.Generator) -> Iterator[Tensor]:
    """Find sparse directions by sampling; yield after every TOGETHER samples all directions (rank, K) found so far, the sparsest first.

    A direction q is sparse if many entries of U q are 0, where U is `cut.left` (m, rank), with a row for each unit. A sample is the null
    vector of rank - 1 random rows of U. It is a picture's direction if that picture leaves all of these units off.
    """
    if cut.rank == 1:
        yield cut.left.new_ones(1, 1)
        return
    rows = cut.left[cut.alive()]
    found = cut.left.new_zeros(cut.rank, 0)
    for _ in range(SAMPLES // TOGETHER):
        chosen = torch.rand(TOGETHER, len(rows), generator=rng).topk(min(cut.rank - 1, len(rows)), 1).indices
        q = torch.linalg.svd(rows[chosen]).Vh[:, -1]
        found = add_directions(cut, found, q.T)
        yield found


def refine(cut: GradientSpectrum, rows: Tensor, q: Tensor) -> Tensor:
    """Return the unit vector q' (rank,) that minimizes ||R q'||, where R are those of `rows` (N, rank) with the smallest |<row, q>|."""
    few = (rows @ q).abs().argsort()[: max(int(DECIDE * len(rows)), 2 * cut.rank)]
    return narrowest(rows[few])


def narrowest(rows: Tensor) -> Tensor:
    """Return the unit vector q (rank,) that minimizes ||rows q|| for rows (N, rank)."""
    found: Tensor = torch.linalg.eigh(rows.T @ rows).eigenvectors[:, 0]
    return found


def add_directions(cut: GradientSpectrum, found: Tensor, new: Tensor) -> Tensor:
    """Return the distinct directions among `found` (rank, K) and the sparse ones of `new` (rank, N), the sparsest first.

    Each new direction is recomputed as the direction that is orthogonal to all rows where it is 0.
    """
    alive = cut.alive()
    zeros = cut.zeros(new)[alive]
    sparse = zeros.double().mean(0) >= SPARSE
    new, zeros = new[:, sparse], zeros[:, sparse]
    chosen = distinct_indices(new, zeros.sum(0), MOST * cut.rank)
    exact = [narrowest(cut.left[alive][zeros[:, index]])[:, None] for index in chosen]
    every = torch.cat([found, *exact], 1)
    return every[:, distinct_indices(every, cut.zeros(every).sum(0), MOST * cut.rank)]


def distinct_indices(q: Tensor, zeros: Tensor, most: int) -> list[int]:
    """Return the indices of at most `most` directions q (rank, K), no two of them equal up to SAME, those with the most zeros first.

    `zeros` (K,) counts for each direction the units at which it is 0.
    """
    cosine = (q.T @ q).abs()
    free = torch.ones(q.shape[1], dtype=torch.bool)
    indices: list[int] = []
    for index in zeros.argsort(descending=True, stable=True).tolist():
        if free[index] and len(indices) < most:
            indices.append(index)
            free &= cosine[index] <= 1 - SAME
    return indices
