"""Could you be picked out of a line-up of 100? The true picture among others of its kind, ranked by distance from the guess."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from leakage.data.images import Item, Pixels, datasets, gallery, read
from leakage.engine.core import generator
from leakage.evaluation import metrics
from leakage.evaluation.perceptual import Perceptual

SIZE = 100  # pictures in a line-up, the true one among them
SOURCE = 256  # pixels of a gallery picture before it is cut
NEAR = 1e-3  # mean absolute difference below which two pictures count as one
CHUNK = 8  # pictures whose SSIM to a guess is worked out together: what fits into a processor's cache is done twice as fast
REACH = 2000  # the others of a data set are drawn from its first so many test pictures
KINDS = {"face": "the other faces", "digit": "the other digits"}  # of the gallery; the rest are photographs
Origin = tuple[str, str]  # source and id of a picture: gallery, upload, a data set, or OWN
OWN: Origin = ("own", "")  # somebody's own, whose class says nothing about the gallery's
Shape = tuple[int, int, int]  # (C, H, W)


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
    mine, rows = metrics.moments(different), metrics.moments(lineup.others)
    if mine is None or rows is None:
        return torch.full((len(guess),), math.nan, dtype=torch.double)
    alone = [metrics.Moments(*part) for part in zip(*(torch.split(part, 1) for part in mine), strict=True)]
    pieces = [metrics.Moments(*part) for part in zip(*(torch.split(part, CHUNK) for part in rows), strict=True)]
    table = torch.stack([torch.cat([metrics.similarity(one, piece) for piece in pieces]) for one in alone])  # (U, P)
    return lineup.rank(-metrics.ssim(guess, truth), -table[which])


def lpips_ranks(guess: Tensor, truth: Tensor, lineup: Lineup, perceptual: Perceptual) -> Tensor:
    """Rank by LPIPS: (B,). Not a number when it is off."""
    different, which = guess.unique(dim=0, return_inverse=True)  # grey is the same for all pictures
    return lineup.rank(perceptual.distance(guess, truth), perceptual.table(different, lineup.others)[which])


# ---------------------------------------------------------------- who stands in it


def draw(origins: Sequence[Origin], truth: Tensor, labels: Tensor, *, seed: int) -> Lineup:
    """The line-up of private pictures (B, C, H, W) with their labels (B,), each from its origin; too few origins are repeated.

    Data sets: 99 other test pictures, by the seed. Gallery, uploads and OWN: crops of the gallery's other pictures of the same
    kind, always the same ones. Near-duplicates of the true picture never stand beside it.
    """
    shape = (truth.shape[1], truth.shape[2], truth.shape[3])
    pictures = (tuple(origins) * len(truth))[: len(truth)]
    pools = {kind: _pool(origins, kind, shape, seed) for kind in dict.fromkeys(map(_kind, pictures))}
    standing = [(kind, origin) for kind, (found, _) in pools.items() for origin in found]
    others = torch.cat([tensor for _, tensor in pools.values()])  # (P, C, H, W)
    competitors = torch.zeros(len(truth), len(others), dtype=torch.bool)
    for number, picture in enumerate(pictures):
        far = ((others - truth[number]).abs().mean((1, 2, 3)) >= NEAR).tolist()
        places = [place for place, (kind, origin) in enumerate(standing) if kind == _kind(picture) and origin != picture and far[place]]
        competitors[number, places[: SIZE - 1]] = True
    rngs = [generator(seed, "same class", number) for number in range(len(pictures))]
    likes = torch.stack([_like(p, int(y), x, rng) for p, y, x, rng in zip(pictures, labels, truth, rngs, strict=True)])
    return Lineup(others, competitors, likes, _words(pictures))


def _kind(origin: Origin) -> str:
    """Which pool stands beside it: a data set, or faces, digits or photographs of the gallery."""
    source, name = origin
    if source not in ("gallery", "upload", "own"):
        return source
    return name.split("-")[0] if source == "gallery" and name.split("-")[0] in KINDS else "photograph"


def _words(pictures: Sequence[Origin]) -> str:
    def one(kind: str) -> str:
        known = datasets()
        if kind in known:
            return f"{SIZE - 1} others of the first {REACH:,} {known[kind].title} test pictures, drawn by the seed"
        return f"{SIZE - 1} crops of {KINDS.get(kind, 'the other photographs')} in the gallery"

    return "; ".join(one(kind) for kind in dict.fromkeys(map(_kind, pictures)))


def _pool(origins: Sequence[Origin], kind: str, shape: Shape, seed: int) -> tuple[list[Origin], Tensor]:
    """Enough others of one kind for every private picture, with where each is from."""
    if kind not in datasets():
        return _crops(kind, shape)
    own = {name for source, name in origins if source == kind}
    items, (channels, size, _) = _first(kind), shape
    order = torch.randperm(len(items), generator=generator(seed, "lineup", kind)).tolist()
    chosen = [items[place] for place in order if items[place].id not in own][: SIZE + 9]  # a few to spare for near-duplicates
    return [(kind, item.id) for item in chosen], _tensor([read(kind, item.id, size, channels) for item in chosen])


def _first(source: str) -> list[Item]:
    return datasets()[source].items(0, REACH)


@lru_cache(maxsize=8)
def _crops(kind: str, shape: Shape) -> tuple[list[Origin], Tensor]:
    """Squares of the gallery's pictures of one kind, as many of each: the whole, then random crops and mirror images, always the same.

    Stretched to the shape; where it is neither grey nor colour, the grey picture stands in every channel.
    """
    count, height, width = shape
    channels = 3 if count == 3 else 1
    items = [item for item in gallery() if _kind(("gallery", item.id)) == kind]
    each = -(-(SIZE - 1) // (len(items) - 1))  # so that 99 remain without those of one item
    wholes = {item.id: Image.fromarray(read("gallery", item.id, SOURCE, channels).squeeze()) for item in items}
    rng = np.random.default_rng(0)
    origins, found = [], []
    for number in range(each):
        for id, whole in wholes.items():
            side = int(rng.integers(SOURCE // 2, SOURCE + 1)) if number else SOURCE
            left, top = (int(value) for value in rng.integers(0, SOURCE + 1 - side, 2))
            square = whole.crop((left, top, left + side, top + side)).resize((width, height), Image.Resampling.LANCZOS)
            square = square.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if number % 2 else square
            origins.append(("gallery", id))
            found.append(np.asarray(square).reshape(height, width, channels))
    return origins, _tensor(found).expand(-1, count, -1, -1)


def _like(origin: Origin, label: int, truth: Tensor, rng: torch.Generator) -> Tensor:
    """Another picture of the same class and source: (C, H, W); not a number where there is none."""
    if origin == OWN:
        return torch.full_like(truth, math.nan)
    channels, size, _ = truth.shape
    source = "gallery" if origin[0] == "upload" else origin[0]
    known = gallery() if source == "gallery" else _first(source)
    same = [item.id for item in known if item.label == label and item.id != origin[1]]
    for place in torch.randperm(len(same), generator=rng).tolist()[:9]:
        found = _tensor([read(source, same[place], size, channels)])[0]
        if (found - truth).abs().mean() >= NEAR:
            return found
    return torch.full_like(truth, math.nan)


def _tensor(pictures: list[Pixels]) -> Tensor:
    """uint8 (H, W, C) each, as float32 (N, C, H, W) in [0, 1]."""
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).contiguous().float() / 255
