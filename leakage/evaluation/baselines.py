"""What every guess is held against: its line-up, LPIPS, and what pictures that know nothing would score."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from leakage.engine.core import generator
from leakage.evaluation import metrics
from leakage.evaluation.lineup import Lineup, Origin, best_of_others, draw, lpips_ranks, pixel_ranks, ssim_ranks
from leakage.evaluation.perceptual import Perceptual, perceptual
from leakage.evaluation.verdict import DISTANCES, Reference

SMALLEST = 24  # pixels of a side from which on SSIM counts: of fewer windows 7 wide blurred noise is near too often
RANKED = 16  # pictures of a batch for which baselines are ranked: a run must not wait for all of 128
NOT_HELD = "nobody looked whether one that knows nothing"  # of the other pictures: so no distance counts
BLIND = {  # what knows nothing of a picture, save perhaps its mean colour
    "grey": "grey",
    "mean": "the mean picture",
    "noise": "noise",
    "black": "black",
    "white": "white",
    "mean_colour": "its mean colour",
}
BLURRED_NOISE = "blurred noise"
SCALES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the side of a picture: the standard deviation of the blur
CONTRAST = 0.15  # standard deviation of blurred noise around grey
SHOWN = ("grey", "mean", "noise", "mean_colour", "blurred", "same_class")  # of those, and of what knows something, on the page
Scores = dict[str, Tensor]  # name -> one value per picture (B,), not a number where it is unknown


@dataclass(frozen=True)
class Baselines:
    """Belongs to one batch of private pictures.

    scores     name -> the summary of pictures that know nothing (BLIND), and of two that know something: blurred (the private picture
               itself), same_class (another one of its class) where there is one; their rank is the median of the first RANKED pictures
    reference  what a verdict holds guesses against: the best that BLIND ones, blurred noise and the others of the line-up reach, and
               where BLIND ones are first of the line-up
    """

    lineup: Lineup
    perceptual: Perceptual
    scores: dict[str, dict[str, float]]
    reference: Reference


@contextmanager
def one_thread() -> Iterator[None]:
    """Many small steps: a second thread gains little on a free machine, and on a busy one they take twenty times as long."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@one_thread()
def measure(guess: Tensor, truth: Tensor, lineup: Lineup, perceptual: Perceptual, *, ranked: Tensor | None = None) -> Scores:
    """Every score of guesses (B, C, H, W) in [0, 1] that belong to the truths: (B,) each. `rank` is the median over the distances.

    Only the pictures `ranked` (bool (B,)) are ranked, or all; the others have a rank that is not a number.
    """
    ranked = torch.ones(len(guess), dtype=torch.bool) if ranked is None else ranked
    own, true, beside = guess[ranked], truth[ranked], replace(lineup, competitors=lineup.competitors[ranked])
    found = {
        "rank_pixel": pixel_ranks(own, true, beside),
        "rank_ssim": ssim_ranks(own, true, beside),
        "rank_lpips": lpips_ranks(own, true, beside, perceptual),
    }
    ranks = {name: torch.full((len(guess),), torch.nan).double().masked_scatter(ranked, rank) for name, rank in found.items()}
    return {
        "mse": metrics.mse(guess, truth),
        "psnr": metrics.psnr(guess, truth),
        "ssim": metrics.ssim(guess, truth),
        "lpips": perceptual.distance(guess, truth),
        **ranks,
        "rank": torch.stack(list(ranks.values())).nanquantile(0.5, dim=0),
    }


def summary(scores: Scores) -> dict[str, float]:
    """The mean of the pictures that have a value, of ranks the median; not a number where none has."""
    return {name: float(value.nanquantile(0.5) if name.startswith("rank") else value.nanmean()) for name, value in scores.items()}


def blurred(x: Tensor) -> Tensor:
    """Pictures (B, C, H, W) out of focus, with a standard deviation of an eighth of their side: what is left when details are gone."""
    sigma = max(x.shape[-2:]) / 8
    return torch.from_numpy(gaussian_filter(x.numpy(), (0, 0, sigma, sigma), mode="nearest"))


def blurred_noise(shape: Sequence[int], scale: float, rng: torch.Generator) -> Tensor:
    """Smooth random pictures (B, C, H, W) in [0, 1], the same in all channels: noise, blurred by `scale` of the side, of one contrast."""
    batch, channels, *sides = shape
    sigma = scale * max(sides)
    noise = torch.from_numpy(gaussian_filter(torch.randn((batch, 1, *sides), generator=rng).numpy(), (0, 0, sigma, sigma), mode="reflect"))
    noise = noise - noise.mean((2, 3), keepdim=True)
    unit = noise / noise.square().mean((2, 3), keepdim=True).sqrt().clamp(min=1e-12)  # noise of one pixel is grey
    return (0.5 + CONTRAST * unit).clamp(0, 1).expand(-1, channels, -1, -1)


