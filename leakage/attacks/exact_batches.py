"""SPEAR: a whole batch from one gradient, exactly, and the attack knows by itself whether it was right."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.attacks._certificate import PROVED, Layer, exchanged, independent
from leakage.attacks._dense import exact, received
from leakage.attacks._features import pictures_of
from leakage.attacks._labels import said_of
from leakage.attacks._plots import SIDE, columns, logarithmic
from leakage.attacks._relu_layer import ReluLayer, relu_layer
from leakage.attacks._spear import Spectrum, descend, sample, spectrum
from leakage.attacks.linear_layer import as_pictures, in_pixels, snapshot_of
from leakage.engine.core import Attack, Observation, Snapshot, choice, param
from leakage.engine.labels import recover

SEARCHES = {"descent": descend, "samples": sample}
IDLE = 4  # so many rounds in a row find no other direction: the search is over
BELIEVED = 0.75  # a picture is shown where so large a share of the units agrees with it
DECADES, BINS = 9, 32  # of the drawings

SILENT = "No gradient passes through {} (dead units, or nothing left to learn): there is nothing to take apart."
TOO_MANY = (
    "A batch is taken apart only while it has fewer pictures than the layer has units and inputs: here {} pictures meet {} units and {} "
    "inputs. Choose fewer pictures, or a wider network."
)
PROVED_ALL = "Proved, without the truth: {} of the units of {} are on or off just as {} would have them (lambda; chance is a half)."
SOME = "{} of {} pictures are proved: at least {} of the units agree with each. Over all it is {} (lambda; chance is a half)."
MISSING = "Not proved: {} of {} pictures were found, with which {} of the units agree (lambda; chance is a half). Parts of others may be in them."
NEAR = "Not proved: {} of the units agree with these pictures (lambda; chance is a half). Noise or rounding has moved them."
NO_PICTURE = "None found: in no direction is this gradient zero as often as ReLU would make it, so no picture is shown. "
FULL = "It has rank {}, where {} would leave {}: a protection or rounding has filled it."
RANK = "Its rank is {}, for {}."
HIDDEN = "Noise hides how many pictures there are: {} singular values stand out of it, and {} were in the batch."
FEWER = "This gradient speaks of {}, and {} were in the batch: equal ones count once. Nothing is invented for the other places."
NOTHING = "No singular value of this gradient stands out of its noise, so nothing can be taken apart."
RAW = (
    "The pixels enter this network as they are, from 0 to 1. So a unit is on for nearly all pictures or for none, and few zeros tell them "
    "apart: what all pictures have in common, their mean, protects. A network that normalizes its input gives more away."
)
FEATURES = "What enters {} was found for {} pictures: {} numbers of each, no pixels. Now pictures are searched that have these features."


@dataclass(frozen=True)
class Progress:
    """Where the search stands: directions q (rank, K), and lambda of each (K,)."""

    q: Tensor
    agreement: Tensor

    @property
    def whole(self) -> bool:
        """Whether there is a direction for every picture."""
        return len(self.q) == self.q.shape[1]

    @property
    def proved(self) -> int:
        """How many pictures are proved: none as long as one is missing, for it may be in all others."""
        return int((self.agreement >= PROVED).sum()) if self.whole else 0


@dataclass(frozen=True, kw_only=True)
class ExactBatches(Attack):
    """G = dL/dW = D X: the columns of D, zero wherever ReLU was off for a picture, are the sparse directions of G's column space.

    Of B pictures, fewer than units and inputs, G has rank B: so many singular values stand out. G = U S V^T and D = U Q; the columns of Q
    are the directions q for which U q has the most zeros (`attacks/_spear.py`). The bias's gradient D 1 gives their scales, and X = D^+ G.
    Without any truth lambda says whether that is right: the share of units with (W x_i + b)_j > 0 exactly where D_ji is not 0, which by
    chance is about a half (`attacks/_certificate.py`). No label, no prior. What counts as zero follows the noise in the smaller singular
    values. The sum over several phones has the form D X again: it is one larger batch, and which phone a picture was on stays hidden.
    Where the layer is not the first, X are features: pictures are searched that have them, by 1 - cosine and total variation.
    Unlike the paper: descent on the sphere in place of samples by default; a cut of the singular values that stands noise (Gavish and
    Donoho 2014); candidates exchanged by lambda; features of later layers.
    Source: Dimitrov, Baader, Mueller and Vechev 2024.
    """

    title = "Solve a whole batch by its zeros (SPEAR)"
    short = "SPEAR"
    plain = "Takes a whole batch of pictures apart, exactly, by the units that each picture leaves switched off."
    hint = "Needs a fully connected layer with ReLU: the MLP, best with a normalised input. It says by itself whether it was right."
    source = "https://arxiv.org/abs/2403.03945"
    way = "Split the gradient into pictures by its zeros."
    evaluations_per_step = 300
    loss_name = "squared relative gradient distance"
    reads_labels = True
    strongest = {}
    fits = {"model": ("mlp",)}
    presets = {"As published (Dimitrov et al. 2024)": {"search": "samples"}}

    search: str = choice("descent", tuple(SEARCHES), "How zeros are looked for: by descent, or by samples as published (up to 10 pictures).")
    feature_steps: int = param(300, 1, 2000, "Where only features of the pictures are found: steps of the search for the pictures.")

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        try:
            place = relu_layer(seen)
            layer = layer_of(seen, place)
        except ValueError as error:
            yield replace(shown(seen, torch.empty(0)), note={"event": str(error)})
            return
        note: dict[str, str | int | float] = {"read from": place.name, "rank": layer.cut.rank}
        yield replace(shown(seen, torch.empty(0)), step=0, note=note, views=spectrum_view(layer.cut))
        step, now = 0, Progress(layer.cut.left.new_zeros(layer.cut.rank, 0), torch.zeros(0))
        for step, now in enumerate(self._search(layer, rng), 1):
            if place.direct:
                yield replace(shown(seen, self._pictures(seen, layer, now)), step=step, note=note | lambda_of(now))
        note |= lambda_of(now) | {"event": verdict(seen, place, layer, now)}
        views = zeros_view(layer.cut, now.q) if now.q.shape[1] else {}
        if place.direct:
            yield replace(shown(seen, self._pictures(seen, layer, now)), step=step + 1, note=note, views=views)
            return
        yield replace(shown(seen, torch.empty(0)), step=step + 1, note=note, views=views)
        believed = layer.inputs(now.q)[now.agreement >= BELIEVED]
        if len(believed):
            labels = recover(seen).labels
            for last in pictures_of(seen, place.name, believed, labels, steps=self.feature_steps, rng=rng):
                yield replace(last, step=step + 1 + last.step, note={k: v for k, v in note.items() if k != "event"})

    def _search(self, layer: Layer, rng: torch.Generator) -> Iterator[Progress]:
        """Every round's directions, until the batch is proved or nothing new is found."""
        idle, before, now = 0, layer.cut.left.new_zeros(layer.cut.rank, 0), None
        for found in SEARCHES[self.search](layer.cut, rng):
            idle = idle + 1 if torch.equal(found, before) else 0
            before = found
            if now is None or idle < 2:
                places = independent(found)
                if idle and len(places) == layer.cut.rank:
                    places = exchanged(layer, found, places)
                now = Progress(found[:, places], layer.agreement(found[:, places]))
            yield now
            if now.whole and (now.proved == layer.cut.rank or idle >= IDLE):
                return

    def _pictures(self, seen: Observation, layer: Layer, now: Progress) -> Tensor:
        """The pictures that are believed, (P, n) in pixels."""
        return in_pixels(seen, layer.inputs(now.q)[now.agreement >= BELIEVED])


