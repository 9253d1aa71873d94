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
LABELS = "card.json has {} labels, and {}. Give one label for each picture."
ONE = "The number of pictures is unknown: 1 is assumed. If there were more, answers mix them."
NO_RATE = "The local learning rate is unknown, so attackers cannot imitate the local steps."
NO_STEPS = "The number of local steps is unknown, so attackers cannot imitate them."
AS_GRADIENT = "They take the difference for a gradient."
GUESSED = "Guessed: {}."
ASSUMED = "Assumed, since the card does not say it: {}."
MINI_BATCH = "Assumed too: {} in each mini-batch."
NO_AUGMENTATION = "Assumed too: no augmentation and no dropout."
SAME_ORDER = "Assumed too: the pictures in the same, known order in each epoch, no augmentation and no dropout."
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
    steps, rate = card.steps.value or card.epochs.value or 1, card.rate.value or 1.0
    naive = plugin("fedavg", epochs=min(steps, 100), rate=min(rate, 1.0))  # searches that compare directions need neither number
    found = [CardClient(NAIVE, {**common, "protocol": naive, "adaptive": False}, client.sent)]
    training, _ = _training(card)
    if training is not None:
        found.insert(0, CardClient(ADAPTIVE, {**common, "protocol": training, "adaptive": True}, client.sent))
    return found


def assumptions_of(client: RecordedClient) -> Iterator[str]:
    """Yield what is assumed of a client, as sentences: what its card guesses or leaves open, and what follows from that."""
    card = client.card
    if card.pictures.value is None:
        yield ONE
    if not client.is_gradient:
        training, why = _training(card)
        if training is None:
            yield f"{why} {AS_GRADIENT}"
        elif card.protocol.value is None:
            silent = [f"{name.replace('_', ' ')} {value}" for name, value in _silent(card).items()]
            if silent:
                yield ASSUMED.format(", ".join(silent))
            taken = training.mini_batch or pictures_of(card)
            if card.mini_batch.value is None and pictures_of(card) > 1:
                yield MINI_BATCH.format(counted(taken, "picture"))
            yield SAME_ORDER if taken < pictures_of(card) else NO_AUGMENTATION
    guessed = [f"{name.replace('_', ' ')} {_in_words(entry.value)}" for name, entry in card.entries() if entry.state == "guessed"]
    if guessed:
        yield GUESSED.format(", ".join(guessed))


def pictures_of(card: UpdateCard) -> int:
    """Return how many pictures are behind an update; 1 where the card does not say."""
    return card.pictures.value or 1


def input_of(card: UpdateCard) -> tuple[int, int, int]:
    """Return the shape (C, H, W) of a picture. Raises UpdateFileError where the card does not say it."""
    if card.input.value is None:
        raise UpdateFileError(NO_INPUT)
    return card.input.value


def _training(card: UpdateCard) -> tuple[Any, str]:
    """Return the protocol of the client's local training; None where attackers cannot imitate it, and then why."""
    if card.protocol.value is not None:
        return plugin(card.protocol.value.id, **card.protocol.value.fields), ""
    known = {**_silent(card), **{name: entry.value for name, entry in card.entries() if entry.value is not None}}
    if "rate" not in known:
        return None, NO_RATE
    if "steps" not in known and "epochs" not in known:
        return None, NO_STEPS
    pictures, accumulation = pictures_of(card), known["accumulation"]
    epochs = known.get("epochs")
    mini_batch = known.get("mini_batch", 0)
    if epochs and "steps" in known and not mini_batch:  # as many steps in each epoch as were counted
        mini_batch = -(-pictures // max(1, round(known["steps"] * accumulation / epochs)))
    if not epochs:
        epochs = max(1, round(known["steps"] / -(-pictures // (min(mini_batch * accumulation, pictures) or pictures))))
    fields = {"epochs": epochs, "mini_batch": 0 if mini_batch >= pictures else mini_batch, "rate": known["rate"]}
    plain = known["optimizer"] == "SGD" and not known["weight_decay"] and accumulation == 1
    more = {} if plain else {"optimizer": known["optimizer"], "weight_decay": float(known["weight_decay"]), "accumulation": accumulation}
    try:
        return plugin("fedavg" if plain else "fedavg_optimizer", **fields, **more, momentum=float(known.get("momentum", 0))), ""
    except (TypeError, ValueError) as error:
        return None, f"The local training on the card cannot be imitated: {error}"


def _silent(card: UpdateCard) -> dict[str, Any]:
    """Return what is assumed of the settings of the training of which the card says nothing."""
    optimizer = card.optimizer.value or "SGD"
    usual: dict[str, Any] = {"optimizer": "SGD", "weight_decay": 0, "accumulation": 1}
    if not optimizer.startswith("Adam"):
        usual["momentum"] = 0.9 if "Nesterov" in optimizer else 0
    return {name: value for name, value in usual.items() if getattr(card, name).value is None}


def _statistics_mode(card: UpdateCard) -> dict[str, str]:
    return {} if card.batch_norm.value is None else {"batch_norm": card.batch_norm.value}


def _normalization(card: UpdateCard) -> dict[str, Any]:
    return {} if card.normalization.value is None else {"normalization": card.normalization.value}


def _in_words(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)
