"""The baselines of a batch: its line-up, LPIPS, and the scores of pictures without information about the private ones."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from leakage.engine.core import generator
from leakage.evaluation import metrics
from leakage.evaluation.lineup import OWN, Lineup, Origin, best_of_others, draw, lpips_ranks, pixel_ranks, ssim_ranks
from leakage.evaluation.perceptual import Perceptual, perceptual
from leakage.evaluation.recent import Recent, digest
from leakage.evaluation.verdict import DISTANCES, Reference

SMALLEST = 24  # pixels of a side; in smaller pictures SSIM does not count, because blurred noise reaches a high SSIM too often
BLIND = {  # pictures without information about the private picture, except perhaps its mean colour
    "grey": "grey",
    "mean": "the mean picture",
    "noise": "noise",
    "black": "black",
    "white": "white",
    "mean_colour": "its mean colour",
}
BLURRED_NOISE = "blurred noise"
SCALES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)  # standard deviation of the blur, as a fraction of the picture's side
CONTRAST = 0.15  # standard deviation of blurred noise around grey
REMEMBERED = 2**23  # numbers in the pictures of the line-ups that this process keeps: 32 MiB
SHOWN = ("grey", "mean", "noise", "mean_colour", "blurred", "same_class")  # on the page; the last two have some information
Scores = dict[str, Tensor]  # name -> one value per picture (B,), NaN where it is unknown


@dataclass(frozen=True)
class Baselines:
    """What an attack's guesses of a batch are compared with: line-ups, LPIPS, and the scores of pictures made without the update."""

    lineup: Lineup
    perceptual: Perceptual
    scores: dict[str, dict[str, float]]
    """The summary of the scores of each baseline in SHOWN, by name. blurred is the private picture out of focus; same_class is another
    picture of its class, where there is one."""
    reference: Reference
    """What a verdict needs: the best scores of BLIND pictures, blurred noise and the other pictures of the line-up, and the distances by
    which a BLIND picture is first in the line-up."""


_recent: Recent[Baselines] = Recent(REMEMBERED, lambda kept: kept.lineup.others.numel() + kept.lineup.same_class.numel())


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread within the block: a second gains little, and makes many small steps twenty times slower on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@one_thread()
def measure(guess: Tensor, truth: Tensor, lineup: Lineup, perceptual: Perceptual) -> Scores:
    """Compute all scores of guesses, by name, (B,) each: mse, psnr, ssim, lpips, rank_pixel, rank_ssim, rank_lpips and rank, their median.

    A rank of 1 means: of the private picture and the others of its line-up, the private picture is the nearest to the guess.

    Args:
        guess: pictures (B, C, H, W) in [0, 1]; guess[i] belongs to truth[i].
        truth: private pictures (B, C, H, W) in [0, 1].
        lineup: for each private picture the other pictures of its line-up.
        perceptual: LPIPS; where it is off, its scores are NaN.
    """
    close = _closeness(guess, truth, perceptual)
    ranks = {
        "rank_pixel": pixel_ranks(guess, truth, lineup),
        "rank_ssim": ssim_ranks(guess, close["ssim"], lineup),
        "rank_lpips": lpips_ranks(guess, close["lpips"], lineup, perceptual),
    }
    return {"mse": metrics.mse(guess, truth), **close, **ranks, "rank": torch.stack(list(ranks.values())).nanquantile(0.5, dim=0)}


def summary(scores: Scores) -> dict[str, float]:
    """Reduce scores (B,) to their mean over the pictures with a value, ranks to their median; NaN where no picture has a value."""
    return {name: float(value.nanquantile(0.5) if name.startswith("rank") else value.nanmean()) for name, value in scores.items()}


def blurred(x: Tensor) -> Tensor:
    """Smooth pictures (B, C, H, W) by a Gaussian with a standard deviation of an eighth of the longer side, so that details vanish."""
    sigma = max(x.shape[-2:]) / 8
    return torch.from_numpy(gaussian_filter(x.numpy(), (0, 0, sigma, sigma), mode="nearest"))


def blurred_noise(shape: Sequence[int], scale: float, rng: torch.Generator) -> Tensor:
    """Draw smooth random pictures (B, C, H, W) in [0, 1], equal in all channels: blurred noise of standard deviation CONTRAST around grey.

    Args:
        shape: (B, C, H, W).
        scale: standard deviation of the blur, as a fraction of the longer side.
        rng: the generator of the noise.
    """
    batch, channels, *sides = shape
    sigma = scale * max(sides)
    noise = torch.from_numpy(gaussian_filter(torch.randn((batch, 1, *sides), generator=rng).numpy(), (0, 0, sigma, sigma), mode="reflect"))
    noise = noise - noise.mean((2, 3), keepdim=True)
    unit = noise / noise.square().mean((2, 3), keepdim=True).sqrt().clamp(min=1e-12)  # noise of one pixel is grey
    return (0.5 + CONTRAST * unit).clamp(0, 1).expand(-1, channels, -1, -1)


