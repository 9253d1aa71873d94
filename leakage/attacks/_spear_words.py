"""The sentences in which SPEAR says how far its answer is proved, or why it has no answer."""

import math

from leakage.attacks._certificate import PROVED, BatchDirections, Layer, Proof
from leakage.engine.core import Observation

SILENT = "No gradient passes through {} (dead units, or nothing left to learn): there is nothing to take apart."
TOO_MANY = (
    "A batch is taken apart only while it has fewer pictures than the layer has units and inputs: here {} pictures meet {} units and {} "
    "inputs. Choose fewer pictures, or a wider network."
)
PROVED_ALL = (
    "Proved, without the truth: {} of the units of {} are on or off just as {} would have them (lambda; random: a half), and the update "
    "of these pictures, replayed, is the one received."
)
AGREED = "{} of the units of {} are on or off just as {} would have them (lambda; random: a half)."
OTHER_UPDATE = (
    "Not proved: the update of these pictures, replayed, is {:.2g} % away from the one received, and rounding and noise allow {:.1g} %."
)
SOME = "{} of {} pictures are proved: at least {} of the units agree with each. Over all it is {} (lambda; random: a half)."
MISSING = (
    "Not proved: {} of {} pictures were found, with which {} of the units agree (lambda; random: a half). Parts of others may be in them."
)
NEAR = "Not proved: {} of the units agree with these pictures (lambda; random: a half). Noise or rounding has moved them."
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


def percent(fraction: float) -> str:
    """Format a fraction as a percentage, rounded down so that only 1 becomes "all".

    >>> percent(1), percent(0.99998)
    ('all', '99.99 %')
    """
    return "all" if fraction == 1 else f"{math.floor(10_000 * fraction) / 100:g} %"


def counted(number: int) -> str:
    """Return a number of pictures as a phrase: "1 picture" or "3 pictures"."""
    return "1 picture" if number == 1 else f"{number} pictures"


def verdict(seen: Observation, name: str, layer: Layer, now: BatchDirections, proof: Proof | None, *, raw: bool = False) -> str:
    """Return sentences that say how far the attack's answer is proved.

    Args:
        seen: what the attacker observed.
        name: the name of the layer.
        layer: the layer with the spectrum of its gradient.
        now: the directions that the search has chosen.
        proof: the proof of the pictures; None if features were found, as nothing proves a picture then.
        raw: whether pixels enter the layer as they are.
    """
    rank, full, count = layer.cut.rank, layer.cut.full, seen.batch.size
    shown, fraction = int(now.believed.sum()), percent(now.mean)
    sentences = []
    if not shown:
        sentences.append(NO_PICTURE + (FULL.format(full, counted(count), count) if full > count else RANK.format(rank, counted(count))))
    elif not now.whole:
        sentences.append(MISSING.format(shown, rank, fraction))
    elif proof is None:
        sentences.append(sentence_of(AGREED.format(fraction, name, counted(rank))))
    elif proof.agreed and not proof.replayed:
        sentences.append(
            OTHER_UPDATE.format(100 * proof.distance, 100 * proof.allowed) + " " + sentence_of(AGREED.format(fraction, name, counted(rank)))
        )
    elif proof.proved == rank:
        sentences.append(PROVED_ALL.format(fraction, name, counted(rank)))
    else:
        sentences.append(SOME.format(proof.proved, rank, percent(PROVED), fraction) if proof.proved else NEAR.format(fraction))
    if rank < count and shown:
        sentences.append(HIDDEN.format(rank, count) if full > count else FEWER.format(counted(rank), count))
    if raw and proof and proof.proved < rank:
        sentences.append(RAW)
    if proof is None and shown:
        sentences.append(FEATURES.format(name, counted(shown), f"{layer.cut.right.shape[1]:,}"))
    return " ".join(sentences)


def sentence_of(text: str) -> str:
    """Return the text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]
