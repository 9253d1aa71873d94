"""The line-up: the private picture among 99 others of its kind, ranked by distance from the guess."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from leakage.data.images import Item, gallery, read
from leakage.engine.core import generator
from leakage.evaluation import metrics
from leakage.evaluation.perceptual import Perceptual
from leakage.evaluation.pools import OWN, SIZE, Origin, describe_pool, first_of, gather, pool_of, tensor

__all__ = ["NEAR", "OWN", "SIZE", "Lineup", "Origin", "draw", "lpips_ranks", "pixel_ranks", "ssim_ranks"]
NEAR = 1e-3  # two pictures with a smaller mean absolute difference count as the same
CHUNK = 8  # pictures for which SSIM is computed at once: they fit into a processor's cache, which is twice as fast


@dataclass(frozen=True)
class Lineup:
    """For each private picture the other pictures of its line-up, which are ranked with it by distance from a guess.

    `same_class` adds another picture of its class, as a baseline.
    """

    others: Tensor
    """All pictures of the line-ups except the private ones, (P, C, H, W), on the CPU."""
    competitors: Tensor
    """bool (B, P): whether others[p] is in the line-up of picture b."""
    same_class: Tensor
    """Another picture of the same class for each private picture, (B, C, H, W); NaN where there is none."""
    words: str
    """A text for the page: where the pictures are from."""
    uploaded: bool = False
    """Whether uploaded pictures are among the others; nothing of these is remembered for later runs."""

    @property
    def size(self) -> int:
        """The number of pictures in the smallest line-up of the batch, with the private one."""
        return 1 + int(self.competitors.sum(1).min())

    @property
    def mean(self) -> Tensor:
        """The mean picture of each line-up without the private one, (B, C, H, W); grey where there are no others."""
        weights = self.competitors.float() / self.competitors.sum(1, keepdim=True).clamp(min=1)
        mean = torch.einsum("bp,pchw->bchw", weights, self.others)
        return torch.where(self.competitors.any(1)[:, None, None, None], mean, 0.5)

    def rank(self, private: Tensor, others: Tensor) -> Tensor:
        """Compute the rank (B,) of each private picture: 1 + the number of others that are nearer to the guess; a tie counts half.

        A guess without information has rank (N + 1) / 2 on average over private pictures from the pool of the N pictures in the line-up.

        Args:
            private: the distance of each guess from its private picture, (B,).
            others: the distance of each guess from each other picture, (B, P).

        Returns:
            The ranks; NaN where `private` is NaN.
        """
        nearer, level = others < private[:, None], others == private[:, None]
        return (1 + ((nearer + 0.5 * level) * self.competitors).sum(1)).double().where(~private.isnan(), math.nan)


def pixel_ranks(guess: Tensor, truth: Tensor, lineup: Lineup) -> Tensor:
    """Compute the rank (B,) of each private picture in its line-up by squared pixel error from the guess; 1 is the nearest."""
    a, b = guess.flatten(1).double(), lineup.others.flatten(1).double()
    table = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()  # (B, P)
    return lineup.rank((a - truth.flatten(1).double()).square().sum(1), table)


def ssim_ranks(guess: Tensor, ssim: Tensor, lineup: Lineup) -> Tensor:
    """Compute the rank (B,) of each private picture in its line-up by SSIM with the guess.

    `ssim` (B,) is that of the guesses and the private pictures. It is NaN for pictures smaller than SSIM's window; so is the rank.
    """
    different, which = guess.unique(dim=0, return_inverse=True)  # grey is the same for all pictures
    return lineup.rank(-ssim, -_similarities(different, lineup.others)[which])


def lpips_ranks(guess: Tensor, lpips: Tensor, lineup: Lineup, perceptual: Perceptual) -> Tensor:
    """Compute the rank (B,) of each private picture in its line-up by LPIPS from the guess.

    `lpips` (B,) is the distance of the guesses from the private pictures. It is NaN where LPIPS is off; so is the rank.
    """
    different, which = guess.unique(dim=0, return_inverse=True)  # grey is the same for all pictures
    table = perceptual.table(metrics.reduced(different), metrics.reduced(lineup.others), remember=not lineup.uploaded)
    return lineup.rank(lpips, table[which])


def best_of_others(truth: Tensor, lineup: Lineup) -> dict[str, Tensor]:
    """Compute the best PSNR and the best SSIM, (B,) each, that another picture of each line-up would reach as a guess.

    SSIM is NaN for pictures smaller than its window. A line-up without others has PSNR and SSIM minus infinity.
    """
    a, b = truth.flatten(1).double(), lineup.others.flatten(1).double()
    error = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square() / a.shape[1]  # (B, P)
    alike = _similarities(truth, lineup.others)
    return {
        "psnr": -10 * error.masked_fill(~lineup.competitors, math.inf).amin(1).log10(),
        "ssim": alike.masked_fill(~lineup.competitors & ~alike.isnan(), -math.inf).amax(1),
    }


def _similarities(pictures: Tensor, others: Tensor) -> Tensor:
    """Compute the SSIM of every pair: (B, C, H, W), (P, C, H, W) -> (B, P); NaN for pictures smaller than SSIM's window."""
    picture_moments, other_moments = metrics.moments(pictures), metrics.moments(others)
    if picture_moments is None or other_moments is None:
        return torch.full((len(pictures), len(others)), math.nan, dtype=torch.double)
    singles = [metrics.Moments(*part) for part in zip(*(torch.split(part, 1) for part in picture_moments), strict=True)]
    chunks = [metrics.Moments(*part) for part in zip(*(torch.split(part, CHUNK) for part in other_moments), strict=True)]
    return torch.stack([torch.cat([metrics.similarity(single, chunk) for chunk in chunks]) for single in singles])