def make_baselines(origins: Sequence[Origin], x: Tensor, y: Tensor, *, seed: int) -> Baselines:
    """Draw the line-ups of a batch and compute the scores of its baselines: pictures that an attacker could show without the update.

    The baselines of the last batches are remembered, unless there are uploads among their pictures.

    Args:
        origins: where the private pictures are from.
        x: private pictures (B, C, H, W) in [0, 1], on the CPU.
        y: their labels (B,), on the CPU.
        seed: of the line-ups and of the random baselines.
    """
    lpips = perceptual(x.shape[1])
    if any(origin.source in ("upload", OWN.source) for origin in origins):
        return _compute_baselines(origins, x, y, lpips, seed)
    key = (tuple(origins), digest(x), digest(y), lpips.words, seed)
    return _recent.recall(key, lambda: _compute_baselines(origins, x, y, lpips, seed))


@one_thread()
def _compute_baselines(origins: Sequence[Origin], x: Tensor, y: Tensor, lpips: Perceptual, seed: int) -> Baselines:
    lineup = draw(origins, x, y, seed=seed)
    guesses = {
        "grey": torch.full_like(x, 0.5),
        "mean": lineup.mean,
        "noise": torch.rand(x.shape, generator=generator(seed, "baseline")),
        "black": torch.zeros_like(x),
        "white": torch.ones_like(x),
        "mean_colour": x.mean((2, 3), keepdim=True).expand_as(x),
        "blurred": blurred(x),
    }
    without = lineup.same_class.isnan().flatten(1).any(1)  # (B,), pictures without another of their class
    if not without.all():
        guesses["same_class"] = lineup.same_class.nan_to_num(0.5)
    scores = _measure_together(guesses, x, lineup, lpips)
    if "same_class" in scores:
        scores["same_class"] = {name: value.masked_fill(without, torch.nan) for name, value in scores["same_class"].items()}
    smooth = (blurred_noise(x.shape, scale, generator(seed, BLURRED_NOISE, number)) for number, scale in enumerate(SCALES))
    compared = reference(
        {name: scores[name] for name in BLIND},
        [_closeness(noise, x, lpips) for noise in smooth],
        best_of_others(x, lineup),
        lineup.size,
    )
    if min(x.shape[2:]) < SMALLEST:
        compared = replace(compared, ssim_counts=False)
    return Baselines(lineup, lpips, {name: summary(scores[name]) for name in SHOWN if name in scores}, compared)


def _measure_together(guesses: Mapping[str, Tensor], x: Tensor, lineup: Lineup, lpips: Perceptual) -> dict[str, Scores]:
    """Compute the scores of several baselines, name -> (B, C, H, W), for the pictures x at once, so that the line-up is processed once."""
    times = len(guesses)
    repeated = replace(lineup, competitors=lineup.competitors.repeat(times, 1))
    scores = measure(torch.cat(list(guesses.values())), x.repeat(times, 1, 1, 1), repeated, lpips)
    parts = {name: value.split(len(x)) for name, value in scores.items()}
    return {guess: {name: part[index] for name, part in parts.items()} for index, guess in enumerate(guesses)}


def _closeness(guess: Tensor, truth: Tensor, lpips: Perceptual) -> Scores:
    """Compute PSNR, SSIM and LPIPS, (B,) each, without a line-up."""
    near = lpips.distance(metrics.reduced(guess), metrics.reduced(truth))
    return {"psnr": metrics.psnr(guess, truth), "ssim": metrics.ssim(guess, truth), "lpips": near}


def reference(blind: Mapping[str, Scores], smooth: Sequence[Scores], others: Scores, size: int) -> Reference:
    """Combine the scores of baselines to the Reference of a verdict: the best scores, and the baselines that come first in a line-up.

    Args:
        blind: the scores of pictures without information about the private ones, by their names in BLIND
        smooth: PSNR, SSIM and LPIPS of blurred noise. It has no ranks, because random noise may be first in a line-up by luck
        others: the best PSNR and SSIM of another picture of the line-up
        size: number of pictures in the line-up
    """
    titles = [BLIND[name] for name in blind]
    firsts = {name: _first(torch.stack([scores[name] for scores in blind.values()]), titles) for name in DISTANCES}
    every, best, names = [*blind.values(), *smooth], dict[str, Tensor](), dict[str, list[str]]()
    titles += [BLURRED_NOISE] * len(smooth)
    for name, sign in (("psnr", 1), ("ssim", 1), ("lpips", -1)):
        largest = (sign * torch.stack([scores[name] for scores in every])).max(0)
        best[name], names[name] = sign * largest.values, [titles[index] for index in largest.indices.tolist()]
    return Reference(size, best, names, firsts, others)


def _first(ranks: Tensor, titles: Sequence[str]) -> list[str]:
    """Return for each private picture the title of a baseline that singles it out by luck: "" if there is none.

    As a guess, such a baseline gives the private picture a rank below 2: it is first in its line-up, alone or level with another picture.

    Args:
        ranks: the rank of each private picture with each baseline as the guess, (baselines, B).
        titles: of the baselines.
    """
    return [next((title for title, rank in zip(titles, column, strict=True) if rank < 2), "") for column in ranks.T.tolist()]
