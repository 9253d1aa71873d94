"""How close a guess is to the truth: pure functions on pictures in [0, 1], (B, C, H, W), one value per picture."""

import math
from collections import Counter

import torch
from skimage.metrics import structural_similarity
from torch import Tensor

from leakage.engine.core import Params

PSNR_CAP = 100.0  # dB, shown for equal pictures
RULE = (
    "Recognisable: structural similarity (SSIM) at least 0.6 and 0.2 above a flat picture, or PSNR at least 8 dB above it. Partly "
    "recognisable: SSIM at least 0.3 and 0.1 above, or PSNR at least 4 dB above. Otherwise: not recognisable. SSIM looks at edges and "
    "contrast, PSNR at pixel values; the flat picture is the private one's own mean colour, black, white or grey, whichever scores best. "
    "A batch is judged by its clearest picture."
)
MEANING = {
    "recognisable": "Whoever is in the picture can be seen by whoever runs the server, although the picture never left the phone.",
    "partly recognisable": "Shapes and colours leak: somebody who knows the picture may guess it, and a better attack may see more.",
    "not recognisable": "This attack did not find the picture. That is no proof of safety: another attack, or more tries, might.",
}


def mse(guess: Tensor, truth: Tensor) -> Tensor:
    """Mean squared error per picture, guess clamped to [0, 1], in float64: (B,).

    >>> mse(torch.full((1, 1, 2, 2), 0.6), torch.full((1, 1, 2, 2), 0.5)).round(decimals=4).tolist()
    [0.01]
    """
    return (guess.double().clamp(0, 1) - truth.double()).square().flatten(1).mean(1)


def psnr(guess: Tensor, truth: Tensor) -> Tensor:
    """Peak signal-to-noise ratio 10 log10(1 / MSE) in dB per picture, at most PSNR_CAP: (B,). Range of the pictures is 1.

    >>> psnr(torch.full((1, 1, 2, 2), 0.6), torch.full((1, 1, 2, 2), 0.5)).round(decimals=2).tolist()
    [20.0]
    """
    return (-10 * mse(guess, truth).log10()).clamp(max=PSNR_CAP)


def ssim(guess: Tensor, truth: Tensor) -> Tensor:
    """Structural similarity (Wang et al. 2004; scikit-image, 7x7 window, range 1) per picture: (B,). NaN below 7 pixels."""
    if min(truth.shape[2:]) < 7:
        return torch.full((len(truth),), math.nan, dtype=torch.double)
    pairs = zip(guess.double().clamp(0, 1).cpu().numpy(), truth.double().cpu().numpy(), strict=True)
    return torch.tensor([structural_similarity(a, b, channel_axis=0, data_range=1.0) for a, b in pairs], dtype=torch.double)


def label_overlap(guess: Tensor, truth: Tensor) -> float:
    """Share of labels found, as multisets: 1 - sum_c |n_c - m_c| / (2 B)."""
    found, real = Counter(guess.tolist()), Counter(truth.tolist())
    return 1 - sum(abs(found[c] - real[c]) for c in found | real) / (2 * len(truth))


def gradient_distances(update: Params, reference: Params) -> dict[str, float]:
    """Cosine distance and relative l2 distance of two updates, over all tensors at once, in float64."""
    a = torch.cat([update[name].detach().cpu().double().flatten() for name in reference])
    b = torch.cat([value.detach().cpu().double().flatten() for value in reference.values()])
    cosine = 1 - float(a @ b / (a.norm() * b.norm()).clamp_min(1e-300))
    return {"cosine": cosine, "relative_l2": float((a - b).norm() / b.norm().clamp_min(1e-300))}


def summary(guess: Tensor, truth: Tensor) -> dict[str, float]:
    """MSE, PSNR and SSIM of a batch: the mean of the pictures' values."""
    return {"mse": float(mse(guess, truth).mean()), "psnr": float(psnr(guess, truth).mean()), "ssim": float(ssim(guess, truth).mean())}


def baselines(truth: Tensor, rng: torch.Generator) -> dict[str, dict[str, float]]:
    """What pictures that know nothing would score: constant grey 0.5, and uniform noise."""
    noise = torch.rand(truth.shape, generator=rng).to(truth)
    return {"grey": summary(torch.full_like(truth, 0.5), truth), "noise": summary(noise, truth)}


def flat(truth: Tensor) -> tuple[Tensor, Tensor]:
    """The best PSNR and the best SSIM that one plain colour reaches, per picture, (B,) each: black, grey, white or its own mean."""
    mean = truth.mean((2, 3), keepdim=True).expand_as(truth)
    plain = [torch.zeros_like(truth), torch.full_like(truth, 0.5), torch.ones_like(truth), mean]
    return torch.stack([psnr(p, truth) for p in plain]).amax(0), torch.stack([ssim(p, truth) for p in plain]).amax(0)


def verdict(scores: tuple[Tensor, Tensor], plain: tuple[Tensor, Tensor]) -> dict[str, str]:
    """The plain verdict on a batch, by RULE: word, why, meaning, rule. `scores` and `plain` (see `flat`) are (PSNR, SSIM), (B,) each."""
    (psnr_each, ssim_each), (plain_psnr, plain_ssim) = scores, plain
    gain, likeness = psnr_each - plain_psnr, ssim_each - plain_ssim
    clear = ((ssim_each >= 0.6) & (likeness >= 0.2)) | (gain >= 8)
    partly = ((ssim_each >= 0.3) & (likeness >= 0.1)) | (gain >= 4)
    total, best = len(gain), int((gain + 20 * likeness.nan_to_num()).argmax())
    word = "recognisable" if bool(clear.any()) else "partly recognisable" if bool(partly.any()) else "not recognisable"
    numbers = f"PSNR {psnr_each[best]:.1f} dB and structural similarity {ssim_each[best]:.2f}"
    numbers += f"; the best plain colour would have {plain_psnr[best]:.1f} dB and {plain_ssim[best]:.2f}"
    if total == 1:
        why = f"The attacker's picture has {numbers}."
    else:
        why = f"{int(clear.sum())} of {total} pictures are recognisable, {int((partly & ~clear).sum())} partly. The clearest has {numbers}."
    return {"word": word, "why": why, "meaning": MEANING[word], "rule": RULE}
