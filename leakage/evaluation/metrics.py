"""Metrics of the distance between guess and truth: pure functions on pictures (B, C, H, W) in [0, 1], with one value per picture."""

import math
from collections import Counter
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.engine.core import Params

PSNR_CAP = 100.0  # dB, shown for equal pictures
WINDOW = 7  # pixels, the side of SSIM's window
LARGEST = 64  # pixels of the longer side at which SSIM and LPIPS compare pictures; larger pictures are reduced to it
REDUCED = f"pictures above {LARGEST} px are reduced to {LARGEST} px for SSIM and LPIPS"
C1, C2 = 0.01**2, 0.03**2  # SSIM's constants for a range of 1


# ---------------------------------------------------------------- pixel errors


def mse(guess: Tensor, truth: Tensor) -> Tensor:
    """Compute the mean squared error of each picture (B,) in float64, with the guess clamped to [0, 1].

    >>> mse(torch.full((1, 1, 2, 2), 0.6), torch.full((1, 1, 2, 2), 0.5)).round(decimals=4).tolist()
    [0.01]
    """
    return (guess.double().clamp(0, 1) - truth.double()).square().flatten(1).mean(1)


def mse_norm(guess: Tensor, truth: Tensor, std: Tensor) -> Tensor:
    """Compute the mean squared error of each picture (B,) in a model's normalised units, without clamping; std is (1, C, 1, 1).

    Inverting Gradients and R-GAP print this error for models that normalise. It is about mse / std^2, and more where the guess leaves
    [0, 1].

    >>> mse_norm(torch.full((1, 1, 2, 2), 1.5), torch.full((1, 1, 2, 2), 0.5), torch.tensor(0.5)).tolist()
    [4.0]
    """
    return ((guess.double() - truth.double()) / std.double()).square().flatten(1).mean(1)


def psnr(guess: Tensor, truth: Tensor) -> Tensor:
    """Compute the peak signal-to-noise ratio 10 log10(1 / MSE) of each picture (B,) in dB, at most PSNR_CAP; the pictures' range is 1.

    >>> psnr(torch.full((1, 1, 2, 2), 0.6), torch.full((1, 1, 2, 2), 0.5)).round(decimals=2).tolist()
    [20.0]
    """
    return (-10 * mse(guess, truth).log10()).clamp(max=PSNR_CAP)


def registered_psnr(guess: Tensor, truth: Tensor) -> Tensor:
    """Compute the PSNR (B,) at the best circular shift of the guess, never below plain `psnr`.

    It is for networks with a gradient that hardly depends on positions (convolutions, then a mean over all positions). The best shift s
    maximises the cross-correlation sum_p guess[p - s] truth[p], and so minimises the squared error; an FFT computes all shifts at once.
    Source: "R-PSNR", Yin et al. 2021 (GradInversion), section 4, here without rotation and scale.
    """
    a, b = guess.double().clamp(0, 1), truth.double()
    spectrum = (torch.fft.rfft2(b) * torch.fft.rfft2(a).conj()).sum(1)  # (B, H, W / 2 + 1)
    best = torch.fft.irfft2(spectrum, s=b.shape[2:]).flatten(1).argmax(1)  # (B,), row and column in one number
    rows, columns = best // b.shape[3], best % b.shape[3]
    shifted = [picture.roll((int(row), int(column)), (1, 2)) for picture, row, column in zip(a, rows, columns, strict=True)]
    return torch.maximum(psnr(torch.stack(shifted), truth), psnr(guess, truth))


# ---------------------------------------------------------------- other papers' pixel errors


def rmse255(error: Tensor | float) -> Tensor:
    """Convert a mean squared error on [0, 1] to a root mean squared error in grey levels of 0..255, which AdaDefense prints as MSE.

    >>> rmse255(0.01).round(decimals=2).item()
    25.5
    """
    return 255 * torch.as_tensor(error, dtype=torch.double).sqrt()


def psnr_adadefense(rmse: Tensor | float) -> Tensor:
    """Compute the number that AdaDefense prints as PSNR: 10 log10(255^2 / RMSE), where RMSE should be squared.

    White against black has 24.07 "dB" by this formula, and 0 dB by the correct one.

    >>> psnr_adadefense(143.19).round(decimals=2).item()
    26.57
    """
    return 10 * (255**2 / torch.as_tensor(rmse, dtype=torch.double)).log10()


