"""What the rows of a fully connected layer's gradient say about its input.

Of one picture dL/dW = d x^T and dL/db = d, with d = dL/dz (m,): every row of the weight's gradient is the input x (n,), times d_j.
Of a batch row j is the sum over its pictures of d_bj x_b, and dL/db_j is the sum of d_bj.
"""

import torch
from torch import Tensor

ESTIMATES = ("single row", "mean", "least squares", "total least squares")
SLACK = 0.01  # a candidate may lie so far beyond black and white and still be a picture
CLOSE = 10.0  # rows agree within so many times the distance of the closest two,
ROUNDING, LOOSEST = 1e-6, 1e-3  # ... but within float32's rounding in any case, and never beyond a quarter of a grey level


def kept(d: Tensor, threshold: float) -> Tensor:
    """Which rows are used, (m,) bool: those with |d_j| >= threshold * max |d| that are not 0."""
    return (d.abs() >= threshold * d.abs().max()) & (d != 0)


def estimate(kind: str, weight_gradient: Tensor, d: Tensor) -> Tensor:
    """The input x (n,) out of noisy copies: weight_gradient (m, n) is about d x^T, and d (m,) is noisy too. `kind` is one of ESTIMATES.

    single row            dW_j / d_j of the largest |d_j|
    mean                  the mean of all dW_j / d_j: rows with a small d_j spoil it
    least squares         sum_j d_j dW_j / sum_j d_j^2; noise of std s leaves an error of std s sqrt(1 + x^2) / ||d|| in a pixel
    total least squares   (x, 1) along the first right singular vector of [dW | d]: no pull towards 0 where d is noisy too
    """
    if kind == "single row":
        strongest = d.abs().argmax()
        return weight_gradient[strongest] / d[strongest]
    if kind == "mean":
        return (weight_gradient / d.unsqueeze(1)).mean(0)
    if kind == "least squares":
        return d @ weight_gradient / d.dot(d)
    _, _, right = rank_one(torch.cat([weight_gradient, d.unsqueeze(1)], 1))
    return right[:-1] / right[-1]


def rank_one(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The nearest matrix of rank one, left * size * right: unit vectors (m,) and (n,), size > 0. A column of zeros stays exactly zero.

    By the eigenvector of the smaller Gram matrix: with one singular value far above the others that costs no digits.
    """
    wide = len(matrix) <= matrix.shape[1]
    gram = matrix @ matrix.T if wide else matrix.T @ matrix
    leading = torch.linalg.eigh(gram).eigenvectors[:, -1]
    left = leading if wide else matrix @ leading
    left = left / left.norm()
    right = left @ matrix
    size = right.norm()
    return left, size, right / size


def are_copies(weight_gradient: Tensor, d: Tensor) -> bool:
    """Whether the rows dW (m, n) and dL/db (m,) are those of one input: two at least, and [dW | d] is of rank one but for ROUNDING."""
    matrix = torch.cat([weight_gradient, d.unsqueeze(1)], 1)
    _, size, _ = rank_one(matrix)
    return len(d) > 1 and float(1 - size.square() / matrix.square().sum()) < ROUNDING


def separate(candidates: Tensor, d: Tensor, count: int) -> tuple[Tensor, list[int]]:
    """At most `count` pictures (P, n) out of a batch's candidates dW_j / d_j (m, n), in pixels, and how many rows agree on each.

    A row that only one picture makes active returns that picture exactly, every other row a mixture of its own. So of those candidates
    that lie between black and white the one on which most rows agree comes first, as their mean with weights d_j^2; then the next. Where
    no two agree any more, the one that is furthest from all that were chosen: mixtures with positive weights lie between the pictures.
    """
    legal = ((candidates > -SLACK) & (candidates < 1 + SLACK)).all(1)
    left, weight = candidates[legal], d[legal].square()
    apart = torch.cdist(left, left) / left.shape[1] ** 0.5  # (M, M), root mean squares
    closest = float(apart.clone().fill_diagonal_(torch.inf).min()) if len(left) > 1 else 0.0
    near = apart <= min(max(CLOSE * closest, ROUNDING), LOOSEST)
    free = torch.ones(len(left), dtype=torch.bool)
    found: list[Tensor] = []
    sizes: list[int] = []
    while len(found) < count and free.any():
        agreeing = (near & free).sum(1) * free
        if not found or int(agreeing.max()) > 1:
            best = int((agreeing + 0.5 * weight / weight.max()).argmax())  # of equally many the one with the longest row
        else:
            best = int((torch.cdist(left, torch.stack(found)).amin(1) * free).argmax())
        members = near[best] & free
        members[best] = True
        found.append(weight[members] @ left[members] / weight[members].sum())
        sizes.append(int(members.sum()))
        free &= ~members
    return torch.stack(found) if found else candidates[:0], sizes
