"""The directions along which the gradient of a fully connected layer is sparse: where the pictures of a batch are told apart.

Behind ReLU G = dL/dW = D X, of m units and B pictures: D = dL/dz (m, B), X (B, n) what enters the layer. G has rank B, and with U its left
singular vectors D = U Q. Column i of D is 0 wherever picture i leaves a unit off, about half of its entries. So the columns of Q are the
directions q for which U q is that sparse; others occur only at random.
Source: Dimitrov, Baader, Mueller and Vechev 2024 (`sample`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.engine.core import generator

DIGITS = 1e-7  # of the largest singular value: what is below is rounding
BEYOND = 8  # singular values beyond those that can be pictures: what is behind them is rounding or noise
LARGE, SKETCH = 1024, 512  # rows of a matrix that is sketched, and of how many mixtures
STARTS, STEPS, ROUNDS = 64, 250, 40  # of the descent
STEP, FALL = 0.3, 0.965  # the length of its first step, and what is left of that from each to the next
DECIDE = 0.12  # the share of rows, those that came out smallest, that makes a direction exact
SPARSE = 0.15  # the least share of zeros of a picture's direction
SAME = 1e-3  # directions whose |cosine| lies so near 1 are one: noise moves them
ROUNDING = 1e-13  # what counts as zero in any case, as a share of the largest entry
SURE = 6.0  # standard deviations of the noise that a zero may have
TRIES, TOGETHER = 50_000, 1000  # of `sample`: how many at most, and how many at a time
MOST = 4  # times B: how many directions are kept


@dataclass(frozen=True)
class GradientSpectrum:
    """G (m, n), cut where its singular values fall into rounding or noise.

    values   all singular values, falling: (min(m, n),)
    left     the first of its left singular vectors, (m, rank)
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
        """How many pictures it speaks of."""
        return self.left.shape[1]

    def zeros(self, q: Tensor) -> Tensor:
        """Which entries of left q are 0 as far as the noise allows that to be seen, for directions q (rank, K): (m, K) bool."""
        noise = SURE * self.noise * (q / self.right.norm(dim=1, keepdim=True)).norm(dim=0)
        found: Tensor = (self.left @ q).abs() <= noise.clamp(min=ROUNDING * float(self.left.abs().max()))
        return found

    def alive(self) -> Tensor:
        """Which rows say anything: units that at least one picture activates, (m,) bool."""
        return ~self.zeros(torch.eye(self.rank, dtype=self.left.dtype)).all(1)


def spectrum(weight_gradient: Tensor, most: int) -> GradientSpectrum:
    """That of G (m, n) in float64, cut after `most` singular values at the latest. By a Gram matrix, which takes a third of the time.

    Of a large G by that of SKETCH random mixtures of its rows or columns: what is lost by that, one more multiplication brings back.
    Source: Halko, Martinsson and Tropp 2011, algorithms 4.1 and 4.3.
    """
    flat = weight_gradient if len(weight_gradient) <= weight_gradient.shape[1] else weight_gradient.T
    look = flat if len(flat) <= LARGE else flat @ mixtures(flat.shape[1])  # (m, n) or (m, SKETCH)
    squares, vectors = torch.linalg.eigh(look @ look.T if look is flat else look.T @ look)
    values = squares.flip(0).clamp(min=0).sqrt()
    first = vectors.flip(1)[:, : min(most + BEYOND, len(flat) - 1)]
    base, _ = torch.linalg.qr(first if look is flat else look @ first)
    base, _ = torch.linalg.qr(flat @ (flat.T @ base))  # once more, for the digits that are lost in the square
    u, s, v = torch.linalg.svd(base.T @ flat, full_matrices=False)
    beyond = flat - base @ (base.T @ flat)
    spread = float(beyond.norm()) / math.sqrt((flat.shape[0] - len(s)) * (flat.shape[1] - len(s)))
    rank = min(rank_of(s, flat.shape, spread), most)
    left, right = base @ u[:, :rank], s[:rank, None] * v[:rank]
    noise = float((flat - left @ right).square().mean().sqrt())
    if flat is not weight_gradient:
        left, right = v[:rank].T, s[:rank, None] * (base @ u[:, :rank]).T
    return GradientSpectrum(values, left, right, noise, int((values > DIGITS * values[0]).sum()))


def rank_of(values: Tensor, shape: torch.Size, noise: float) -> int:
    """How many singular values of a matrix of this shape stand above rounding and above noise of this standard deviation in every entry.

    Threshold: lambda(beta) sqrt(n) noise for sides m <= n, beta = m / n. Source: Gavish and Donoho 2014.
    """
    beta = min(shape) / max(shape)
    factor = math.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + math.sqrt(beta**2 + 14 * beta + 1)))
    return int((values > max(DIGITS * float(values[0]), factor * math.sqrt(max(shape)) * noise)).sum())