def layer_of(seen: Observation, place: ReluLayer) -> Layer:
    """The layer with its gradient taken apart. Raises ValueError, with a sentence, where that cannot be done."""
    gradient = seen.as_gradient()
    slopes = received(gradient, f"{place.name}.weight")
    if not slopes.any():
        raise ValueError(SILENT.format(place.name))
    if seen.batch_size >= min(slopes.shape):
        raise ValueError(TOO_MANY.format(seen.batch_size, *slopes.shape))
    cut = spectrum(slopes, seen.batch_size)
    if not cut.rank:
        raise ValueError(NOTHING)
    return Layer(exact(seen.weights[f"{place.name}.weight"]), exact(seen.weights[f"{place.name}.bias"]), received(gradient, f"{place.name}.bias"), cut)


def shown(seen: Observation, pixels: Tensor) -> Snapshot:
    """Pictures (P, n) with the labels that they were sent with; the other places of the batch are grey, with the label 0."""
    grey = torch.full((seen.batch_size - len(pixels), *seen.image_shape), 0.5, device=seen.device, dtype=seen.dtype)
    labels = torch.zeros(seen.batch_size, dtype=torch.long, device=seen.device)
    if not len(pixels):
        return snapshot_of(seen, grey, labels)
    x = as_pictures(seen, pixels)
    labels[: len(x)] = said_of(seen, x).argmax(1).to(labels)
    return snapshot_of(seen, torch.cat([x, grey]), labels)


