"""Guesses without information on the private pictures, and copies with it, scored like the answer of an attack.

A card is one verdict on a batch. Guesses without information: noise, blurred noise, mean pictures, other pictures, and attacks' outputs on
these.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from zlib import crc32

import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor
from torch.nn import functional as F

from leakage.data.images import Pixels, find, gallery, read
from leakage.evaluation.baselines import Baselines, blurred_noise, make_baselines, measure
from leakage.evaluation.lineup import Origin
from leakage.evaluation.pairing import pair
from leakage.evaluation.verdict import unknown, verdict
from leakage.learn import grids, recordings
from leakage.learn.planned import plan, planned_grid

SAME = {  # what is cut out of one photograph
    **{id: "retina" for id in ("retina", "scan-0", "scan-1", "scan-2", "scan-3")},
    **{id: "tissue" for id in ("immunohistochemistry", "scan-4", "scan-5", "scan-6", "scan-7")},
}
NOISES, BLURS = (25, 20, 16, 13), (0.7, 1.0, 2.0)  # dB; pixels of 32
LUMA = torch.tensor([0.299, 0.587, 0.114])


@dataclass(frozen=True)
class Batch:
    """Private pictures x (B, C, H, W) of one source with their ids, and the baselines of their guesses."""

    source: str
    ids: tuple[str, ...]
    x: Tensor
    held: Baselines
    seed: int

    @property
    def name(self) -> str:
        """Source, pictures, channels and side."""
        count, channels, side, _ = self.x.shape
        return f"{self.source}, {count} x {'colour' if channels == 3 else 'grey'} {side} px"


def batch(source: str, ids: Sequence[str], *, channels: int, side: int, seed: int) -> Batch:
    """Return the Batch of these pictures with its baselines."""
    x = pictures(source, ids, channels=channels, side=side)
    labels = torch.tensor([find(source, id).label for id in ids])
    return Batch(source, tuple(ids), x, make_baselines([Origin(source, id) for id in ids], x, labels, seed=seed), seed)


def pictures(source: str, ids: Sequence[str], *, channels: int, side: int) -> Tensor:
    """Return the pictures (B, C, side, side) in [0, 1]."""
    return torch.stack([torch.from_numpy(read(source, id, side, channels)) for id in ids]).permute(0, 3, 1, 2).contiguous().float() / 255


def of_gallery() -> Iterator[tuple[str, tuple[str, ...], int, int]]:
    """Yield source, ids, channels and side of batches that need no data set."""
    mixed = tuple(item.id for item in gallery()[:8])
    families = [mixed, *(tuple(f"{name}-{number}" for number in range(8)) for name in ("face", "digit", "page"))]
    for channels in (3, 1):
        yield from (("gallery", family, channels, 32) for family in families)
        yield from (("gallery", (id,), channels, 32) for id in ("astronaut", "retina", "face-0", "digit-3", "page-1"))
    yield from (("gallery", ids, 1, 8) for ids in (mixed, ("astronaut",), ("digit-3",)))


def of_data_set(source: str, *, channels: int, side: int, batches: int, of: int = 2000) -> Iterator[tuple[str, tuple[str, ...], int, int]]:
    """Yield the same for random test pictures, in batches of 8 and of 1 in turn."""
    order = torch.randperm(of, generator=torch.Generator().manual_seed(crc32(source.encode()))).tolist()
    for number in range(batches):
        yield source, tuple(map(str, order[9 * number : 9 * number + (1 if number % 2 else 8)])), channels, side


# ---------------------------------------------------------------- guesses


def blind(own: Batch, number: int) -> Iterator[tuple[str, Tensor]]:
    """Yield kinds and guesses (B, C, H, W) without information on the private pictures; another `number` gives other guesses."""
    x, rng = own.x, torch.Generator().manual_seed(crc32(f"{own.name} {own.ids} {number}".encode()))
    uniform = torch.rand(4, generator=rng).tolist()
    yield "noise", torch.rand(x.shape, generator=rng)
    yield "noise", 0.5 + 0.25 * torch.randn(x.shape, generator=rng)
    for scale in (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2):
        level, contrast = 0.3 + 0.4 * uniform[0], 0.3 + 2 * uniform[1]
        yield "blurred noise", level + contrast * (blurred_noise(x.shape, scale, rng) - 0.5)
    yield (
        "blurred noise",
        F.interpolate(torch.rand((*x.shape[:2], 3, 3), generator=rng), size=x.shape[2:], mode="bilinear", align_corners=True),
    )
    mean = own.held.lineup.mean
    yield "mean pictures", mean if not number else mean + 0.15 * uniform[2] * torch.randn(x.shape, generator=rng)
    other = _others(own, rng)
    yield "other pictures", other
    yield "other pictures", _blur(other, 0.5 + 3 * uniform[3])
    yield "other pictures", other + 0.3 * uniform[2] * torch.randn(x.shape, generator=rng)
    for _ in range(2):
        yield "outputs on other pictures", _outputs_on_others(own, rng)


def copies(own: Batch) -> Iterator[tuple[str, Tensor]]:
    """Yield the name of a change, and the changed private pictures."""
    rng = torch.Generator().manual_seed(crc32(own.name.encode()))
    yield "exact", own.x
    for level in NOISES:
        yield f"noise at {level} dB", own.x + 10 ** (-level / 20) * torch.randn(own.x.shape, generator=rng)
    for sigma in BLURS:
        yield f"blurred by {sigma:g} of 32 px", _blur(own.x, sigma)


def _blur(x: Tensor, sigma: float) -> Tensor:
    sigma *= x.shape[2] / 32
    return torch.from_numpy(gaussian_filter(x.numpy(), (0, 0, sigma, sigma), mode="nearest"))


def _related(id: str) -> str:
    """Return the name that all parts of one photograph share."""
    return SAME.get(id, id)


def _others(own: Batch, rng: torch.Generator) -> Tensor:
    """Return other pictures of the same source, without the private photographs and persons."""
    count, channels, side, _ = own.x.shape
    if own.source == "gallery":
        private = {_related(id) for id in own.ids}
        spare = [item.id for item in gallery() if _related(item.id) not in private]
    else:
        labels = {find(own.source, id).label for id in own.ids} if own.source == "faces" else set()
        spare = [id for id in map(str, range(400)) if id not in own.ids and find(own.source, id).label not in labels]
    chosen = [spare[place] for place in torch.randperm(len(spare), generator=rng)[:count].tolist()]
    return pictures(own.source, chosen, channels=channels, side=side)


def _outputs_on_others(own: Batch, rng: torch.Generator) -> Tensor:
    """Return answers of recorded attacks on other pictures, in the shape of these pictures."""
    count, channels, side, _ = own.x.shape
    private = {_related(id) for id in own.ids} if own.source == "gallery" else set()
    known = [picture for id, picture in attack_outputs() if _related(id) not in private]
    chosen = torch.cat([_fitted(known[place], side) for place in torch.randperm(len(known), generator=rng)[:count].tolist()])
    return chosen if channels == 3 else (chosen * LUMA[:, None, None]).sum(1, keepdim=True)


def _fitted(picture: Tensor, side: int) -> Tensor:
    return F.interpolate(picture[None], size=(side, side), mode="bilinear", antialias=True, align_corners=False)


@cache
def attack_outputs() -> tuple[tuple[str, Tensor], ...]:
    """Return every answer of the recorded runs and grids: the id of the private picture, and the reconstruction (3, H, W)."""
    found = list[tuple[str, Tensor]]()
    for name in plan().runs:
        asked, rows = recordings.load(name).experiment, recordings.pictures_of(name)
        found += [(one.id, _tensor(picture)) for one, picture in zip(asked.pictures, rows[-1], strict=True)]
    for name in plan().grids:
        grid, planned = grids.load_grid(name), planned_grid(name)
        rows = recordings.rows_of((grids.FOLDER / f"{name}.webp").read_bytes(), grid.film.side, grid.film.batch)
        for cell in grid.cells:
            private = planned.experiment(cell.choice).pictures
            found += [(one.id, _tensor(picture)) for one, picture in zip(private, rows[cell.answer], strict=False)]
    return tuple(found)


def _tensor(picture: Pixels) -> Tensor:
    return torch.from_numpy(picture.copy()).permute(2, 0, 1).float() / 255


# ---------------------------------------------------------------- verdicts


@dataclass(frozen=True)
class Card:
    """A kind of guess, and the verdict on each picture.

    each     of an answer; with LPIPS where its network is there
    without  of an answer without LPIPS
    live     while an attack still runs
    """

    kind: str
    each: tuple[str, ...]
    without: tuple[str, ...]
    live: tuple[str, ...]


def judge(own: Batch, guesses: Sequence[tuple[str, Tensor]]) -> list[Card]:
    """Return one card for each guess; their line-ups are computed together."""
    clamped = [guess.clamp(0, 1) for _, guess in guesses]
    paired = torch.cat([guess[pair(guess, own.x)] for guess in clamped])
    lineup, times, count = own.held.lineup, len(guesses), len(own.x)
    beside = replace(lineup, competitors=lineup.competitors.repeat(times, 1))
    found = measure(paired, own.x.repeat(times, 1, 1, 1), beside, own.held.perceptual)
    cards = []
    for number, (kind, _) in enumerate(guesses):
        one = {name: value[number * count : (number + 1) * count] for name, value in found.items()}
        none = unknown(one["lpips"])
        without = {name: value for name, value in one.items() if name != "rank_lpips"} | {"lpips": none}
        live = {name: one[name] for name in ("psnr", "ssim", "rank_pixel")} | {"lpips": none}
        cards.append(Card(kind, *(verdict(scores, own.held.reference)["each"] for scores in (one, without, live))))
    return cards
