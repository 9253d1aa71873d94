"""Trained models on this machine: each is a folder with a card (card.json) and a safetensors file for each stage. No torch.

Shipped checkpoints are in assets/checkpoints, those trained on this machine in LEAKAGE_HOME/checkpoints. The folder's name is the id.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from leakage.data.cards import read_card, verified_bytes
from leakage.data.datasets import TITLES
from leakage.data.errors import CheckpointError as CheckpointError
from leakage.settings import ROOT, settings

SHIPPED = ROOT / "assets" / "checkpoints"
STATE = "state.safetensors"  # the file with the weights of a training that has not ended


@dataclass(frozen=True)
class Stage:
    """The saved weights of a model after a number of training rounds: their file, its hash and the accuracy."""

    rounds: int
    file: str
    sha256: str
    accuracy: float
    """Fraction of test pictures that the model classifies correctly."""
    dtype: str


@dataclass(frozen=True)
class Card:
    """The model card of a checkpoint, a trained model: what was trained on which data, and the saved weights."""

    id: str
    folder: Path
    model: str
    """Id of the model plug-in."""
    fields: dict[str, Any]
    """Fields of the model plug-in."""
    data: Literal["digits", "mnist", "cifar10"]
    """Data set on which it was trained."""
    image_shape: tuple[int, int, int]
    """Shape (C, H, W) of a picture."""
    num_classes: int
    recipe: str
    """The training in one sentence."""
    training: dict[str, Any]
    """All settings of the training."""
    pictures: int
    """Number of training pictures."""
    commit: str
    torch: str
    """Version of torch."""
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)]
    """The saved weights, in the order of rounds."""
    privacy: dict[str, Any] | None = None
    """The privacy guarantee of its protection; None if there is no guarantee, or an earlier version of the program trained the model."""

    @property
    def unit(self) -> str:
        """The name of a round: "epoch" if there was a single client with a local epoch in each round, otherwise "round"."""
        plain = (self.training.get("clients", 1), self.training.get("local_epochs", 1)) == (1, 1)
        return "epoch" if plain else "round"

    @property
    def trained_on(self) -> str:
        """The title of the data set, as in menus."""
        return TITLES[self.data]

    def stage(self, rounds: int) -> Stage:
        """Return the stage (the saved weights) after `rounds` training rounds.

        Raises CheckpointError, with a list of the stages, if the model was not saved after this number of rounds.
        """
        for stage in self.stages:
            if stage.rounds == rounds:
                return stage
        known = ", ".join(f"{self.id}@{stage.rounds}" for stage in self.stages)
        raise CheckpointError(f"checkpoint: {self.id} was not saved after {rounds} rounds; there are {known}.")


CARD = TypeAdapter(Card)


def describe_training(name: str) -> str:
    """Return a description of a model's training, such as "trained for 10 of 20 epochs on 60,000 pictures of MNIST, ...".

    Args:
        name: The checkpoint's id, @ and the number of rounds, such as "lenet@10"; empty for an untrained model.

    Raises:
        CheckpointError: If there is no such checkpoint.
    """
    if not name:
        return "untrained"
    card, stage = find(name)
    length = f"{stage.rounds} of {card.stages[-1].rounds} {card.unit}s"
    return f"trained for {length} on {card.pictures:,} pictures of {card.trained_on}, names {stage.accuracy:.1%} of the test pictures right"


def listed() -> dict[str, Path]:
    """Return the path of every checkpoint's model card (card.json) by the checkpoint's id.

    A checkpoint that ships with the package replaces one that was trained on this machine and has the same id.
    """
    paths: dict[str, Path] = {}
    for folder in (SHIPPED, settings().checkpoints):
        for path in sorted(folder.glob("*/card.json")):
            paths.setdefault(path.parent.name, path)
    return paths


def cards() -> dict[str, Card]:
    """Return the model card of every checkpoint (trained model) by id, without damaged cards; `find` says what is wrong with one."""
    cards = {}
    for id, path in listed().items():
        with suppress(CheckpointError):
            cards[id] = read(path)
    return cards


def read(path: Path) -> Card:
    """Read the model card of a checkpoint from its card.json. Raises CheckpointError if the file is missing or damaged."""
    remedy = "Delete its folder and train the model again."
    return read_card(path, CARD, "a checkpoint", remedy, id=path.parent.name, folder=path.parent)


def find(name: str) -> tuple[Card, Stage]:
    """Return the model card and the saved weights (a Stage) of a checkpoint.

    `name` is its id, @ and the number of training rounds, such as "lenet@10". Raises CheckpointError if it is missing or damaged.
    """
    id, _, rounds = name.partition("@")
    paths = listed()
    if id not in paths or not rounds.isdecimal():
        known = ", ".join(paths) or "none"
        raise CheckpointError(
            f"checkpoint: {name!r} is not on this machine; expected is one of {known}, followed by @ and the number of rounds."
        )
    card = read(paths[id])
    return card, card.stage(int(rounds))


def verified(card: Card, stage: Stage) -> bytes:
    """Return the content of the file with a checkpoint's weights.

    Raises CheckpointError if the file cannot be read, or its SHA-256 differs from that in the model card.
    """
    return verified_bytes(card.folder / stage.file, stage.sha256, "Get it again, or choose an untrained model.")


def write(path: Path, content: bytes | dict[str, Any]) -> None:
    """Write bytes, or a dictionary as JSON, so that the file is replaced at once when its new content is complete."""
    fresh = path.with_name(f"{path.name}.tmp")
    fresh.write_bytes(content if isinstance(content, bytes) else f"{json.dumps(content, indent=1)}\n".encode())
    fresh.replace(path)