# ---------------------------------------------------------------- the pictures of a line-up


def draw(origins: Sequence[Origin], truth: Tensor, labels: Tensor, *, seed: int) -> Lineup:
    """Choose the other pictures of each private picture's line-up.

    A picture of a data set gets 99 other test pictures, by the seed; in a data set of named people none of the same person. A picture of
    the gallery (pictures that come with the program), or of OWN (a user's picture with other classes), gets crops of the gallery's other
    pictures of its kind, the same for every seed. An uploaded picture gets crops of the batch's other uploads of its kind where these are
    enough, else faces of different people or crops of the gallery, by its kind. Near-duplicates of the private picture are left out.

    Args:
        origins: where the private pictures are from; repeated where they are fewer than the pictures.
        truth: private pictures (B, C, H, W) in [0, 1].
        labels: their labels (B,).
        seed: of the draw.
    """
    shape = (truth.shape[1], truth.shape[2], truth.shape[3])
    pictures = (tuple(origins) * len(truth))[: len(truth)]
    names = [pool_of(picture, pictures) for picture in pictures]
    pools = {name: gather(name, pictures, shape, seed) for name in dict.fromkeys(names)}
    candidates = [(name, identity) for name, pool in pools.items() for identity in pool.identities]
    others = torch.cat([pool.pictures for pool in pools.values()])  # (P, C, H, W)
    competitors = torch.zeros(len(truth), len(others), dtype=torch.bool)
    for number, (picture, pool_name) in enumerate(zip(pictures, names, strict=True)):
        far = ((others - truth[number]).abs().mean((1, 2, 3)) >= NEAR).tolist()
        private = picture.identity
        indices = [i for i, (name, identity) in enumerate(candidates) if name == pool_name and identity != private and far[i]]
        competitors[number, indices[: SIZE - 1]] = True
    rngs = [generator(seed, "same class", number) for number in range(len(pictures))]
    items_of = cache(lambda source: gallery() if source == "gallery" else first_of(source))  # thousands, listed once for the batch
    batch = zip(pictures, labels.tolist(), truth, rngs, strict=True)
    same_class = torch.stack([_of_same_class(picture, label, x, rng, items_of) for picture, label, x, rng in batch])
    words = "; ".join(describe_pool(name, pictures) for name in pools)
    words += f"; {metrics.REDUCED}" if max(shape) > metrics.LARGEST else ""
    return Lineup(others, competitors, same_class, words, uploaded=any(name.source == "uploads" for name in pools))


def _of_same_class(origin: Origin, label: int, truth: Tensor, rng: torch.Generator, items_of: Callable[[str], list[Item]]) -> Tensor:
    """Draw another picture (C, H, W) of a private picture's class from its source, for an uploaded picture from the gallery; NaN for none.

    Args:
        origin: where the private picture is from.
        label: its class.
        truth: the private picture, (C, H, W); near-duplicates of it are skipped.
        rng: the generator of the random order.
        items_of: returns the pictures of a source.
    """
    if origin.source == "own":
        return torch.full_like(truth, math.nan)
    channels, size, _ = truth.shape
    source = "gallery" if origin.source == "upload" else origin.source
    same = [item.id for item in items_of(source) if item.label == label and item.id != origin.id]
    for index in torch.randperm(len(same), generator=rng).tolist()[:9]:
        picture = tensor([read(source, same[index], size, channels)])[0]
        if (picture - truth).abs().mean() >= NEAR:
            return picture
    return torch.full_like(truth, math.nan)