# ---------------------------------------------------------------- structure


def reduced(x: Tensor) -> Tensor:
    """Reduce pictures (B, C, H, W) to a longer side of LARGEST pixels, by means over areas; smaller pictures stay as they are.

    >>> reduced(torch.zeros(1, 3, 224, 112)).shape, reduced(torch.zeros(1, 3, 32, 48)).shape
    (torch.Size([1, 3, 64, 32]), torch.Size([1, 3, 32, 48]))
    """
    longest = max(x.shape[2:])
    if longest <= LARGEST:
        return x
    return F.interpolate(x, size=[max(1, round(side * LARGEST / longest)) for side in x.shape[2:]], mode="area")


class Moments(NamedTuple):
    """Pictures with mean and variance of every window: the part of SSIM that is computed once for each picture, for many pairs."""

    x: Tensor
    """Pictures (B, C, H, W), float64."""
    mean: Tensor
    """(B, C, H - 6, W - 6)."""
    variance: Tensor
    """The biased variance, (B, C, H - 6, W - 6)."""


def moments(x: Tensor) -> Moments | None:
    """Compute the moments of pictures (B, C, H, W), reduced and clamped to [0, 1]; None where a side is shorter than WINDOW."""
    x = reduced(x)
    if min(x.shape[2:]) < WINDOW:
        return None
    x = x.detach().cpu().double().clamp(0, 1)
    mean = _windows(x)
    return Moments(x, mean, _windows(x * x) - mean * mean)


def similarity(a: Moments, b: Moments) -> Tensor:
    """Compute the SSIM (B,) of pairs of pictures from their moments; one side may have a single picture for all pictures of the other."""
    unbiased = WINDOW**2 / (WINDOW**2 - 1)
    covariance = unbiased * (_windows(a.x * b.x) - a.mean * b.mean)
    above = (2 * a.mean * b.mean + C1) * (2 * covariance + C2)
    below = (a.mean.square() + b.mean.square() + C1) * (unbiased * (a.variance + b.variance) + C2)
    return (above / below).mean((1, 2, 3))


def ssim(guess: Tensor, truth: Tensor) -> Tensor:
    """Compute the structural similarity (B,) of each picture: 7x7 uniform window, sample covariance, range 1; NaN below 7 pixels.

    Pictures above LARGEST are reduced to it.
    Source: Wang et al. 2004, equation 13, with the window and the border of scikit-image's structural_similarity.
    """
    a, b = moments(guess), moments(truth)
    return similarity(a, b) if a and b else torch.full((len(truth),), math.nan, dtype=torch.double)


def _windows(x: Tensor) -> Tensor:
    """Compute the mean of every 7x7 window inside the pictures: (B, C, H, W) -> (B, C, H - 6, W - 6)."""
    rows = x.unfold(2, WINDOW, 1).sum(-1)  # (B, C, H - 6, W)
    return rows.unfold(3, WINDOW, 1).sum(-1) / WINDOW**2  # (B, C, H - 6, W - 6)


# ---------------------------------------------------------------- labels and gradients


def label_overlap(guess: Tensor, truth: Tensor) -> float:
    """Return the fraction of labels that were found, without regard to order: 1 - sum_c |n_c - m_c| / (2 B).

    n_c and m_c count the labels c in `guess` (B,) and `truth` (B,).
    """
    guessed, real = Counter(guess.tolist()), Counter(truth.tolist())
    return 1 - sum(abs(guessed[c] - real[c]) for c in guessed | real) / (2 * len(truth))


def gradient_distances(update: Params, reference: Params) -> dict[str, float]:
    """Compute "cosine", 1 - cos of the angle, and "relative_l2", ||update - reference|| / ||reference||, over all tensors, in float64."""
    a = torch.cat([update[name].detach().cpu().double().flatten() for name in reference])
    b = torch.cat([value.detach().cpu().double().flatten() for value in reference.values()])
    cosine = 1 - float((a * b).sum() / (a.norm() * b.norm()).clamp_min(1e-300))
    return {"cosine": cosine, "relative_l2": float((a - b).norm() / b.norm().clamp_min(1e-300))}