def mixtures(count: int) -> Tensor:
    """Always the same random numbers, (count, SKETCH), that keep lengths on average."""
    drawn = torch.randn((count, SKETCH), generator=generator(0, "sketch"), dtype=torch.float64)
    return drawn / math.sqrt(SKETCH)


def descend(cut: GradientSpectrum, rng: torch.Generator) -> Iterator[Tensor]:
    """After every round all directions (rank, K) found so far, the sparsest first.

    min sum_j |<U_j, q>| / |U_j| over the sphere by subgradients, from STARTS places at once: rows U_j, which lean to their sparse
    directions already, and as many at random, half of these away from what was found.
    Unlike the paper, which has `sample`: its tries double with every picture.
    """
    if cut.rank == 1:
        yield cut.left.new_ones(1, 1)
        return
    rows = cut.left[cut.alive()]
    fast = (rows / rows.norm(dim=1, keepdim=True)).float()
    found = cut.left.new_zeros(cut.rank, 0)
    for _ in range(ROUNDS):
        anywhere = torch.randn(STARTS // 2, cut.rank, generator=rng, dtype=torch.float64)
        away = anywhere[::2] - anywhere[::2] @ found @ torch.linalg.pinv(found)
        anywhere[::2] = torch.where(away.norm(dim=1, keepdim=True) > SAME, away, anywhere[::2])
        q = torch.cat([fast[torch.randint(len(fast), (STARTS // 2,), generator=rng)], anywhere.float()])
        q = q / q.norm(dim=1, keepdim=True)  # (S, B)
        for step in range(STEPS):
            p = (q @ fast.T).sign() @ fast
            p = p - (p * q).sum(1, keepdim=True) * q
            q = q - STEP * FALL**step * p / p.norm(dim=1, keepdim=True).clamp(min=torch.finfo(p.dtype).tiny)
            q = q / q.norm(dim=1, keepdim=True)
        found = added(cut, found, torch.stack([settled(cut, rows, one) for one in q.double()], 1))
        yield found


def sample(cut: GradientSpectrum, rng: torch.Generator) -> Iterator[Tensor]:
    """After every TOGETHER tries all directions (rank, K) found so far, the sparsest first.

    A try: the null vector of rank - 1 random rows of U. It is right where all of them are zeros of one picture.
    """
    if cut.rank == 1:
        yield cut.left.new_ones(1, 1)
        return
    rows = cut.left[cut.alive()]
    found = cut.left.new_zeros(cut.rank, 0)
    for _ in range(TRIES // TOGETHER):
        chosen = torch.rand(TOGETHER, len(rows), generator=rng).topk(min(cut.rank - 1, len(rows)), 1).indices
        q = torch.linalg.svd(rows[chosen]).Vh[:, -1]
        found = added(cut, found, q.T)
        yield found


def settled(cut: GradientSpectrum, rows: Tensor, q: Tensor) -> Tensor:
    """The direction (rank,) near q for which the rows that are smallest along q are smallest."""
    few = (rows @ q).abs().argsort()[: max(int(DECIDE * len(rows)), 2 * cut.rank)]
    return narrowest(rows[few])


def narrowest(rows: Tensor) -> Tensor:
    """The unit vector q for which |rows q| is smallest."""
    found: Tensor = torch.linalg.eigh(rows.T @ rows).eigenvectors[:, 0]
    return found


def added(cut: GradientSpectrum, found: Tensor, new: Tensor) -> Tensor:
    """`found` (rank, K) and those of `new` (rank, N) that are sparse and not there yet, each made exact by all its zeros."""
    alive = cut.alive()
    zeros = cut.zeros(new)[alive]
    sparse = zeros.double().mean(0) >= SPARSE
    new, zeros = new[:, sparse], zeros[:, sparse]
    some = distinct(new, zeros.sum(0), MOST * cut.rank)
    exact = [narrowest(cut.left[alive][zeros[:, place]])[:, None] for place in some]
    every = torch.cat([found, *exact], 1)
    return every[:, distinct(every, cut.zeros(every).sum(0), MOST * cut.rank)]


def distinct(q: Tensor, zeros: Tensor, most: int) -> list[int]:
    """At most so many places of directions (rank, K), those with most `zeros` (K,) first; of those that are one the first."""
    cosine = (q.T @ q).abs()
    free = torch.ones(q.shape[1], dtype=torch.bool)
    taken: list[int] = []
    for place in zeros.argsort(descending=True, stable=True).tolist():
        if free[place] and len(taken) < most:
            taken.append(place)
            free &= cosine[place] <= 1 - SAME
    return taken
