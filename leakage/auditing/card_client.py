"""The client that a card describes, as arguments of an attack: its protocol, its protections, and what attackers know of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leakage.api.plugins import plugin
from leakage.auditing.recorded_client import RecordedClient
from leakage.data.errors import UpdateFileError
from leakage.engine.core import Params
from leakage.spec.update_card import UpdateCard
from leakage.spec.words import counted

NO_INPUT = "card.json does not say the shape of a picture. Add input, for example [3, 32, 32]."
NO_SHAPE = "card.json says that a picture has the shape {}, with which the network cannot compute ({}). Correct input."
LABELS = "card.json has {} labels, and {}. Give one label for each picture."
ONE = "The number of pictures is unknown: 1 is assumed. If there were more, answers mix them."
NO_RATE = "The local learning rate is unknown, so attackers cannot imitate the local steps. They take the difference for a gradient."
NO_STEPS = "The number of local steps is unknown, so attackers cannot imitate them. They take the difference for a gradient."
GUESSED = "Guessed: {}."
UNKNOWN = "Unknown: {}."
ASSUMED = {"optimizer": "SGD", "momentum": 0, "weight_decay": 0, "accumulation": 1}  # of a client whose card is silent
NAIVE, ADAPTIVE = "naive", "adaptive"


@dataclass(frozen=True, eq=False)
class CardClient:
    """A client as an attacker assumes it."""

    title: str
    """"naive", "adaptive", or "" for the only attacker of a gradient."""
    arguments: Mapping[str, Any]
    """The keyword arguments of an attack on the update, or on planted pictures, that describe the client."""
    update: Params
    """What the client sent, as its protocol sends it."""


def card_clients(client: RecordedClient) -> list[CardClient]:
    """Return what the attackers of an update assume of its client: the adaptive attacker first, where the card says enough for it.

    Args:
        client: the recorded client.

    Raises:
        UpdateFileError: the card does not have a label for each picture.
        ValueError: a protection of the card has fields that are not allowed.
    """
    card = client.card
    if card.labels.value is not None and len(card.labels.value) != pictures_of(card):
        raise UpdateFileError(LABELS.format(len(card.labels.value), counted(pictures_of(card), "picture")))
    defenses = [plugin(part.id, **part.fields) for part in card.protections]
    common = {"defenses": defenses, **_statistics_mode(card), **_normalization(card)}
    if client.is_gradient:
        both = [(ADAPTIVE, True), (NAIVE, False)] if defenses else [("", True)]
        return [CardClient(title, {**common, "protocol": "fedsgd", "adaptive": adaptive}, client.sent) for title, adaptive in both]
    if card.protocol.value is not None:
        named = plugin(card.protocol.value.id, **card.protocol.value.fields)
        return [CardClient(title, {**common, "protocol": named, "adaptive": title == ADAPTIVE}, client.sent) for title in (ADAPTIVE, NAIVE)]
    steps, rate = card.steps.value or card.epochs.value, card.rate.value
    naive = plugin("fedavg", epochs=min(steps or 1, 100), rate=min(rate or 1.0, 1.0))
    found = [CardClient(NAIVE, {**common, "protocol": naive, "adaptive": False}, client.sent)]
    if steps and rate:
        found.insert(0, CardClient(ADAPTIVE, {**common, "protocol": _training(card), "adaptive": True}, client.sent))
    return found


def assumptions_of(client: RecordedClient) -> Iterator[str]:
    """Yield what is assumed of a client, as sentences: what its card guesses or leaves open, and what follows from that."""
    card = client.card
    if card.pictures.value is None:
        yield ONE
    trains = not client.is_gradient and card.protocol.value is None
    if trains and card.rate.value is None:
        yield NO_RATE
    elif trains and not (card.steps.value or card.epochs.value):
        yield NO_STEPS
    guessed = [f"{name} {_in_words(entry.value)}" for name, entry in card.entries() if entry.state == "guessed"]
    if guessed:
        yield GUESSED.format(", ".join(guessed))
    silent = {name: value for name, value in ASSUMED.items() if getattr(card, name).value is None and trains}
    if silent:
        yield UNKNOWN.format(", ".join(f"{name.replace('_', ' ')} ({value} assumed)" for name, value in silent.items()))


def pictures_of(card: UpdateCard) -> int:
    """Return how many pictures are behind an update; 1 where the card does not say."""
    return card.pictures.value or 1


def input_of(card: UpdateCard) -> tuple[int, int, int]:
    """Return the shape (C, H, W) of a picture. Raises UpdateFileError where the card does not say it."""
    if card.input.value is None:
        raise UpdateFileError(NO_INPUT)
    return card.input.value


def _training(card: UpdateCard) -> Any:
    """Return the protocol of the client's local training."""
    known = {name: entry.value for name, entry in card.entries() if entry.value is not None}
    known = {**ASSUMED, **known}
    pictures, mini_batch = pictures_of(card), known.get("mini_batch", 0)
    of_a_step = min(mini_batch * known["accumulation"], pictures) or pictures
    in_an_epoch = -(-pictures // of_a_step)
    epochs = known.get("epochs") or max(1, round(known["steps"] / in_an_epoch))
    fields = {"epochs": epochs, "mini_batch": 0 if mini_batch >= pictures else mini_batch, "rate": known["rate"]}
    if known["optimizer"] == "SGD" and not known["weight_decay"] and known["accumulation"] == 1:
        return plugin("fedavg", **fields, momentum=float(known["momentum"]))
    momentum = 0.0 if known["optimizer"].startswith("Adam") else float(known["momentum"])
    more = {"weight_decay": float(known["weight_decay"]), "accumulation": known["accumulation"]}
    return plugin("fedavg_optimizer", **fields, **more, optimizer=known["optimizer"], momentum=momentum)


def _statistics_mode(card: UpdateCard) -> dict[str, str]:
    return {} if card.batch_norm.value is None else {"batch_norm": card.batch_norm.value}


def _normalization(card: UpdateCard) -> dict[str, Any]:
    return {} if card.normalization.value is None else {"normalization": card.normalization.value}


def _in_words(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)
