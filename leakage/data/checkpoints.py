"""Trained weights on this machine: a folder each with a card (card.json) and one safetensors file per stage of the training. No torch.

Ours lie in assets/checkpoints; those that somebody trains here in LEAKAGE_HOME/checkpoints. The folder's name is the checkpoint's id.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from leakage.data.datasets import TITLES
from leakage.data.errors import CheckpointError as CheckpointError
from leakage.settings import ROOT, settings

SHIPPED = ROOT / "assets" / "checkpoints"
STATE = "state.safetensors"  # the weights of a training that has not ended


@dataclass(frozen=True)
class Stage:
    """The weights after so many rounds of a training: their file, its sha256, and the share of test pictures they name right."""

    rounds: int
    file: str
    sha256: str
    accuracy: float
    dtype: str


@dataclass(frozen=True)
class Card:
    """What a checkpoint is: model with its fields, data, recipe, who made it when, and its stages in the order of rounds."""

    id: str
    folder: Path
    model: str
    fields: dict[str, Any]
    data: Literal["digits", "mnist", "cifar10"]
    image_shape: tuple[int, int, int]
    num_classes: int
    recipe: str
    training: dict[str, Any]
    pictures: int
    commit: str
    torch: str
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)]
    privacy: dict[str, Any] | None = None  # what its protection promises; None: none promises any, or an earlier version trained it

    @property
    def unit(self) -> str:
        """What one round was: an epoch, where all pictures lay in one place and were seen once."""
        plain = (self.training.get("clients", 1), self.training.get("local_epochs", 1)) == (1, 1)
        return "epoch" if plain else "round"

    @property
    def trained_on(self) -> str:
        """The data set as a menu shows it."""
        return TITLES[self.data]

    def stage(self, rounds: int) -> Stage:
        """Raises CheckpointError, listing what there is."""
        for stage in self.stages:
            if stage.rounds == rounds:
                return stage
        known = ", ".join(f"{self.id}@{stage.rounds}" for stage in self.stages)
        raise CheckpointError(f"checkpoint: {self.id} was not kept after {rounds} rounds; there are {known}.")


CARD = TypeAdapter(Card)  # what a file says is checked before it is believed


def words(name: str) -> str:
    """The training that "id@rounds" names, for the threat model table."""
    if not name:
        return "untrained"
    card, stage = find(name)
    length = f"{stage.rounds} of {card.stages[-1].rounds} {card.unit}s"
    return f"trained for {length} on {card.pictures:,} pictures of {card.trained_on}, names {stage.accuracy:.1%} of the test pictures right"


def listed() -> dict[str, Path]:
    """The card of every finished checkpoint by its id; ours win over those of this machine."""
    found: dict[str, Path] = {}
    for folder in (SHIPPED, settings().checkpoints):
        for path in sorted(folder.glob("*/card.json")):
            found.setdefault(path.parent.name, path)
    return found


def cards() -> dict[str, Card]:
    """Every checkpoint by its id. A damaged card is passed over: `find` says what is wrong with it."""
    found = {}
    for id, path in listed().items():
        with suppress(CheckpointError):
            found[id] = read(path)
    return found


def read(path: Path) -> Card:
    """One card. Raises CheckpointError."""
    try:
        return CARD.validate_python({**json.loads(path.read_text()), "id": path.parent.name, "folder": path.parent})
    except (OSError, ValueError, TypeError) as error:  # pydantic's errors are ValueErrors
        why = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{path} is no card of a checkpoint ({why}). Delete its folder and train it anew.") from None


def find(name: str) -> tuple[Card, Stage]:
    """The card and the stage that "id@rounds" names. Raises CheckpointError."""
    id, _, rounds = name.partition("@")
    paths = listed()
    if id not in paths or not rounds.isdecimal():
        known = ", ".join(paths) or "none"
        raise CheckpointError(f"checkpoint: {name!r} is not on this machine; here are {known}, each with @ and its rounds behind it.")
    card = read(paths[id])
    return card, card.stage(int(rounds))


def verified(card: Card, stage: Stage) -> bytes:
    """The stage's file, if it is the one that the card describes. Raises CheckpointError."""
    path = card.folder / stage.file
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}). Get it anew, or choose an untrained model.") from None
    found = hashlib.sha256(data).hexdigest()
    if found != stage.sha256:
        raise CheckpointError(
            f"{path} is damaged or was exchanged: its sha256 begins with {found[:12]}, the card says {stage.sha256[:12]}. "
            "Get it anew, or choose an untrained model."
        )
    return data


def write(path: Path, content: bytes | dict[str, Any]) -> None:
    """A file, at once and whole; a dictionary as JSON."""
    fresh = path.with_name(f"{path.name}.tmp")
    fresh.write_bytes(content if isinstance(content, bytes) else f"{json.dumps(content, indent=1)}\n".encode())
    fresh.replace(path)
