"""Could you be picked out of a line-up of 100? The true picture among others of its kind, ranked by distance from the guess."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.data.images import gallery, read
from leakage.engine.core import generator
from leakage.evaluation import metrics
from leakage.evaluation.perceptual import Perceptual
from leakage.evaluation.pools import OWN, SIZE, Origin, first_of, gather, pool_of, tensor, words

__all__ = ["NEAR", "OWN", "SIZE", "Lineup", "Origin", "draw", "lpips_ranks", "pixel_ranks", "ssim_ranks"]
NEAR = 1e-3  # mean absolute difference below which two pictures count as one
CHUNK = 8  # pictures whose SSIM to a guess is worked out together: what fits into a processor's cache is done twice as fast


@dataclass(frozen=True)
class Lineup:
    """Who stands beside each private picture, and another picture of its class.

    others     (P, C, H, W), on the CPU
    competitors  bool (B, P): others[p] stands in the line-up of picture b
    likes      (B, C, H, W): another picture of the same class, not a number where there is none
    words      what the line-up is made of, for the page
    """

    others: Tensor
    competitors: Tensor
    likes: Tensor
    words: str

    @property
    def size(self) -> int:
        """Pictures in the smallest line-up of the batch, the true one among them."""
        return 1 + int(self.competitors.sum(1).min())

    @property
    def mean(self) -> Tensor:
        """The mean picture of each line-up without the true one: (B, C, H, W). Grey where it has no others."""
        share = self.competitors.float() / self.competitors.sum(1, keepdim=True).clamp(min=1)
        mean = torch.einsum("bp,pchw->bchw", share, self.others)
        return torch.where(self.competitors.any(1)[:, None, None, None], mean, 0.5)

    def rank(self, own: Tensor, others: Tensor) -> Tensor:
        """1 + the number of others nearer to the guess than the true picture, ties counted half: own (B,), others (B, P) -> (B,).

        Over true pictures drawn from the same pool, a guess that knows nothing averages (N + 1) / 2. Not a number where `own` is none.
        """
        nearer, level = others < own[:, None], others == own[:, None]
        return (1 + ((nearer + 0.5 * level) * self.competitors).sum(1)).double().where(~own.isnan(), math.nan)


def pixel_ranks(guess: Tensor, truth: Tensor, lineup: Lineup) -> Tensor:
    """Rank by squared pixel error: (B,)."""
    a, b = guess.flatten(1).double(), lineup.others.flatten(1).double()
    table = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()  # (B, P)
    return lineup.rank((a - truth.flatten(1).double()).square().sum(1), table)


def ssim_ranks(guess: Tensor, truth: Tensor, lineup: Lineup) -> Tensor:
    """Rank by 1 - SSIM: (B,). Not a number for pictures below SSIM's window."""
    different, which = guess.unique(dim=0, return_inverse=True)  # grey is the same for all pictures
    return lineup.rank(-metrics.ssim(guess, truth), -_similarities(different, lineup.others)[which])


def lpips_ranks(guess: Tensor, truth: Tensor, lineup: Lineup, perceptual: Perceptual) -> Tensor:
    """Rank by LPIPS: (B,). Not a number when it is off."""
    different, which = guess.unique(dim=0, return_inverse=True)  # grey is the same for all pictures
    return lineup.rank(perceptual.distance(guess, truth), perceptual.table(different, lineup.others)[which])


def best_of_others(truth: Tensor, lineup: Lineup, *, compared: int) -> dict[str, Tensor]:
    """PSNR and SSIM of the other picture of each line-up that is nearest to the private one, as if it were a guess: (B,) each.

    SSIM of the first `compared` pictures only; the others' is not a number. Minus infinity where a line-up has no others.
    """
    a, b = truth.flatten(1).double(), lineup.others.flatten(1).double()
    error = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square() / a.shape[1]  # (B, P)
    alike = torch.full_like(error, math.nan)
    alike[:compared] = _similarities(truth[:compared], lineup.others)
    return {
        "psnr": -10 * error.masked_fill(~lineup.competitors, math.inf).amin(1).log10(),
        "ssim": alike.masked_fill(~lineup.competitors & ~alike.isnan(), -math.inf).amax(1),
    }


def _similarities(pictures: Tensor, others: Tensor) -> Tensor:
    """SSIM of every picture to every other one, (B, C, H, W), (P, C, H, W) -> (B, P). Not a number below SSIM's window."""
    mine, rows = metrics.moments(pictures), metrics.moments(others)
    if mine is None or rows is None:
        return torch.full((len(pictures), len(others)), math.nan, dtype=torch.double)
    alone = [metrics.Moments(*part) for part in zip(*(torch.split(part, 1) for part in mine), strict=True)]
    pieces = [metrics.Moments(*part) for part in zip(*(torch.split(part, CHUNK) for part in rows), strict=True)]
    return torch.stack([torch.cat([metrics.similarity(one, piece) for piece in pieces]) for one in alone])


# ---------------------------------------------------------------- who stands in it


def draw(origins: Sequence[Origin], truth: Tensor, labels: Tensor, *, seed: int) -> Lineup:
    """The line-up of private pictures (B, C, H, W) with their labels (B,), each from its origin; too few origins are repeated.

    Data sets: 99 other test pictures, by the seed; of people with names none of the same person. Gallery and OWN: crops of the gallery's
    other pictures of the same kind, always the same ones. Uploads: crops of the other uploads of that kind in this batch where there are
    enough, else of the kind's pool. Near-duplicates of the true picture never stand beside it.
    """
    shape = (truth.shape[1], truth.shape[2], truth.shape[3])
    pictures = (tuple(origins) * len(truth))[: len(truth)]
    names = [pool_of(picture, pictures) for picture in pictures]
    pools = {name: gather(name, pictures, shape, seed) for name in dict.fromkeys(names)}
    standing = [(name, who) for name, pool in pools.items() for who in pool.who]
    others = torch.cat([pool.pictures for pool in pools.values()])  # (P, C, H, W)
    competitors = torch.zeros(len(truth), len(others), dtype=torch.bool)
    for number, (picture, own) in enumerate(zip(pictures, names, strict=True)):
        far = ((others - truth[number]).abs().mean((1, 2, 3)) >= NEAR).tolist()
        mine = picture.who
        places = [place for place, (name, who) in enumerate(standing) if name == own and who != mine and far[place]]
        competitors[number, places[: SIZE - 1]] = True
    rngs = [generator(seed, "same class", number) for number in range(len(pictures))]
    likes = torch.stack([_like(p, int(y), x, rng) for p, y, x, rng in zip(pictures, labels, truth, rngs, strict=True)])
    return Lineup(others, competitors, likes, "; ".join(words(name, pictures) for name in pools))


def _like(origin: Origin, label: int, truth: Tensor, rng: torch.Generator) -> Tensor:
    """Another picture of the same class and source: (C, H, W); not a number where there is none."""
    if origin.source == "own":
        return torch.full_like(truth, math.nan)
    channels, size, _ = truth.shape
    source = "gallery" if origin.source == "upload" else origin.source
    known = gallery() if source == "gallery" else first_of(source)
    same = [item.id for item in known if item.label == label and item.id != origin.id]
    for place in torch.randperm(len(same), generator=rng).tolist()[:9]:
        found = tensor([read(source, same[place], size, channels)])[0]
        if (found - truth).abs().mean() >= NEAR:
            return found
    return torch.full_like(truth, math.nan)
