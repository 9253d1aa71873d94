"""Networks trained beforehand to undo updates: a folder each with a card and one safetensors file. No torch.

Ours lie in assets/inverters; those that somebody trains here in LEAKAGE_HOME/inverters. The folder's name is the inverter's id.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from leakage.data.errors import CheckpointError
from leakage.settings import ROOT, settings

SHIPPED_INVERTERS = ROOT / "assets" / "inverters"
WEIGHTS = "weights.safetensors"
ONE_GRADIENT = (
    "A trained attacker undoes a single gradient of one phone, and here another thing arrives. Choose FedSGD, one round and no sum."
)


@dataclass(frozen=True)
class InverterCard:
    """What it undoes and how well: the updates of one model, known by the hash of its weights, behind these protections.

    model, checkpoint, seed   the victim as an experiment names it
    batch                     pictures in an update
    defenses                  id and fields of each protection, in order; empty: none
    mse, mse_mean             mean squared error on held-out test pictures, and that of the mean training picture
    mse_of_class              of each class the first of these
    """

    id: str
    folder: Path
    victim: str
    model: dict[str, Any]
    checkpoint: str
    seed: int
    data: str
    image_shape: tuple[int, int, int]
    num_classes: int
    defenses: tuple[dict[str, Any], ...]
    batch: int
    entries: int
    features: int
    hidden: int
    training: dict[str, Any]
    pictures: int
    held_out: int
    mse: float
    mse_mean: float
    mse_of_class: tuple[float, ...]
    seconds: float
    commit: str
    torch: str
    sha256: str

    @property
    def words(self) -> str:
        """What it is for, for a list."""
        behind = " and ".join(part["id"].replace("_", " ") for part in self.defenses) or "no protection"
        trained = f"trained ({self.checkpoint})" if self.checkpoint else f"untrained, seed {self.seed}"
        many = f", {self.batch} pictures" if self.batch > 1 else ""
        return f"{self.model['id']} ({trained}) behind {behind}{many}"


CARD = TypeAdapter(InverterCard)  # what a file says is checked before it is believed


def inverters() -> dict[str, InverterCard]:
    """Every one on this machine by its id; ours win. A damaged card is passed over."""
    found: dict[str, InverterCard] = {}
    for folder in (SHIPPED_INVERTERS, settings().home / "inverters"):
        for path in sorted(folder.glob("*/card.json")):
            with suppress(CheckpointError):
                found.setdefault(path.parent.name, read_inverter(path))
    return found


def inverters_digest() -> str:
    """What tells the networks on this machine from those of another day: results must not be taken for those of other ones."""
    return sha256("".join(sorted(card.sha256 for card in inverters().values())).encode()).hexdigest()[:12]


def inverter_folder(name: str) -> Path:
    """Where one that is trained on this machine lies."""
    return settings().home / "inverters" / name


def read_inverter(path: Path) -> InverterCard:
    """One card. Raises CheckpointError."""
    try:
        return CARD.validate_python({**json.loads(path.read_text()), "id": path.parent.name, "folder": path.parent})
    except (OSError, ValueError, TypeError) as error:  # pydantic's errors are ValueErrors
        why = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{path} is no card of a trained attacker ({why}). Delete its folder and train it anew.") from None


def inverter_bytes(card: InverterCard) -> bytes:
    """Its file, if it is the one that the card describes. Raises CheckpointError."""
    path = card.folder / WEIGHTS
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}). Get it anew, or train that attacker again.") from None
    if sha256(data).hexdigest() != card.sha256:
        raise CheckpointError(f"{path} is damaged or was exchanged: it is not the file of its card. Get it anew, or train it again.")
    return data


def fitting(cards: Iterable[InverterCard], victim: str, defenses: Sequence[dict[str, Any]], batch: int) -> InverterCard | None:
    """The one for updates of so many pictures of this victim behind these protections (id and every field)."""
    wanted = tuple(defenses)
    return next((card for card in cards if (card.victim, card.defenses, card.batch) == (victim, wanted, batch)), None)


def missing(fits: Sequence[InverterCard], every: Sequence[InverterCard], behind: str, batch: int) -> str:
    """Why there is none, and what to do; `fits` are of these very weights."""
    here = "; ".join(card.words for card in (fits or every)) or "none"
    what = f"behind {behind}, {batch} picture{'s' if batch > 1 else ''} in an update" if fits else "and no other weights will do"
    return (
        f"No attacker has been trained for this model's very weights {what}. On this machine: {here}. "
        "Choose what one of these was trained for, or train one: python -m leakage train-attacker."
    )
