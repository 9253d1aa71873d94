"""The rank of a whole gradient: how many directions of a picture move it at all, and how much. Speaks of every attack near the picture.

J = d(gradient) / d(picture) has a row for every number that is sent and a column for every pixel value. Where its rank is full, pictures
near the private one have other gradients, so the gradient determines the picture there, whatever attack is used to find it. Where it is
short, some directions leave the gradient as it is, to first order, and no attack can tell them. The columns come from the client's own
arithmetic, many at a time, by forward differentiation of its gradient.

What it does not say: it is local, and of a network of straight pieces (ReLU) it holds for the piece that the picture lies on; a large
condition number means that directions are told apart in exact arithmetic alone.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from leakage.engine.client import Gradient, weights_of
from leakage.engine.forward_mode import quiet_forward_mode
from leakage.engine.stopping import StoppedError

FAINT = 1e-7  # of the largest singular value: below it, none can be told from 0 after squaring in float64
ROOM = 100_000_000  # numbers of J that are held at once; more are sketched
WIDE = 4  # rows of a sketch, for each column: singular values come out within a factor of 1 +- 1 / sqrt(WIDE)
TOGETHER = 2**22  # numbers of J, and of what the layers make, that are computed at once


@dataclass(frozen=True)
class Spectrum:
    """The singular values of J, descending: (directions,), float64. A value of 1: a pixel from black to white moves the gradient by 1.

    exact     whether all rows were used; else a random sketch of them
    unknowns  pixel values; where fewer directions were tried, rank, condition and counts are those of J on their span: none is larger
              than J's own, and a rank below the number of directions is J's
    sent      numbers of the gradient
    gradient  its length
    """

    values: Tensor
    exact: bool
    unknowns: int
    sent: int
    gradient: float

    @property
    def directions(self) -> int:
        """How many were tried."""
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

    def above_share(self, share: float) -> int:
        """The same for noise that is, all its numbers together, `share` times as long as the gradient."""
        return self.above(share * self.gradient / math.sqrt(self.sent))


def spectrum(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    directions: int | None = None,
    seed: int = 1,
    should_stop: Callable[[int], bool] = lambda _: False,
) -> Spectrum:
    """The singular values of J for one picture x (1, C, H, W) with label y (1,), as the model takes it; computed in float64.

    `directions`: so many random ones at right angles stand for all, which is for pictures too large; None: every pixel value is one.
    `should_stop` is called between pieces with the number of directions that were moved. Raises StoppedError when it returns True. The
    model is left as it was.
    """
    tried, rng = basis(x, directions, seed), torch.Generator().manual_seed(seed)
    columns, rows = len(tried), sum(weight.numel() for weight in weights_of(model).values())
    exact = rows <= WIDE * columns or rows * columns <= ROOM
    kept = rows if exact else WIDE * columns
    held = torch.empty(columns, kept, dtype=torch.float32 if exact and rows > WIDE * columns else torch.float64)
    bucket, sign = torch.randint(kept, (rows,), generator=rng), 2.0 * torch.randint(2, (rows,), generator=rng).double() - 1
    honest, start = deepcopy(model).double(), 0
    for some in tried.split(max(1, TOGETHER // max(rows, _made(honest, x.double())))):
        if should_stop(start):
            raise StoppedError
        piece = _columns(honest, x.double(), y, some)
        own = piece if exact else torch.zeros(len(piece), kept, dtype=torch.float64).index_add_(1, bucket, piece * sign)
        held[start : start + len(piece)] = own
        start += len(piece)
    sent = Gradient(honest)(weights_of(honest), x.double(), y, {})[0]
    length = math.sqrt(sum(float(part.square().sum()) for part in sent.values()))
    return Spectrum(_singular_values(held, lambda: should_stop(columns)), exact, x.numel(), rows, length)


def basis(x: Tensor, directions: int | None, seed: int) -> Tensor:
    """Directions of a picture, of length 1 and at right angles: (count, C, H, W), float64; all pixel values, or so many random ones."""
    if directions is None or directions >= x.numel():
        return torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape[1:])
    drawn = torch.randn(x.numel(), directions, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    across: Tensor = torch.linalg.qr(drawn).Q
    return across.T.reshape(-1, *x.shape[1:])


def _made(model: nn.Module, x: Tensor) -> int:
    """How many numbers its layers make of one picture."""
    counts = list[int]()
    layers = [layer for layer in model.modules() if not any(True for _ in layer.children())]
    hooks = [layer.register_forward_hook(lambda _layer, _given, made: counts.append(made.numel())) for layer in layers]
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return sum(counts)


def _columns(honest: nn.Module, x: Tensor, y: Tensor, directions: Tensor) -> Tensor:
    """J times so many directions: (count, rows), float64."""
    client, weights, count = Gradient(honest), weights_of(honest), len(directions)
    with forward_ad.dual_level(), quiet_forward_mode():
        moved = forward_ad.make_dual(x.expand(count, -1, -1, -1).contiguous(), directions)  # type: ignore[no-untyped-call]
        update = client.each(weights, moved, y.expand(count))
        gradients = [forward_ad.unpack_dual(gradient) for gradient in update.values()]  # type: ignore[no-untyped-call]
        parts = [torch.zeros_like(one.primal) if one.tangent is None else one.tangent for one in gradients]
    return torch.cat([part.detach().reshape(len(part), -1) for part in parts], 1)


def _singular_values(held: Tensor, should_stop: Callable[[], bool]) -> Tensor:
    """Of a matrix given by its columns (columns, rows): the square roots of the eigenvalues of J^T J, descending."""
    gram = torch.zeros(len(held), len(held), dtype=torch.float64)
    for part in held.split(max(1, TOGETHER // len(held)), dim=1):
        if should_stop():
            raise StoppedError
        gram += part.double() @ part.double().T
    values: Tensor = torch.linalg.eigvalsh(gram)
    return values.clamp(min=0).sqrt().flip(0)
