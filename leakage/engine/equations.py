"""Linear equations for the input of a convolution, from its gradient and its output (Zhu and Blaschko 2021, algorithm 1).

A convolution z = w * x has Co filters w (Co, Ci, s, s), an input x (Ci, H, W) and an output z (Co, Ho, Wo); k = dL/dz. The unknown is x
without its padding, which is known to be 0. Two kinds of equations are linear in x:

gradient   dL/dw[o, c] = sum over positions of k[o] x[c]: the same matrix K0 for every input channel
weight     z = w * x
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

STRONG = 1e-3  # directions with a singular value below this fraction of the largest are solved together with the weight rows
SINGULAR = 1e11  # a system with a larger condition number counts as rank-deficient
TINY = 1e-300
LARGEST = 200_000_000  # numbers in one matrix, 8 bytes each


class TooLargeError(ValueError):
    """The equations do not fit into memory."""


def gradient_rows(k: Tensor, size: int, stride: int, padding: int, sides: tuple[int, int]) -> Tensor:
    """Return the matrix K0 (Co s^2, H W) of the weight's gradient: K0 @ x[c].flatten() = dL/dw[:, c].flatten() for every input channel c.

    The convolution is z = w * x with k = dL/dz (Co, Ho, Wo), a kernel of s x s pixels (`size`), and `sides` (H, W) of the input x.
    """
    positions, pixels, inside = _reach(size, stride, padding, (k.shape[1], k.shape[2]), sides)
    rows = k.new_zeros(len(k), size**2, sides[0] * sides[1])
    flat = k.flatten(1)
    for offset in range(size**2):
        here = inside[offset]
        rows[:, offset, pixels[offset, here]] = flat[:, positions[here]]
    return rows.flatten(0, 1)


def weight_rows(w: Tensor, stride: int, padding: int, sides: tuple[int, int]) -> Tensor:
    """Return the convolution z = w * x as a matrix W (Co Ho Wo, Ci H W): W @ x.flatten() = z.flatten().

    w is (Co, Ci, s, s), and `sides` are (H, W) of the input x.
    """
    size = w.shape[-1]
    after = ((sides[0] + 2 * padding - size) // stride + 1, (sides[1] + 2 * padding - size) // stride + 1)
    positions, pixels, inside = _reach(size, stride, padding, after, sides)
    rows = w.new_zeros(len(w), len(positions), w.shape[1], sides[0] * sides[1])
    kernel = w.flatten(2)  # (Co, Ci, s^2)
    for offset in range(size**2):
        here = inside[offset]
        rows[:, positions[here], :, pixels[offset, here]] = kernel[:, :, offset]
    return rows.flatten(2).flatten(0, 1)


def _reach(size: int, stride: int, padding: int, after: tuple[int, int], sides: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """Return which input pixel each entry of an s x s kernel meets at each of the L = Ho Wo output positions.

    `after` are (Ho, Wo) of the output, `sides` (H, W) of the input. The result is the output positions, 0 to L - 1; the index of the pixel
    that a kernel entry meets, (s^2, L); and whether that pixel lies inside the input and not on the padding, (s^2, L).
    """
    down, across = torch.meshgrid(torch.arange(after[0]), torch.arange(after[1]), indexing="ij")
    u, v = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    row = down.reshape(1, -1) * stride + u.reshape(-1, 1) - padding
    column = across.reshape(1, -1) * stride + v.reshape(-1, 1) - padding
    inside = (row >= 0) & (row < sides[0]) & (column >= 0) & (column < sides[1])
    return torch.arange(after[0] * after[1]), row * sides[1] + column, inside


@dataclass(frozen=True)
class Solved:
    """The input of a convolution, and how well its equations determine it.

    Args:
        x: (Ci, H, W); of several solutions the one of smallest norm
        equations: how many equations were used
        unknowns: Ci H W
        rank: how many unknowns the equations determine
        condition: condition number of the system, estimated from its triangular factor; infinite for a rank-deficient system
        residual: ||A x - b|| / ||b|| of the equations A x = b; where gradient and output are solved apart, the larger of their values
    """

    x: Tensor
    equations: int
    unknowns: int
    rank: int
    condition: float
    residual: float


@dataclass(frozen=True)
class Sums:
    """One more equation for each filter, from the gradient of BatchNorm's gamma: the sum over positions of factors (w * x) is `total`.

    Args:
        w: weight of the convolution before the BatchNorm, (Co, Ci, s, s)
        factors: the factor of each output entry, (Co, Ho, Wo)
        total: (Co,)
    """

    w: Tensor
    factors: Tensor
    total: Tensor


@dataclass(frozen=True)
class ConvolutionEquations:
    """The linear equations that one convolution z = w * x gives for its input x: from its output z and from its gradient dL/dw.

    Args:
        w: the weight, (Co, Ci, s, s)
        z: the output, (Co, Ho, Wo)
        known: which entries of z are known, (Co, Ho, Wo)
        k: dL/dz, (Co, Ho, Wo); None where no gradient is sent, as for a skip without weights
        g: dL/dw, (Co, Ci, s, s); None where no gradient is sent
        stride: of the convolution
        padding: of the convolution
        sums: the equations of a BatchNorm after the convolution; None without them
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
        """Number of equations: the known entries of z, the entries of dL/dw, and one for each filter from `sums` of a BatchNorm."""
        return int(self.known.sum()) + (0 if self.g is None else self.g.numel()) + (0 if self.sums is None else len(self.sums.total))


