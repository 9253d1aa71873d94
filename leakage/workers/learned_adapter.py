"""The network, trained beforehand, that fits what an attacker faces: the very weights, the protections that it knows, the batch."""

from dataclasses import asdict, replace

from leakage.data.datasets import TITLES
from leakage.data.inverters import ONE_GRADIENT, InverterCard, fitting, inverter_bytes, inverters, missing
from leakage.engine.core import Observation
from leakage.engine.federation import Federation
from leakage.engine.inverter import Inverter, Shape, weights_hash
from leakage.engine.weights import unpack

KNOWLEDGE = "what this model sends of pictures, behind {}: {:,} training pictures of {} taught a network to undo it"


def load_inverter(card: InverterCard, knowledge: str = "") -> Inverter:
    """Load the network of a card, with a sentence on what it has learned.

    Raises CheckpointError with a sentence where its file is damaged or of another network.
    """
    shape = Shape(card.entries, card.features, card.hidden, (card.batch, *card.image_shape), int(card.training["seed"]))
    return Inverter(shape, unpack(inverter_bytes(card), card.id), card.id, knowledge)


def with_learned(seen: Observation, setting: Federation) -> Observation:
    """Add to an observation the network trained behind the protections that the attacker knows (naive: none), or why none fits."""
    if not setting.sends_one_gradient:
        return _given(seen, ONE_GRADIENT)
    acting = sorted(setting.protections, key=lambda own: own.index) if setting.adaptive else ()
    behind = [{"id": own.defense.id, "fields": asdict(own.defense)} for own in acting]
    known, victim = list(inverters().values()), weights_hash(seen.received.weights)
    words = " and ".join(own.defense.short or own.defense.title for own in acting) or "no protection"
    if card := fitting(known, victim, behind, seen.batch.size):
        return _given(seen, load_inverter(card, KNOWLEDGE.format(words, card.pictures, TITLES[card.data])))
    return _given(seen, missing([card for card in known if card.victim == victim], known, words, seen.batch.size))


def _given(seen: Observation, learned: Inverter | str) -> Observation:
    return replace(seen, granted=replace(seen.granted, learned=learned))
