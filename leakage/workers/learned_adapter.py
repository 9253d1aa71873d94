"""The trained network that an attack is handed: it fits the attacked weights, the protections that the attacker knows, and the batch."""

from dataclasses import asdict, replace

from leakage.data.datasets import TITLES
from leakage.data.inverters import ONE_GRADIENT, InverterCard, fitting, inverter_bytes, inverters, missing
from leakage.engine.core import Observation
from leakage.engine.federation import Federation
from leakage.engine.inverter import Inverter, Shape, weights_hash
from leakage.engine.weights import unpack

KNOWLEDGE = "what this model sends of pictures, behind {}: {:,} training pictures of {} taught a network to undo it"


def load_inverter(card: InverterCard, knowledge: str = "") -> Inverter:
    """Load the network that a card describes, trained to undo updates; `knowledge` is a sentence on what the network has learned.

    Raises:
        CheckpointError: the file is damaged, or of another network.
    """
    shape = Shape(card.entries, card.features, card.hidden, (card.batch, *card.image_shape), int(card.training["seed"]))
    return Inverter(shape, unpack(inverter_bytes(card), card.id), card.id, knowledge)


def with_learned(seen: Observation, setting: Federation) -> Observation:
    """Return an observation with the network that was trained to undo updates of this model and batch, or with the reason for its lack.

    The network was trained with the protections that the attacker knows: a naive attacker knows none.
    """
    if not setting.sends_only_one_gradient:
        return _given(seen, ONE_GRADIENT)
    protections = sorted(setting.protections, key=lambda protection: protection.index) if setting.adaptive else ()
    defenses = [{"id": protection.defense.id, "fields": asdict(protection.defense)} for protection in protections]
    cards, victim = list(inverters().values()), weights_hash(seen.received.weights)
    words = " and ".join(protection.defense.short or protection.defense.title for protection in protections) or "no protection"
    if card := fitting(cards, victim, defenses, seen.batch.size):
        return _given(seen, load_inverter(card, KNOWLEDGE.format(words, card.pictures, TITLES[card.data])))
    return _given(seen, missing([card for card in cards if card.victim == victim], cards, words, seen.batch.size))


def _given(seen: Observation, learned: Inverter | str) -> Observation:
    return replace(seen, granted=replace(seen.granted, learned=learned))