def solve_together(systems: Sequence[ConvolutionEquations], sides: tuple[int, int]) -> Solved:
    """Return the input (Ci, H, W) that several convolutions share, solved from all their equations; the first convolution has a gradient.

    The gradient equations have one matrix K0 for all input channels (`gradient_rows`), so its singular vectors are split. Along the vectors
    of large singular values (strong), a division gives every channel. The remaining unknowns, few in late layers, are solved by QR from
    the equations z = w * x and the other gradient equations, which are multiplied by max|w| / max|dL/dz|. Where that system is
    rank-deficient, singular values give the solution of smallest norm.

    Args:
        systems: the convolutions of the same input, with their outputs and gradients.
        sides: (H, W) of the input.

    Raises:
        TooLargeError: the equations do not fit into memory.
    """
    channels, (first, *_) = systems[0].w.shape[1], systems
    assert first.k is not None
    pixels, with_gradient = sides[0] * sides[1], [convolution for convolution in systems if convolution.k is not None]
    gradient_equations = sum(len(convolution.w) * convolution.w.shape[-1] ** 2 for convolution in with_gradient)
    _fit(pixels * max(pixels, gradient_equations))
    most = first.k.abs().max()
    parts = [_gradient_part(convolution, most, sides) for convolution in with_gradient]
    rows, right = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])  # (sum of Co s^2, H W), (.., Ci)
    u, s, v = torch.linalg.svd(rows, full_matrices=False)
    strong = s > STRONG * s[0] if len(s) and s[0] > 0 else torch.zeros_like(s, dtype=torch.bool)
    projected = u.T @ right  # (q, Ci)
    along = v[strong]  # (r, H W)
    x = along.T @ (projected[strong] / s[strong, None])  # (H W, Ci)
    rank, condition = int(strong.sum()) * channels, float(s[strong].max() / s[strong].min()) if bool(strong.any()) else 1.0
    rest = pixels - len(along)
    if rest:
        across = torch.linalg.qr(along.T, mode="complete").Q[:, len(along) :]  # (H W, m): directions that the strong rows leave open
        ratio = first.w.abs().max() / most.clamp(min=TINY)
        output_equations = sum(convolution.z.numel() for convolution in systems if convolution.known.any() or convolution.sums)
        _fit(channels * rest * output_equations)
        outputs = [_output_part(convolution, ratio, across.T.view(rest, 1, *sides), x.T.view(channels, *sides)) for convolution in systems]
        soft = (s[~strong, None] * v[~strong]) @ across * ratio  # (q, m)
        soft_right = projected[~strong] * ratio  # (q, Ci)
        system = torch.cat([*(part[0] for part in outputs), _each(soft, channels)])  # (N, Ci m)
        # Without outputs, only a floor shows which rows are rounded zeros: the rows of gamma follow from the gradient rows.
        floor = 0.0 if any(bool(convolution.known.any()) for convolution in systems) else float(s[0] * ratio) / SINGULAR
        solution, more, large = least_squares(system, torch.cat([*(part[1] for part in outputs), soft_right.T.flatten()]), floor)
        x = x + across @ solution.view(channels, rest).T
        rank, condition = rank + more, max(condition, large)
    answer = x.T.reshape(channels, *sides)
    off = max(_relative(rows @ x - right, right), *(_output_error(convolution, answer) for convolution in systems))
    return Solved(answer, sum(convolution.equations for convolution in systems), channels * len(x), rank, condition, off)


