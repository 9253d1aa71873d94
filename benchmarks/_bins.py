"""Shared parts of the benchmark of cheating servers: pictures alone in a bin, in theory and in a batch; what a bin holds; its error."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.engine.arranged import Bins
from leakage.engine.core import Observation
from leakage.evaluation.metrics import psnr

SAME = 1 / 510  # half a grey level of 255: a picture with no larger error in any pixel is the private picture, once rounded to 8 bits
ROUNDING = 1e-5  # the same for computations in float64


# ---------------------------------------------------------------- how many pictures are alone


def expected_alone(batch: int, bins: int) -> float:
    """Return the expected share of `batch` pictures that are alone in one of `bins` equally likely bins: (1 - 1/K)^(B - 1).

    >>> expected_alone(2, 4)
    0.75
    """
    return (1 - 1 / bins) ** (batch - 1)


def expected_alone_sparse(batch: int, bins: int) -> float:
    """Return the same for the sparse imprint and LOKI: of K + 2 equally likely bins, the first and the last are lost.

    >>> expected_alone_sparse(2, 2)
    0.375
    """
    return bins / (bins + 2) * expected_alone(batch, bins + 2)


def expected_first_alone(batch: int, bins: int, mini_batch: int) -> float:
    """Return the expected number of bins, per picture, for which the first mini-batch that reaches them holds a single picture of theirs.

    That is the share of pictures that come back if the row of a bin no longer answers after the local step that has trained it. Of K + 2
    equally likely bins, the first and the last are lost; p = 1/(K + 2), m pictures a mini-batch, T mini-batches:
    (K / B) sum_(t < T) (1 - p)^(t m) m p (1 - p)^(m - 1).

    >>> expected_first_alone(4, 2, mini_batch=4) == expected_alone_sparse(4, 2)
    True
    """
    p = 1 / (bins + 2)
    earlier = sum((1 - p) ** (step * mini_batch) for step in range(batch // mini_batch))
    return bins / batch * earlier * mini_batch * p * (1 - p) ** (mini_batch - 1)


def bins_of(brightness: Tensor, edges: Sequence[float]) -> Tensor:
    """Return the bin (B,) of each brightness (B,) among K + 1 rising edges, or K of which the last has no upper end; -1: below the first.

    Edges are rounded to float32, as the weights of a model are.
    """
    return torch.searchsorted(torch.tensor(edges, dtype=torch.float32).to(brightness), brightness, right=True) - 1


def are_alone(of: Tensor, bins: int) -> Tensor:
    """Return which pictures (B,) are alone in their bins, given the bin (B,) of each; bins outside 0 to `bins` - 1 are lost.

    >>> are_alone(torch.tensor([0, 2, 2, 3, -1]), 3).tolist()
    [True, False, False, False, False]
    """
    valid = (of >= 0) & (of < bins)
    counts = torch.bincount(of[valid], minlength=bins)
    return valid & (counts[of.clamp(0, bins - 1)] == 1)


def come_first_alone(of: Tensor, bins: int, mini_batch: int) -> Tensor:
    """Return which pictures (B,) are the only ones of their bin in the first mini-batch that reaches the bin.

    >>> come_first_alone(torch.tensor([0, 1, 1, 1, 0, 2]), 3, mini_batch=2).tolist()
    [True, True, False, False, False, True]
    """
    found, reached = torch.zeros(len(of), dtype=torch.bool), torch.zeros(bins, dtype=torch.bool)
    for part in torch.arange(len(of)).split(mini_batch):
        own = are_alone(of[part], bins)
        own &= ~reached[of[part].clamp(0, bins - 1)]
        found[part] = own
        reached[[bin for bin in of[part].tolist() if 0 <= bin < bins]] = True
    return found


# ---------------------------------------------------------------- what a bin holds


@dataclass(frozen=True)
class Block:
    """The gradients of the bins of all clients together, or of one client with maps of its own, in float64.

    rows    (K, n); for LOKI d x scale, otherwise d x, for a bin with the single picture x
    d       (K,), the gradient of the bin's bias, or what takes its place
    """

    rows: Tensor
    d: Tensor

    def pictures(self, scale: float = 1.0) -> Tensor:
        """Return the content (N, n) of each bin that answered."""
        filled = self.d.abs() > 1e-12 * self.d.abs().max()
        return self.rows[filled] / self.d[filled].unsqueeze(1) / scale


def blocks_of(seen: Observation) -> list[Block]:
    """Return the bins of an observation: one block, or one for each client with maps of its own (LOKI)."""
    arranged = seen.secret
    assert isinstance(arranged, Bins)
    gradient = seen.as_gradient()
    rows, d = (gradient[f"{arranged.layer}.{part}"].double() for part in ("weight", "bias"))
    if arranged.cumulative:
        return [Block(rows - _below(rows), d - _below(d))]
    if clients := getattr(arranged, "clients", 0):
        maps = rows.view(len(rows), clients, seen.batch.image_shape[0] + 1, -1)  # (K, clients, C + 1, H W)
        return [Block(maps[:, client, :-1].flatten(1), maps[:, client, -1].mean(1)) for client in range(clients)]
    return [Block(rows, d)]


def _below(rows: Tensor) -> Tensor:
    return torch.cat([rows[1:], torch.zeros_like(rows[:1])])


def published_pictures(seen: Observation) -> Tensor:
    """Return what the published differencing reads from an imprint: row i - 1 subtracted from row i, for i > 0; (N, n)."""
    arranged, gradient = seen.secret, seen.as_gradient()
    assert isinstance(arranged, Bins)
    rows, d = (gradient[f"{arranged.layer}.{part}"].double() for part in ("weight", "bias"))
    return Block(rows[1:] - rows[:-1], d[1:] - d[:-1]).pictures()


def stretched(rows: Tensor) -> Tensor:
    """Return the sizes of rows (N, n), stretched from 0 to 1 each by its own minimum and maximum: how LOKI's demo rescales pictures.

    >>> stretched(torch.tensor([[-1.0, -2.0, -3.0]])).tolist()
    [[0.0, 0.5, 1.0]]
    """
    size = rows.abs()
    size = size - size.amin(1, keepdim=True)
    return size / size.amax(1, keepdim=True).clamp_min(1e-300)


def are_among(answers: Tensor, x: Tensor, tolerance: float) -> Tensor:
    """Return which pictures x (B, C, H, W) are among the answers (N, ...), to `tolerance` in every pixel; (B,)."""
    if not len(answers):
        return torch.zeros(len(x), dtype=torch.bool)
    distance = torch.cdist(x.flatten(1).double(), answers.flatten(1).double(), p=float("inf"))
    return distance.amin(1) < tolerance


def mean_psnr(guess: Tensor, truth: Tensor) -> float:
    """Return the mean PSNR in dB of guesses (B, ...) of the pictures truth (B, C, H, W)."""
    return float(psnr(guess.view(truth.shape), truth).mean())


# ---------------------------------------------------------------- the error of what noise leaves


def predicted_mse(x: Tensor, d: Tensor, noise: float | Tensor, *, subtracted: bool) -> Tensor:
    """Return the expected squared error per pixel (B,) of pictures read from bins under noise, as far as it is of first order in noise / d.

    Each entry of the gradient has noise of standard deviation s. A row d x + s e divided by d + s e' is off by (e - x e') s / d, which has
    the mean square s^2 (1 + mean(x^2)) / d^2. Where neighbouring rows are subtracted, both have noise: twice as much.

    Args:
        x: pictures alone in their bins, (B, C, H, W).
        d: the bias gradient of each one's bin, without noise, (B,).
        noise: s.
        subtracted: whether the bin's row is a difference of two rows.
    """
    return (1 + subtracted) * noise**2 * (1 + x.square().flatten(1).mean(1)) / d.square()


def predicted_mse_loki(x: Tensor, d: Tensor, noise: float | Tensor, *, scale: float) -> Tensor:
    """Return the same for LOKI: the row is d x scale + s e, and d is the mean over the H W columns of the client's map of ones.

    s^2 (1 / scale^2 + mean(x^2) / (H W)) / d^2.
    """
    pixels = x.shape[2] * x.shape[3]
    return noise**2 * (1 / scale**2 + x.square().flatten(1).mean(1) / pixels) / d.square()