def lambda_of(now: Progress) -> dict[str, str | int | float]:
    """For the page: the attack's own verdict."""
    return {"lambda": float(now.agreement.mean()) if len(now.agreement) else 0.0, "proved": now.proved}


def percent(share: float) -> str:
    """A share in words: never more than it is, as 99.98 % are not all."""
    return "all" if share == 1 else f"{math.floor(10_000 * share) / 100:g} %"


def counted(number: int) -> str:
    """So many pictures, in words."""
    return "1 picture" if number == 1 else f"{number} pictures"


def verdict(seen: Observation, place: ReluLayer, layer: Layer, now: Progress) -> str:
    """What the attack says of its own answer."""
    rank, full, count = layer.cut.rank, layer.cut.full, seen.batch_size
    believed = int((now.agreement >= BELIEVED).sum())
    share = percent(float(now.agreement.mean()) if len(now.agreement) else 0.0)
    told = []
    if not believed:
        told.append(NO_PICTURE + (FULL.format(full, counted(count), count) if full > count else RANK.format(rank, counted(count))))
    elif now.proved == rank:
        told.append(PROVED_ALL.format(share, place.name, counted(rank)))
    elif not now.whole:
        told.append(MISSING.format(believed, rank, share))
    else:
        told.append(SOME.format(now.proved, rank, percent(PROVED), share) if now.proved else NEAR.format(share))
    if rank < count and believed:
        told.append(HIDDEN.format(rank, count) if full > count else FEWER.format(counted(rank), count))
    mean, std = seen.scale
    if now.proved < rank and place.direct and bool((mean == 0).all() and (std == 1).all()):
        told.append(RAW)
    if not place.direct and believed:
        told.append(FEATURES.format(place.name, counted(believed), f"{layer.cut.right.shape[1]:,}"))
    return " ".join(told)


def spectrum_view(cut: Spectrum) -> dict[str, Tensor]:
    """The singular values as columns, those of pictures marked."""
    some = cut.values[: max(3 * cut.rank, SIDE // 3)]
    name = f"Singular values, over {DECADES} decades: {cut.rank} stand out, as many as pictures"
    return {name: columns(logarithmic(some, DECADES), torch.arange(len(some)) < cut.rank)}


def zeros_view(cut: Spectrum, q: Tensor) -> dict[str, Tensor]:
    """How large the entries of D are, from zeros at the left, which are marked, to the largest: a histogram over decades."""
    entries, zero = cut.left @ q, cut.zeros(q)
    place = ((BINS - 1) * logarithmic(entries.abs().flatten(), DECADES)).round().long()
    place[zero.flatten()] = 0
    counts = torch.bincount(place, minlength=BINS).double()
    name = f"Entries of the pictures' gradients by size: {float(zero.double().mean()):.0%} are zero (left), where ReLU was off"
    return {name: columns(counts / counts.max(), torch.arange(BINS) == 0)}
