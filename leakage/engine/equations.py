"""What one gradient and one output say about a convolution's input, as linear equations (Zhu and Blaschko 2021, algorithm 1).

A convolution z = w * x has Co filters w (Co, Ci, s, s), an input x (Ci, H, W) and an output z (Co, Ho, Wo); k = dL/dz. Unknown is x without
its padding, which is known to be 0. Two kinds of equations are linear in x:

gradient   dL/dw[o, c] = sum over positions of k[o] x[c]: the same matrix K0 for every input channel
weight     z = w * x
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

FIRM = 1e-3  # gradient rows whose singular value is below this share of the largest are solved together with the weight rows
SINGULAR = 1e11  # a system with a larger condition number counts as one of too small a rank
TINY = 1e-300
LARGEST = 200_000_000  # numbers in one matrix, 8 bytes each


class TooLargeError(ValueError):
    """Equations that do not fit into memory."""


def gradient_rows(k: Tensor, size: int, stride: int, padding: int, sides: tuple[int, int]) -> Tensor:
    """K0 (Co s^2, H W): K0 @ x[c].flatten() = (dL/dw[:, c]).flatten(), for every input channel c. k: (Co, Ho, Wo)."""
    places, pixels, inside = _reach(size, stride, padding, (k.shape[1], k.shape[2]), sides)
    rows = k.new_zeros(len(k), size**2, sides[0] * sides[1])
    flat = k.flatten(1)
    for offset in range(size**2):
        here = inside[offset]
        rows[:, offset, pixels[offset, here]] = flat[:, places[here]]
    return rows.flatten(0, 1)


def weight_rows(w: Tensor, stride: int, padding: int, sides: tuple[int, int]) -> Tensor:
    """W (Co Ho Wo, Ci H W): W @ x.flatten() = z.flatten(). w: (Co, Ci, s, s)."""
    size = w.shape[-1]
    after = ((sides[0] + 2 * padding - size) // stride + 1, (sides[1] + 2 * padding - size) // stride + 1)
    places, pixels, inside = _reach(size, stride, padding, after, sides)
    rows = w.new_zeros(len(w), len(places), w.shape[1], sides[0] * sides[1])
    kernel = w.flatten(2)  # (Co, Ci, s^2)
    for offset in range(size**2):
        here = inside[offset]
        rows[:, places[here], :, pixels[offset, here]] = kernel[:, :, offset]
    return rows.flatten(2).flatten(0, 1)


def _reach(size: int, stride: int, padding: int, after: tuple[int, int], sides: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """Output places (L,), and for every place of the kernel the pixel that it meets (s^2, L) and whether that is no padding (s^2, L)."""
    down, across = torch.meshgrid(torch.arange(after[0]), torch.arange(after[1]), indexing="ij")
    u, v = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    row = down.reshape(1, -1) * stride + u.reshape(-1, 1) - padding
    column = across.reshape(1, -1) * stride + v.reshape(-1, 1) - padding
    inside = (row >= 0) & (row < sides[0]) & (column >= 0) & (column < sides[1])
    return torch.arange(after[0] * after[1]), row * sides[1] + column, inside


@dataclass(frozen=True)
class Solved:
    """The input of a convolution and how well its equations determine it.

    x            (Ci, H, W); of several solutions the shortest
    equations    how many were used; unknowns: Ci H W; rank: how many unknowns they determine
    condition    of the system that was solved, estimated from its triangular factor (infinite where the rank is too small)
    residual     ||equations x - right side|| / ||right side||, the larger one of gradient and weight rows
    """

    x: Tensor
    equations: int
    unknowns: int
    rank: int
    condition: float
    residual: float


@dataclass(frozen=True)
class Sums:
    """One more equation for each filter, as the gradient of BatchNorm's gamma gives: sum over positions of factor (w * x) = total.

    w, factors, total   (Co, Ci, s, s), (Co, Ho, Wo), (Co,)
    """

    w: Tensor
    factors: Tensor
    total: Tensor


@dataclass(frozen=True)
class ConvolutionEquations:
    """What one convolution w of an input says of it: by its gradient g = dL/dw, where k = dL/dz, and by its output z.

    k, g      k (Co, Ho, Wo) and g (Co, Ci, s, s); None where no gradient is sent, as of a skip that has no weights
    known     (Co, Ho, Wo): which entries of z are known
    sums      further equations
    """

    w: Tensor
    z: Tensor
    known: Tensor
    k: Tensor | None = None
    g: Tensor | None = None
    stride: int = 1
    padding: int = 0
    sums: Sums | None = None

    @property
    def equations(self) -> int:
        """How many numbers it says."""
        return int(self.known.sum()) + (0 if self.g is None else self.g.numel()) + (0 if self.sums is None else len(self.sums.total))


def solve_together(systems: Sequence[ConvolutionEquations], sides: tuple[int, int]) -> Solved:
    """The input (Ci, H, W) that several convolutions share, from all that they say; the first of them has a gradient.

    The gradient rows are one matrix K0 for all input channels, so its singular vectors are split: along the firm ones every channel
    follows by a division; what is left, few unknowns in late layers, is solved by QR from the weight rows and the soft gradient rows, these
    multiplied by max|w| / max|k|. Where that has not full rank the shortest solution is taken (from singular values).
    Raises TooLargeError.
    """
    channels, (first, *_) = systems[0].w.shape[1], systems
    assert first.k is not None
    places = sides[0] * sides[1]
    _fit(places * max(places, sum(len(one.w) * one.w.shape[-1] ** 2 for one in systems if one.k is not None)))
    most = first.k.abs().max()
    parts = [_gradient_part(one, most, sides) for one in systems if one.k is not None]
    rows, right = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])  # (sum of Co s^2, H W), (.., Ci)
    u, s, v = torch.linalg.svd(rows, full_matrices=False)
    firm = s > FIRM * s[0] if len(s) and s[0] > 0 else torch.zeros_like(s, dtype=torch.bool)
    told = u.T @ right  # (q, Ci)
    along = v[firm]  # (r, H W)
    x = along.T @ (told[firm] / s[firm, None])  # (H W, Ci)
    rank, condition = int(firm.sum()) * channels, float(s[firm].max() / s[firm].min()) if bool(firm.any()) else 1.0
    rest = places - len(along)
    if rest:
        across = torch.linalg.qr(along.T, mode="complete").Q[:, len(along) :]  # (H W, m): what the firm rows leave open
        ratio = first.w.abs().max() / most.clamp(min=TINY)
        _fit(channels * rest * sum(one.z.numel() for one in systems if one.known.any() or one.sums))
        outputs = [_output_part(one, ratio, across.T.view(rest, 1, *sides), x.T.view(channels, *sides)) for one in systems]
        soft = (s[~firm, None] * v[~firm]) @ across * ratio  # (q, m)
        soft_right = told[~firm] * ratio  # (q, Ci)
        system = torch.cat([*(part[0] for part in outputs), _each(soft, channels)])  # (N, Ci m)
        # Without outputs nothing else shows which rows are rounding of 0: those of gamma follow from the gradient rows.
        floor = 0.0 if any(bool(one.known.any()) for one in systems) else float(s[0] * ratio) / SINGULAR
        found, held, bad = least_squares(system, torch.cat([*(part[1] for part in outputs), soft_right.T.flatten()]), floor)
        x = x + across @ found.view(channels, rest).T
        rank, condition = rank + held, max(condition, bad)
    shown = x.T.reshape(channels, *sides)
    off = max(_share(rows @ x - right, right), *(_missed(one, shown) for one in systems))
    return Solved(shown, sum(one.equations for one in systems), channels * len(x), rank, condition, off)


def _fit(count: int) -> None:
    """Raises TooLargeError where a matrix of so many numbers would not fit into memory."""
    if count > LARGEST:
        raise TooLargeError


def _gradient_part(one: ConvolutionEquations, most: Tensor, sides: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """K0 and its right side (Co s^2, Ci), scaled to derivatives as large as `most`."""
    assert one.k is not None
    assert one.g is not None
    scale = most / one.k.abs().max().clamp(min=TINY)
    rows = gradient_rows(one.k, one.w.shape[-1], one.stride, one.padding, sides)
    return rows * scale, one.g.permute(0, 2, 3, 1).flatten(0, 2) * scale


def _output_part(one: ConvolutionEquations, ratio: Tensor, basis: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """What its known outputs, and its sums times `ratio`, say of the part of x along a basis (m, 1, H, W): rows, and what is left.

    Rows (N, Ci m): the basis through the convolution, one input channel after the other. What is left (N,): of that which x does not make.
    """

    def through(w: Tensor) -> tuple[Tensor, Tensor]:
        each = [F.conv2d(basis, w[:, [c]], stride=one.stride, padding=one.padding).flatten(2) for c in range(w.shape[1])]
        return torch.stack(each), F.conv2d(x[None], w, stride=one.stride, padding=one.padding)[0].flatten(1)  # (Ci, m, Co, P), (Co, P)

    rows, left = [x.new_zeros(0, len(x) * len(basis))], [x.new_zeros(0)]
    if one.known.any():
        known, (moved, made) = one.known.flatten(1), through(one.w)
        rows.append(moved[:, :, known].flatten(0, 1).T)
        left.append(one.z.flatten(1)[known] - made[known])
    if one.sums:
        factors, (moved, made) = one.sums.factors.flatten(1), through(one.sums.w)
        rows.append(torch.einsum("fp,cmfp->fcm", factors, moved).flatten(1) * ratio)
        left.append((one.sums.total - (factors * made).sum(1)) * ratio)
    return torch.cat(rows), torch.cat(left)


def _missed(one: ConvolutionEquations, x: Tensor) -> float:
    """By which share its outputs, and sums, are missed."""
    again = F.conv2d(x[None], one.w, stride=one.stride, padding=one.padding)[0]
    off = _share((again - one.z)[one.known], one.z[one.known])
    if one.sums is None:
        return off
    summed = one.sums.factors * F.conv2d(x[None], one.sums.w, stride=one.stride, padding=one.padding)[0]
    return max(off, _share(summed.sum((1, 2)) - one.sums.total, one.sums.total))


def solve_as_published(  # noqa: PLR0913  (the symbols of its equations)
    k: Tensor, g: Tensor, w: Tensor, z: Tensor, known: Tensor, *, stride: int, padding: int, sides: tuple[int, int]
) -> Solved:
    """As `solve_together` of one convolution, but all rows at once as they are, the shortest solution by numpy: the authors' code.

    What goes in and out is float32 there; numpy computes in float64. Unlike the code, columns of padding are left out, which are 0.
    """
    channels = w.shape[1]
    _fit(channels * sides[0] * sides[1] * (z.numel() + g.numel()))
    rows = _each(gradient_rows(k, w.shape[-1], stride, padding, sides), channels)
    system = torch.cat([rows, weight_rows(w, stride, padding, sides)[known.flatten()]])
    right = torch.cat([g.permute(1, 0, 2, 3).flatten(), z[known]])
    found, _, rank, singular = np.linalg.lstsq(system.float().numpy(), right.float().numpy(), rcond=None)
    x = torch.from_numpy(found).to(right)
    condition = float(singular[0] / singular[-1]) if singular[-1] > 0 else float("inf")
    return Solved(x.view(channels, *sides), len(system), len(x), int(rank), condition, _share(system @ x - right, right))


def _each(rows: Tensor, channels: int) -> Tensor:
    """The same rows for every channel: blocks along the diagonal."""
    return torch.kron(torch.eye(channels, dtype=rows.dtype), rows)


def _share(gap: Tensor, of: Tensor) -> float:
    return float(gap.norm() / of.norm().clamp(min=TINY)) if gap.numel() else 0.0


def least_squares(system: Tensor, right: Tensor, floor: float = 0.0) -> tuple[Tensor, int, float]:
    """The x with the smallest ||system x - right||, of several the shortest; the rank; the condition number as far as QR shows it.

    Singular values up to `floor` count as 0.
    """
    count = system.shape[1]
    if len(system) >= count:
        factor = torch.linalg.qr(torch.cat([system, right[:, None]], 1), mode="r").R  # Q is never needed
        diagonal = factor.diagonal()[:count].abs()
        condition = float(diagonal.max() / diagonal.min().clamp(min=TINY))
        if condition < SINGULAR and float(diagonal.min()) > floor:
            return torch.linalg.solve_triangular(factor[:count, :count], factor[:count, count:], upper=True)[:, 0], count, condition
        system, right = factor[:, :count], factor[:, count]  # the same solutions, fewer rows
    u, s, v = torch.linalg.svd(system, full_matrices=False)
    kept = s > max(float(s[:1].sum()) / SINGULAR, floor)  # without any equation the shortest solution is 0
    return v[kept].T @ ((u.T @ right)[kept] / s[kept]), int(kept.sum()), float("inf")
