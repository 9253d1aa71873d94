"""What every guess is held against: its line-up, LPIPS, and what pictures that know nothing would score."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.engine.core import generator
from leakage.evaluation import metrics
from leakage.evaluation.lineup import Lineup, Origin, draw, lpips_ranks, pixel_ranks, ssim_ranks
from leakage.evaluation.perceptual import Perceptual, perceptual

RANKED = 16  # pictures of a batch for which baselines are ranked: a run must not wait for all of 128
BLIND = {"grey": "grey", "mean": "the mean picture", "noise": "noise"}
Scores = dict[str, Tensor]  # name -> one value per picture (B,), not a number where it is unknown


@dataclass(frozen=True)
class Baselines:
    """Belongs to one batch of private pictures.

    scores          name -> the summary of pictures that know nothing: grey, mean (of the line-up), noise, same_class where there is one;
                    their rank is the median of the first RANKED pictures
    best            ssim and lpips, (B,) each: the best that those, or a plain colour, reach; without same_class, which is no blind guess
    names           which of them that is, per picture
    """

    lineup: Lineup
    perceptual: Perceptual
    scores: dict[str, dict[str, float]]
    best: Scores
    names: dict[str, list[str]]


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
def measure(guess: Tensor, truth: Tensor, lineup: Lineup, perceptual: Perceptual, *, most: int = sys.maxsize) -> Scores:
    """Every score of guesses (B, C, H, W) in [0, 1] that belong to the truths: (B,) each. `rank` is the median over the distances.

    Only the first `most` pictures are ranked, the others have a rank that is not a number.
    """
    first = replace(lineup, competitors=lineup.competitors[:most])
    found = {
        "rank_pixel": pixel_ranks(guess[:most], truth[:most], first),
        "rank_ssim": ssim_ranks(guess[:most], truth[:most], first),
        "rank_lpips": lpips_ranks(guess[:most], truth[:most], first, perceptual),
    }
    unranked = max(0, len(truth) - most)
    ranks = {name: F.pad(rank, (0, unranked), value=torch.nan) for name, rank in found.items()}
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


@one_thread()
def make_baselines(origins: Sequence[Origin], x: Tensor, y: Tensor, *, seed: int) -> Baselines:
    """The baselines for private pictures x (B, C, H, W) with labels y (B,), both on the CPU; `origins` says where each is from."""
    lineup, eye = draw(origins, x, y, seed=seed), perceptual(x.shape[1])
    noise = torch.rand(x.shape, generator=generator(seed, "baseline"))
    blind = {"grey": torch.full_like(x, 0.5), "mean": lineup.mean, "noise": noise}
    scores = {name: measure(guess, x, lineup, eye, most=RANKED) for name, guess in blind.items()}
    plain = {"black": torch.zeros_like(x), "white": torch.ones_like(x), "its mean colour": x.mean((2, 3), keepdim=True).expand_as(x)}
    similar = {name: metrics.ssim(colour, x) for name, colour in plain.items()} | {BLIND[n]: s["ssim"] for n, s in scores.items()}
    alike = {name: eye.distance(colour, x) for name, colour in plain.items()} | {BLIND[n]: s["lpips"] for n, s in scores.items()}
    ssim, lpips = torch.stack([*similar.values()]).max(0), torch.stack([*alike.values()]).min(0)
    names = [*similar]
    without = lineup.likes.isnan().flatten(1).any(1)  # (B,)
    if not without.all():
        scores["same_class"] = measure(lineup.likes.nan_to_num(0.5), x, lineup, eye, most=RANKED)
        for value in scores["same_class"].values():
            value[without] = torch.nan
    return Baselines(
        lineup=lineup,
        perceptual=eye,
        scores={name: summary(found) for name, found in scores.items()},
        best={"ssim": ssim.values, "lpips": lpips.values},
        names={"ssim": [names[place] for place in ssim.indices.tolist()], "lpips": [names[place] for place in lpips.indices.tolist()]},
    )
