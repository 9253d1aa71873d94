"""What SPEAR says of its own answer, and why it has none."""

import math

from leakage.attacks._certificate import PROVED, BatchDirections, Layer
from leakage.attacks._relu_layer import ReluLayer
from leakage.engine.core import Observation

SILENT = "No gradient passes through {} (dead units, or nothing left to learn): there is nothing to take apart."
TOO_MANY = (
    "A batch is taken apart only while it has fewer pictures than the layer has units and inputs: here {} pictures meet {} units and {} "
    "inputs. Choose fewer pictures, or a wider network."
)
PROVED_ALL = "Proved, without the truth: {} of the units of {} are on or off just as {} would have them (lambda; chance is a half)."
SOME = "{} of {} pictures are proved: at least {} of the units agree with each. Over all it is {} (lambda; chance is a half)."
MISSING = (
    "Not proved: {} of {} pictures were found, with which {} of the units agree (lambda; chance is a half). Parts of others may be in them."
)
NEAR = "Not proved: {} of the units agree with these pictures (lambda; chance is a half). Noise or rounding has moved them."
NO_PICTURE = "None found: in no direction is this gradient zero as often as ReLU would make it, so no picture is shown. "
FULL = "It has rank {}, where {} would leave {}: a protection or rounding has filled it."
RANK = "Its rank is {}, for {}."
HIDDEN = "Noise hides how many pictures there are: {} singular values stand out of it, and {} were in the batch."
FEWER = "This gradient speaks of {}, and {} were in the batch: equal ones count once. Nothing is invented for the other places."
NOTHING = "No singular value of this gradient stands out of its noise, so nothing can be taken apart."
RAW = (
    "The pixels enter this network as they are, from 0 to 1. So a unit is on for nearly all pictures or for none, and few zeros tell them "
    "apart: what all pictures have in common, their mean, protects. A wider network, or one that normalizes its input, gives more away."
)
FEATURES = "What enters {} was found for {}: {} numbers of each, no pixels. Now pictures are searched that have these features."


def percent(share: float) -> str:
    """A share in words: never more than it is, as 99.98 % are not all."""
    return "all" if share == 1 else f"{math.floor(10_000 * share) / 100:g} %"


def counted(number: int) -> str:
    """So many pictures, in words."""
    return "1 picture" if number == 1 else f"{number} pictures"


def verdict(seen: Observation, place: ReluLayer, layer: Layer, now: BatchDirections) -> str:
    """What the attack says of its own answer."""
    rank, full, count = layer.cut.rank, layer.cut.full, seen.batch_size
    believed, share = int(now.believed.sum()), percent(now.mean)
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