@one_thread()
def make_baselines(origins: Sequence[Origin], x: Tensor, y: Tensor, *, seed: int) -> Baselines:
    """The baselines for private pictures x (B, C, H, W) with labels y (B,), both on the CPU; `origins` says where each is from."""
    lineup, eye = draw(origins, x, y, seed=seed), perceptual(x.shape[1])
    guesses = {
        "grey": torch.full_like(x, 0.5),
        "mean": lineup.mean,
        "noise": torch.rand(x.shape, generator=generator(seed, "baseline")),
        "black": torch.zeros_like(x),
        "white": torch.ones_like(x),
        "mean_colour": x.mean((2, 3), keepdim=True).expand_as(x),
        "blurred": blurred(x),
    }
    without = lineup.likes.isnan().flatten(1).any(1)  # (B,)
    if not without.all():
        guesses["same_class"] = lineup.likes.nan_to_num(0.5)
    scores = _measure_together(guesses, x, lineup, eye)
    if "same_class" in scores:
        scores["same_class"] = {name: value.masked_fill(without, torch.nan) for name, value in scores["same_class"].items()}
    held = reference(
        {name: scores[name] for name in BLIND},
        [_closeness(blurred_noise(x.shape, scale, generator(seed, BLURRED_NOISE, number)), x, eye) for number, scale in enumerate(SCALES)],
        best_of_others(x, lineup, compared=RANKED),
        lineup.size,
    )
    if min(x.shape[2:]) < SMALLEST:
        held = replace(held, ssim_counts=False)
    return Baselines(lineup, eye, {name: summary(scores[name]) for name in SHOWN if name in scores}, held)


def _measure_together(guesses: Mapping[str, Tensor], x: Tensor, lineup: Lineup, eye: Perceptual) -> dict[str, Scores]:
    """The scores of several guesses (B, C, H, W) at the same pictures, whose line-up is then looked at once."""
    times = len(guesses)
    beside = replace(lineup, competitors=lineup.competitors.repeat(times, 1))
    ranked = (torch.arange(len(x)) < RANKED).repeat(times)
    found = measure(torch.cat(list(guesses.values())), x.repeat(times, 1, 1, 1), beside, eye, ranked=ranked)
    parts = {name: value.split(len(x)) for name, value in found.items()}
    return {guess: {name: part[place] for name, part in parts.items()} for place, guess in enumerate(guesses)}


def _closeness(guess: Tensor, truth: Tensor, eye: Perceptual) -> Scores:
    """PSNR, SSIM and LPIPS, without a line-up."""
    return {"psnr": metrics.psnr(guess, truth), "ssim": metrics.ssim(guess, truth), "lpips": eye.distance(guess, truth)}


def reference(blind: Mapping[str, Scores], smooth: Sequence[Scores], others: Scores, size: int) -> Reference:
    """What a verdict holds guesses against.

    Args:
        blind: the scores of pictures that know nothing, by their names in BLIND
        smooth: PSNR, SSIM and LPIPS of blurred noise. It is random: that one of it is first of a line-up says nothing against a distance
        others: PSNR and SSIM of the nearest other picture of the line-up
        size: pictures in the line-up
    """
    titles = [BLIND[name] for name in blind]
    firsts = {name: _first(torch.stack([one[name] for one in blind.values()]), titles) for name in DISTANCES}
    every, best, names = [*blind.values(), *smooth], dict[str, Tensor](), dict[str, list[str]]()
    titles += [BLURRED_NOISE] * len(smooth)
    for name, sign in (("psnr", 1), ("ssim", 1), ("lpips", -1)):
        found = (sign * torch.stack([one[name] for one in every])).max(0)
        best[name], names[name] = sign * found.values, [titles[place] for place in found.indices.tolist()]
    return Reference(size, best, names, firsts, others)


def _first(ranks: Tensor, titles: Sequence[str]) -> list[str]:
    """Of ranks (guesses, B): who is first, or shares the first place, for each picture; "" for nobody, NOT_HELD where nobody looked."""
    looked = (torch.arange(ranks.shape[1]) < RANKED).tolist()
    found = [next((title for title, rank in zip(titles, column, strict=True) if rank < 2), "") for column in ranks.T.tolist()]
    return [first if here else NOT_HELD for first, here in zip(found, looked, strict=True)]
