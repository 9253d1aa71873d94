"""The registration of guesses by shifts: convolutions hardly reveal the position of an object, so it differs from guess to guess."""

import torch
from torch import Tensor


def shifts(moving: Tensor, still: Tensor, reach: int) -> tuple[Tensor, Tensor]:
    """Return the circular shift of each picture in `moving` that matches it best to its picture in `still`.

    The best shift s maximizes sum_p moving[p - s] still[p], so its squared error is least. The FFT computes all shifts at once.

    Args:
        moving: the pictures to be shifted, (..., C, H, W).
        still: the pictures to match, of the same shape.
        reach: the largest shift in rows and columns, to either side.

    Returns:
        The shifts in rows and in columns, (...) each, int64.
    """
    height, width = still.shape[-2:]
    spectrum = (torch.fft.rfft2(still) * torch.fft.rfft2(moving).conj()).sum(-3)
    match = torch.fft.irfft2(spectrum, s=(height, width))  # (..., H, W)
    down, right = (_signed(size, still.device) for size in (height, width))
    beyond = (down.abs() > reach)[:, None] | (right.abs() > reach)
    best = match.masked_fill(beyond, -torch.inf).flatten(-2).argmax(-1)
    return down[best // width], right[best % width]


def shifted_by(x: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Shift each picture of x (..., C, H, W) circularly by `down` rows and `right` columns, (...) each."""
    height, width = x.shape[-2:]
    rows = (torch.arange(height, device=x.device) - down[..., None]) % height  # (..., H)
    columns = (torch.arange(width, device=x.device) - right[..., None]) % width  # (..., W)
    indices = (rows[..., :, None] * width + columns[..., None, :]).flatten(-2)[..., None, :]  # (..., 1, H W)
    return x.flatten(-2).gather(-1, indices.expand(*x.shape[:-2], -1)).view_as(x)


@torch.no_grad()
def registered_mean(z: Tensor, reach: int) -> Tensor:
    """Compute for each of S guesses (S, B, C, H, W) the mean of all guesses, each shifted by at most `reach` pixels to match it.

    Source: Yin et al. 2021, equation 11: the mean of registered candidates, here with shifts alone in place of RANSAC-flow.
    """
    total = torch.zeros_like(z)
    for guess in z:
        others = guess.expand_as(z)
        total += shifted_by(others, *shifts(others, z, reach))
    return total / len(z)


def _signed(size: int, device: torch.device) -> Tensor:
    """Return the shift that each index of an FFT stands for, (size,): 0, 1, ..., and negative shifts from the middle on.

    >>> _signed(5, torch.device("cpu")).tolist()
    [0, 1, 2, -2, -1]
    """
    indices = torch.arange(size, device=device)
    return torch.where(indices > size // 2, indices - size, indices)
