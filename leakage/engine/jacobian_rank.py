"""The rank of a whole gradient: how many directions of a picture move it at all, and how much. Speaks of every attack near the picture.

J = d(gradient) / d(picture) has a row for every number that is sent and a column for every pixel value. Where its rank is full, pictures
near the private one have other gradients, so the gradient determines the picture there, whatever attack is used to find it. Where it is
short, some directions leave the gradient as it is, to first order, and no attack can tell them. The columns come from the client's own
arithmetic, many at a time, by forward differentiation of its gradient.

What it does not say: it is local, and of a network of straight pieces (ReLU) it holds for the piece that the picture lies on; a large
condition number means that directions are told apart in exact arithmetic alone.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from leakage.engine.client import Gradient, weights_of
from leakage.engine.measured_rank import StoppedError

FAINT = 1e-7  # of the largest singular value: below it, none can be told from 0 after squaring in float64
ROOM = 300_000_000  # numbers of J that are held at once; more are sketched
WIDE = 4  # rows of a sketch, for each column: singular values come out within a factor of 1 +- 1 / sqrt(WIDE)
TOGETHER = 2**24  # numbers of J that are computed at once


@dataclass(frozen=True)
class Spectrum:
    """The singular values of J, descending: (columns,), float64. A value of 1: a pixel from black to white moves the gradient by 1.

    exact   whether all rows were used; else a random sketch of them
    """

    values: Tensor
    exact: bool

    @property
    def unknowns(self) -> int:
        """Pixel values."""
        return len(self.values)

    @property
    def rank(self) -> int:
        """Directions of the picture that move the gradient."""
        return int((self.values > FAINT * self.values[0]).sum())

    @property
    def condition(self) -> float:
        """How much stronger the strongest direction moves the gradient than the faintest of those that do."""
        return float(self.values[0] / self.values[self.rank - 1]) if self.rank else math.inf

    def above(self, noise: float) -> int:
        """How many directions move the gradient by more than `noise`, the standard deviation of each of its numbers."""
        return int((self.values[: self.rank] > noise).sum())


def spectrum(model: nn.Module, x: Tensor, y: Tensor, *, seed: int = 1, pulse: Callable[[], bool] = lambda: False) -> Spectrum:
    """The singular values of J for one picture x (1, C, H, W) with label y (1,), as the model takes it; computed in float64.

    `pulse` is asked between pieces; when it says stop: StoppedError. The model is left as it was.
    """
    columns = x.numel()
    rows = sum(weight.numel() for weight in weights_of(model).values())
    exact = rows <= WIDE * columns or rows * columns <= ROOM
    kept = rows if exact else WIDE * columns
    held = torch.empty(columns, kept, dtype=torch.float32 if exact and rows > WIDE * columns else torch.float64)
    rng = torch.Generator().manual_seed(seed)
    bucket, sign = torch.randint(kept, (rows,), generator=rng), 2.0 * torch.randint(2, (rows,), generator=rng).double() - 1
    start = 0
    for piece in _columns(model, x, y, max(1, TOGETHER // rows)):
        if pulse():
            raise StoppedError
        own = piece if exact else torch.zeros(len(piece), kept, dtype=torch.float64).index_add_(1, bucket, piece * sign)
        held[start : start + len(piece)] = own
        start += len(piece)
    return Spectrum(_singular_values(held, pulse), exact)


def _columns(model: nn.Module, x: Tensor, y: Tensor, most: int) -> Iterator[Tensor]:
    """The columns of J, at most so many at once: (columns, rows) each, float64."""
    honest = deepcopy(model).double()
    client, weights = Gradient(honest), weights_of(honest)
    basis = torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape[1:])
    for directions in basis.split(most):
        count = len(directions)
        with forward_ad.dual_level(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # torch compiles its own formulas by a way that it calls outdated
            moved = forward_ad.make_dual(x.double().expand(count, -1, -1, -1).contiguous(), directions)  # type: ignore[no-untyped-call]
            update = client.each(weights, moved, y.expand(count))
            slopes = [forward_ad.unpack_dual(gradient) for gradient in update.values()]  # type: ignore[no-untyped-call]
            parts = [torch.zeros_like(one.primal) if one.tangent is None else one.tangent for one in slopes]
        yield torch.cat([part.detach().flatten(1) for part in parts], 1)


def _singular_values(held: Tensor, pulse: Callable[[], bool]) -> Tensor:
    """Of a matrix given by its columns (columns, rows): the square roots of the eigenvalues of J^T J, descending."""
    gram = torch.zeros(len(held), len(held), dtype=torch.float64)
    for part in held.split(max(1, TOGETHER // len(held)), dim=1):
        if pulse():
            raise StoppedError
        gram += part.double() @ part.double().T
    values: Tensor = torch.linalg.eigvalsh(gram)
    return values.clamp(min=0).sqrt().flip(0)
