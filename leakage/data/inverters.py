"""Trained attackers: networks that reconstruct pictures from an update. Each is a folder with a card and a safetensors file. No torch.

Shipped networks are in assets/inverters, networks trained on this machine in LEAKAGE_HOME/inverters. The folder's name is the network's id.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from leakage.data.cards import read_card, verified_bytes
from leakage.data.errors import CheckpointError
from leakage.settings import ROOT, settings

SHIPPED_INVERTERS = ROOT / "assets" / "inverters"
WEIGHTS = "weights.safetensors"
ONE_GRADIENT = (
    "A trained attacker needs a single gradient of one phone, but these settings send something else. "
    "Choose FedSGD, one round and no sum over phones."
)


@dataclass(frozen=True)
class InverterCard:
    """The card of a trained attacker, a network that computes pictures from an update: what it was trained for, and its error.

    It works only for updates of one model, with exactly the weights that it was trained for.
    """

    id: str
    folder: Path
    victim: str
    """Hash of the weights of the attacked model."""
    model: dict[str, Any]
    """Id and fields of the attacked model, as in an experiment."""
    checkpoint: str
    """The attacked model's training, such as "lenet@10"; empty if it is untrained."""
    seed: int
    """Random seed of the attacked model's initial weights."""
    data: str
    """Name of the data set of the training pictures."""
    image_shape: tuple[int, int, int]
    """Shape (C, H, W) of a picture."""
    num_classes: int
    defenses: tuple[dict[str, Any], ...]
    """Id and fields of each protection, in order; empty if there is none."""
    batch: int
    """Number of pictures in an update."""
    entries: int
    """Number of entries of an update."""
    features: int
    """Number of random projections of an update, which are the network's input."""
    hidden: int
    """Width of the network's hidden layer."""
    training: dict[str, Any]
    """The task of the training, with all settings."""
    pictures: int
    """Number of training pictures."""
    held_out: int
    """Number of test pictures on which the errors were measured."""
    mse: float
    """Mean squared error of the reconstructed pictures, for pixels in [0, 1]."""
    mse_mean: float
    """Mean squared error of the mean training picture, for comparison."""
    mse_of_class: tuple[float, ...]
    """Mean squared error by class; -1 for a class without test pictures."""
    seconds: float
    """Duration of the training."""
    commit: str
    torch: str
    """Version of torch."""
    sha256: str
    """Hash of the file with the network's weights."""

    @property
    def words(self) -> str:
        """The model and the protections that the trained attacker was trained for, as an item of a list on a page."""
        behind = " and ".join(part["id"].replace("_", " ") for part in self.defenses) or "no protection"
        trained = f"trained ({self.checkpoint})" if self.checkpoint else f"untrained, seed {self.seed}"
        many = f", {self.batch} pictures" if self.batch > 1 else ""
        return f"{self.model['id']} ({trained}) behind {behind}{many}"


CARD = TypeAdapter(InverterCard)


def inverters() -> dict[str, InverterCard]:
    """Return the card of every trained attacker (a network that computes pictures from an update) by id, without damaged cards.

    An attacker that ships with the package replaces one that was trained on this machine and has the same id.
    """
    cards: dict[str, InverterCard] = {}
    for folder in (SHIPPED_INVERTERS, settings().home / "inverters"):
        for path in sorted(folder.glob("*/card.json")):
            with suppress(CheckpointError):
                cards.setdefault(path.parent.name, read_inverter(path))
    return cards


def inverters_digest() -> str:
    """Return a hash of the weights of all trained attackers on this machine, under which results are stored.

    Results that were computed with other trained attackers must not be reused.
    """
    return sha256("".join(sorted(card.sha256 for card in inverters().values())).encode()).hexdigest()[:12]


def inverter_folder(name: str) -> Path:
    """Return the folder in which this machine stores the trained attacker `name`, a network that computes pictures from an update."""
    return settings().home / "inverters" / name


def read_inverter(path: Path) -> InverterCard:
    """Read the card of a trained attacker from its card.json. Raises CheckpointError if the file is missing or damaged."""
    remedy = "Delete its folder and train it again."
    return read_card(path, CARD, "a trained attacker", remedy, id=path.parent.name, folder=path.parent)


def inverter_bytes(card: InverterCard) -> bytes:
    """Return the content of the file with a trained attacker's weights.

    Raises CheckpointError if the file cannot be read, or its SHA-256 differs from that in the card.
    """
    return verified_bytes(card.folder / WEIGHTS, card.sha256, "Get it again, or train that attacker again.")


def fitting(cards: Iterable[InverterCard], victim: str, defenses: Sequence[dict[str, Any]], batch: int) -> InverterCard | None:
    """Return the trained attacker for the updates of a client.

    Args:
        cards: The trained attackers to choose from.
        victim: The hash of the model's weights.
        defenses: Id and all fields of each protection of the client, in order.
        batch: The number of pictures in an update.

    Returns:
        The first card that agrees in all three; None if there is no such card.
    """
    needed = (victim, tuple(defenses), batch)
    return next((card for card in cards if (card.victim, card.defenses, card.batch) == needed), None)


def missing(fits: Sequence[InverterCard], every: Sequence[InverterCard], behind: str, batch: int) -> str:
    """Return sentences that say why no trained attacker fits a client's updates, and what to do.

    Args:
        fits: The trained attackers for the weights of the client's model.
        every: All trained attackers.
        behind: The client's protections in words.
        batch: The number of pictures in an update.
    """
    here = "; ".join(card.words for card in (fits or every)) or "none"
    what = f"behind {behind}, with {batch} picture{'s' if batch > 1 else ''} in an update" if fits else "(other weights do not work)"
    return (
        f"No attacker has been trained for the weights of this model {what}. On this machine: {here}. "
        "Choose the settings of one of these, or train an attacker: python -m leakage train-attacker."
    )
