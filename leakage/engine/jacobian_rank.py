"""The rank of a gradient's derivative by the picture: how many directions of the picture change the gradient, and how much.

J = d(gradient) / d(picture) has a row for every number that is sent and a column for every pixel value. Where its rank is full, pictures
near the private picture have other gradients, so the gradient determines the picture locally, for any attack. Where the rank is not full,
some directions leave the gradient unchanged to first order, and no attack can recover them. The columns come from the client's own
computation, many at a time, by forward differentiation of its gradient.

Limits: the result is local; in a piecewise linear network (ReLU) it holds for the linear piece of the picture. A large condition number
means that directions can be distinguished in exact arithmetic only.
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

FAINT = 1e-7  # of the largest singular value: smaller values cannot be distinguished from 0 after squaring in float64
ROOM = 100_000_000  # entries of J that are kept in memory; a larger J is sketched
WIDE = 4  # rows of a sketch per column: singular values are accurate within a factor of 1 +- 1 / sqrt(WIDE)
TOGETHER = 2**22  # entries of J, and of layer outputs, that are computed at once


@dataclass(frozen=True)
class Spectrum:
    """The singular values of J = d(gradient) / d(picture), with a row for each entry of the gradient and a column for each pixel value.

    A value of 1 means: a pixel that goes from black to white moves the gradient by a distance of 1.

    Args:
        values: descending, (directions,), float64
        exact: whether all rows were used; otherwise a random sketch of the rows
        unknowns: number of pixel values. Where fewer directions were tried, rank, condition and counts are those of J restricted to the
            span of these directions. None of them is larger than that of J; a rank below the number of directions is the rank of J
        sent: number of entries of the gradient
        gradient: l2 norm of the gradient
    """

    values: Tensor
    exact: bool
    unknowns: int
    sent: int
    gradient: float

    @property
    def directions(self) -> int:
        """Number of directions that were tried."""
        return len(self.values)

    @property
    def rank(self) -> int:
        """Number of directions that change the gradient."""
        return int((self.values > FAINT * self.values[0]).sum())

    @property
    def condition(self) -> float:
        """Largest singular value over the smallest one that counts; infinite at rank 0."""
        return float(self.values[0] / self.values[self.rank - 1]) if self.rank else math.inf

    def above(self, noise: float) -> int:
        """Return how many directions change the gradient by more than `noise`, the standard deviation of each entry's noise."""
        return int((self.values[: self.rank] > noise).sum())

    def above_fraction(self, fraction: float) -> int:
        """Return how many directions change the gradient by more than noise of total length `fraction` times the gradient's length."""
        return self.above(fraction * self.gradient / math.sqrt(self.sent))


def spectrum(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    directions: int | None = None,
    seed: int = 1,
    should_stop: Callable[[int], bool] = lambda _: False,
) -> Spectrum:
    """Return the singular values of J, the derivative of a model's gradient by the picture, at one picture; the model stays unchanged.

    All is computed in float64; a J that is kept whole is stored in float32 if it has more than WIDE rows per column.

    Args:
        model: the model.
        x: the picture, (1, C, H, W), in [0, 1].
        y: its label, (1,).
        directions: number of random orthogonal directions of the picture to try, for large pictures; None tries every pixel value.
        seed: of the directions, and of the sketch (random sums of rows) that takes the place of a large J.
        should_stop: called between pieces with the number of directions that were tried.

    Raises:
        StoppedError: `should_stop` returned True.
    """
    tried, rng = basis(x, directions, seed), torch.Generator().manual_seed(seed)
    columns, rows = len(tried), sum(weight.numel() for weight in weights_of(model).values())
    exact = rows <= WIDE * columns or rows * columns <= ROOM
    kept = rows if exact else WIDE * columns
    columns_of_j = torch.empty(columns, kept, dtype=torch.float32 if exact and rows > WIDE * columns else torch.float64)
    bucket, sign = torch.randint(kept, (rows,), generator=rng), 2.0 * torch.randint(2, (rows,), generator=rng).double() - 1
    double_model, start = deepcopy(model).double(), 0
    for part in tried.split(max(1, TOGETHER // max(rows, _layer_outputs(double_model, x.double())))):
        if should_stop(start):
            raise StoppedError
        piece = _columns(double_model, x.double(), y, part)
        kept_rows = piece if exact else torch.zeros(len(piece), kept, dtype=torch.float64).index_add_(1, bucket, piece * sign)
        columns_of_j[start : start + len(piece)] = kept_rows
        start += len(piece)
    sent = Gradient(double_model)(weights_of(double_model), x.double(), y, {})[0]
    length = math.sqrt(sum(float(part.square().sum()) for part in sent.values()))
    return Spectrum(_singular_values(columns_of_j, lambda: should_stop(columns)), exact, x.numel(), rows, length)


def basis(x: Tensor, directions: int | None, seed: int) -> Tensor:
    """Return orthonormal directions of a picture, (count, C, H, W), float64: all pixel values, or `directions` random ones."""
    if directions is None or directions >= x.numel():
        return torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape[1:])
    drawn = torch.randn(x.numel(), directions, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    across: Tensor = torch.linalg.qr(drawn).Q
    return across.T.reshape(-1, *x.shape[1:])


def _layer_outputs(model: nn.Module, x: Tensor) -> int:
    """Return how many numbers the layers of a model compute for a picture."""
    counts = list[int]()
    layers = [layer for layer in model.modules() if not any(True for _ in layer.children())]
    hooks = [layer.register_forward_hook(lambda _layer, _given, output: counts.append(output.numel())) for layer in layers]
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return sum(counts)


def _columns(double_model: nn.Module, x: Tensor, y: Tensor, directions: Tensor) -> Tensor:
    """Return the derivative of the gradient along each of `directions` (count, C, H, W) of the picture: (count, entries), float64."""
    client, weights, count = Gradient(double_model), weights_of(double_model), len(directions)
    with forward_ad.dual_level(), quiet_forward_mode():
        moved = forward_ad.make_dual(x.expand(count, -1, -1, -1).contiguous(), directions)  # type: ignore[no-untyped-call]
        update = client.each(weights, moved, y.expand(count))
        gradients = [forward_ad.unpack_dual(gradient) for gradient in update.values()]  # type: ignore[no-untyped-call]
        parts = [torch.zeros_like(gradient.primal) if gradient.tangent is None else gradient.tangent for gradient in gradients]
    return torch.cat([part.detach().reshape(len(part), -1) for part in parts], 1)


def _singular_values(columns_of_j: Tensor, should_stop: Callable[[], bool]) -> Tensor:
    """Return the singular values of a matrix, descending, given its columns (columns, rows): square roots of the eigenvalues of J^T J."""
    gram = torch.zeros(len(columns_of_j), len(columns_of_j), dtype=torch.float64)
    for part in columns_of_j.split(max(1, TOGETHER // len(columns_of_j)), dim=1):
        if should_stop():
            raise StoppedError
        gram += part.double() @ part.double().T
    values: Tensor = torch.linalg.eigvalsh(gram)
    return values.clamp(min=0).sqrt().flip(0)