def _fit(count: int) -> None:
    """Raise TooLargeError if a matrix of `count` numbers is larger than LARGEST."""
    if count > LARGEST:
        raise TooLargeError


def _gradient_part(convolution: ConvolutionEquations, most: Tensor, sides: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return the gradient equations A x = b of one convolution: its matrix K0 (Co s^2, H W) and b = dL/dw as (Co s^2, Ci).

    K0 is built from dL/dz (`gradient_rows`). Both sides are multiplied by one factor, so that the largest |dL/dz| becomes `most` and the
    equations of several convolutions count alike.
    """
    assert convolution.k is not None
    assert convolution.g is not None
    scale = most / convolution.k.abs().max().clamp(min=TINY)
    rows = gradient_rows(convolution.k, convolution.w.shape[-1], convolution.stride, convolution.padding, sides)
    return rows * scale, convolution.g.permute(0, 2, 3, 1).flatten(0, 2) * scale


def _output_part(convolution: ConvolutionEquations, ratio: Tensor, basis: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the N output equations of one convolution for a correction of its input x: the matrix (N, Ci m) and the right-hand side (N,).

    The equations are those of the known entries of z, and those of `sums` times `ratio`. The unknowns are the coefficients of the
    correction along m basis pictures, for one input channel after the other. The right-hand side is what x does not yet produce.

    Args:
        convolution: the convolution.
        ratio: the factor of the equations of `sums`, ().
        basis: the directions in which x may change, the same in every channel, (m, 1, H, W).
        x: the input so far, (Ci, H, W).
    """
    stride, padding = convolution.stride, convolution.padding

    def through(w: Tensor) -> tuple[Tensor, Tensor]:
        each = [F.conv2d(basis, w[:, [c]], stride=stride, padding=padding).flatten(2) for c in range(w.shape[1])]
        return torch.stack(each), F.conv2d(x[None], w, stride=stride, padding=padding)[0].flatten(1)  # (Ci, m, Co, P), (Co, P)

    rows, left = [x.new_zeros(0, len(x) * len(basis))], [x.new_zeros(0)]
    if convolution.known.any():
        known, (moved, produced) = convolution.known.flatten(1), through(convolution.w)
        rows.append(moved[:, :, known].flatten(0, 1).T)
        left.append(convolution.z.flatten(1)[known] - produced[known])
    if convolution.sums:
        factors, (moved, produced) = convolution.sums.factors.flatten(1), through(convolution.sums.w)
        rows.append(torch.einsum("fp,cmfp->fcm", factors, moved).flatten(1) * ratio)
        left.append((convolution.sums.total - (factors * produced).sum(1)) * ratio)
    return torch.cat(rows), torch.cat(left)


def _output_error(convolution: ConvolutionEquations, x: Tensor) -> float:
    """Return the relative l2 error of the known entries of z for an input x (Ci, H, W), or that of the equations `sums` if it is larger."""
    again = F.conv2d(x[None], convolution.w, stride=convolution.stride, padding=convolution.padding)[0]
    off = _relative((again - convolution.z)[convolution.known], convolution.z[convolution.known])
    if convolution.sums is None:
        return off
    summed = convolution.sums.factors * F.conv2d(x[None], convolution.sums.w, stride=convolution.stride, padding=convolution.padding)[0]
    return max(off, _relative(summed.sum((1, 2)) - convolution.sums.total, convolution.sums.total))


def solve_as_published(  # noqa: PLR0913  (the symbols of its equations)
    k: Tensor, g: Tensor, w: Tensor, z: Tensor, known: Tensor, *, stride: int, padding: int, sides: tuple[int, int]
) -> Solved:
    """Return the input of one convolution, solved as the code of R-GAP's authors does: all equations at once, unscaled, by numpy.

    Of several solutions, numpy gives the one of smallest norm. Inputs and outputs are float32, as in the authors' code; numpy computes in
    float64. Unlike the code, columns of padding are left out: they are 0. The arguments are those of `ConvolutionEquations`; `sides` is
    (H, W) of the input.

    Source: Zhu and Blaschko 2021, reference implementation.
    """
    channels = w.shape[1]
    _fit(channels * sides[0] * sides[1] * (z.numel() + g.numel()))
    rows = _each(gradient_rows(k, w.shape[-1], stride, padding, sides), channels)
    system = torch.cat([rows, weight_rows(w, stride, padding, sides)[known.flatten()]])
    right = torch.cat([g.permute(1, 0, 2, 3).flatten(), z[known]])
    solution, _, rank, singular = np.linalg.lstsq(system.float().numpy(), right.float().numpy(), rcond=None)
    x = torch.from_numpy(solution).to(right)
    condition = float(singular[0] / singular[-1]) if singular[-1] > 0 else float("inf")
    return Solved(x.view(channels, *sides), len(system), len(x), int(rank), condition, _relative(system @ x - right, right))


def _each(rows: Tensor, channels: int) -> Tensor:
    """Return a block diagonal matrix that has the matrix `rows` once for every channel."""
    return torch.kron(torch.eye(channels, dtype=rows.dtype), rows)


def _relative(gap: Tensor, of: Tensor) -> float:
    """Return ||gap|| / ||of||; 0 for a tensor `gap` without entries."""
    return float(gap.norm() / of.norm().clamp(min=TINY)) if gap.numel() else 0.0


def least_squares(system: Tensor, right: Tensor, floor: float = 0.0) -> tuple[Tensor, int, float]:
    """Return the x that minimizes ||system x - right||, the rank of the system, and its condition number.

    Of several solutions, x is the one of smallest norm. The condition number is estimated from the triangular factor of a QR decomposition;
    it is infinite where singular values were needed. Singular values up to `floor` count as 0.
    """
    count = system.shape[1]
    if len(system) >= count:
        factor = torch.linalg.qr(torch.cat([system, right[:, None]], 1), mode="r").R  # Q is never needed
        diagonal = factor.diagonal()[:count].abs()
        condition = float(diagonal.max() / diagonal.min().clamp(min=TINY))
        if condition < SINGULAR and float(diagonal.min()) > floor:
            return torch.linalg.solve_triangular(factor[:count, :count], factor[:count, count:], upper=True)[:, 0], count, condition
        system, right = factor[:, :count], factor[:, count]  # fewer rows with the same solutions
    u, s, v = torch.linalg.svd(system, full_matrices=False)
    kept = s > max(float(s[:1].sum()) / SINGULAR, floor)  # without any equation, the solution of smallest norm is 0
    return v[kept].T @ ((u.T @ right)[kept] / s[kept]), int(kept.sum()), float("inf")
