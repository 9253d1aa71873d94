"""The input of a fully connected layer, estimated from the rows of its gradient.

For one picture dL/dW = d x^T and dL/db = d, with d = dL/dz (m,): row j of the weight's gradient is the input x (n,), times d_j.
For a batch row j is the sum over its pictures b of d_bj x_b, and dL/db_j is the sum of d_bj.
"""

import torch
from torch import Tensor

ESTIMATES = ("single row", "mean", "least squares", "total least squares")
SLACK = 0.01  # the pixels of a candidate may exceed [0, 1] by so much
CLOSE = 10.0  # two rows agree if their distance is at most so many times that of the closest two,
ROUNDING, LOOSEST = 1e-6, 1e-3  # ... but at least float32's rounding, and at most a quarter of a grey level


def used_rows(d: Tensor, threshold: float) -> Tensor:
    """Return which rows of a layer's gradient are used, (m,) bool: those with d_j not 0 and |d_j| >= threshold * max |d|.

    d is the gradient of the layer's bias, (m,).
    """
    return (d.abs() >= threshold * d.abs().max()) & (d != 0)


def estimate(kind: str, weight_gradient: Tensor, d: Tensor) -> Tensor:
    """Estimate the input x (n,) from the rows of weight_gradient (m, n), which is d x^T with noise, and from d (m,), which is noisy too.

    `kind` is one of ESTIMATES:

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
    """Compute the nearest matrix of rank one, size * left right^T; return left (m,), size, right (n,) with unit vectors and size > 0.

    The vectors come from the eigenvector of the smaller Gram matrix, which costs no precision if the largest singular value stands far
    above the others. A column of zeros stays exactly zero.
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
    """Return whether there are at least two rows and all come from the same input: [dW | d] (m, n + 1) has rank one up to ROUNDING."""
    matrix = torch.cat([weight_gradient, d.unsqueeze(1)], 1)
    _, size, _ = rank_one(matrix)
    return len(d) > 1 and float(1 - size.square() / matrix.square().sum()) < ROUNDING


def separate(candidates: Tensor, d: Tensor, count: int) -> tuple[Tensor, list[int]]:
    """Separate the pictures of a batch by the rows that agree with each other.

    A row that a single picture activates is exactly that picture; every other row is a different mixture. So among the candidates with
    pixels in [0, 1] the candidate with which most rows agree is the first picture, as the mean of these rows with weights d_j^2; then the
    next. Once no two rows agree, the candidate furthest from all chosen pictures follows, as mixtures with positive weights lie between
    the pictures.

    Args:
        candidates: dW_j / d_j of each row, in pixels, (m, n).
        d: dL/db, (m,).
        count: the most pictures to return.

    Returns:
        Pictures (P, n) with P <= count, and the number of rows that agree on each.
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
            best = int((agreeing + 0.5 * weight / weight.max()).argmax())  # of equal counts the longest row
        else:
            best = int((torch.cdist(left, torch.stack(found)).amin(1) * free).argmax())
        members = near[best] & free
        members[best] = True
        found.append(weight[members] @ left[members] / weight[members].sum())
        sizes.append(int(members.sum()))
        free &= ~members
    return torch.stack(found) if found else candidates[:0], sizes
