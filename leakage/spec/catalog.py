"""The plug-ins described as data, so that pages build menus, sliders and help without importing torch.

The dispatcher has them written down (`leakage.workers.plugin_catalog`), which imports them all; reading needs no torch.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakage.settings import ROOT
from leakage.spec.fields import KINDS as KINDS
from leakage.spec.fields import CatalogError as CatalogError
from leakage.spec.fields import Field as Field
from leakage.spec.fields import Published, Travels
from leakage.spec.words import short_repr

LOCAL_STEPS, LOCAL_RATE = "epochs", "rate"  # fields of protocols whose phones train by themselves
PACKAGE = Path(__file__).parent.parent
SOURCES = (  # of results: what is hashed, below the package
    *(f"{folder}/*.py" for folder in (*KINDS.values(), "engine", "evaluation", "networks", "data")),
    *(f"spec/{name}.py" for name in ("aliases", "catalog", "experiment", "fields", "json_size", "part", "refusals", "syntax", "tasks")),
    *(f"workers/{name}.py" for name in ("*adapter", "class_examples", "private_pictures", "training_folder", "*_job")),
)


@dataclass(frozen=True)
class Entry:
    """One plug-in as data."""

    kind: str
    id: str
    title: str  # in plain words, with the field's term in brackets
    short: str  # that term alone
    plain: str
    hint: str
    source: str
    doc: str
    presets: dict[str, dict[str, Any]]
    evaluations_per_step: float  # of an attack
    mistakes: dict[str, str]  # of an attack whose naive attacker imitates the client all the same: switch that repairs it -> in words
    strongest: dict[str, Any] | None  # of an attack: its fields where the strongest known attackers are tried; None: it is none of them
    in_place_of_steps: str  # of an attack: what it uses where phones train for some steps; empty: it imitates these
    learned: bool  # of an attack: it needs a network that was trained beforehand
    ends_without: str  # of an attack: which tensors of an update it cannot do without; empty: it goes on with what arrives
    fits: dict[str, list[Any]]  # of those: for which experiments: pictures (how many), precision, model (its id) -> what each may be
    reads_labels: bool  # of an attack: from the update, unless they are granted, which takes a linear last layer
    strategies: dict[str, str]  # of a defense: what attackers can do who know it, name -> in words; the first is the usual one
    strategy_titles: dict[str, str]  # ... those whose name on the page is another: name -> title
    idle: bool  # of a defense: the usual one of them does what somebody would do who does not know it
    averaging: list[str]  # of those: which put together what arrived in the rounds up to the attacked one
    colluding: list[str]  # ... which need a phone that works with the attacker
    imitating: list[str]  # ... which do nothing but imitate it
    literal: list[str]  # ... and which work with the very numbers that the defense made
    stage: str  # of a defense: gradient, in each local step, or update, on what is sent
    needs: dict[str, str]  # of a defense: fields that the model must have, with these values
    needs_structure: dict[str, str]  # of a defense: how the model must be built -> what is said of one that is not
    one_by_one: bool  # of a defense: it asks for the gradient of each picture by itself
    needs_step: str  # of a defense: what is said where it acts on all pictures of a step behind one that takes them one by one
    published: Published | None  # of a defense: from which strength on it was reported to stop DLG
    noise_field: str  # of a defense: which field is the noise multiplier of one picture's part; empty: none is
    private: bool  # of a defense: it promises differential privacy
    backfires: str  # of a defense: why an attacker does worse for knowing it, where that was measured
    smallest: int  # of a model: the shortest side of a picture that it can take, in pixels
    smallest_alone: int  # the same of a picture that is alone in a step whose statistics BatchNorm takes
    structure: list[str]  # of a model: how it is built, as defenses may need it
    is_aggregation: bool  # of a protocol: laid over another one
    sends_gradient: bool  # of a protocol: the very gradient of one step, and nothing else
    travels: Travels  # of a protocol: what is sent, what is kept, and what attackers make of it, in words
    fields: tuple[Field, ...]

    @property
    def trains_locally(self) -> bool:
        """Of a protocol: whether its phones train by themselves for some steps before they send."""
        return any(field.name == LOCAL_STEPS for field in self.fields)

    def answer(self, strategy: str) -> str:
        """Of a defense, in words: what the attacker does who chose this strategy, or the usual one."""
        return self.strategies.get(strategy) or next(iter(self.strategies.values()))

    def resolve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Every field with its value, defaults filled in. Raises CatalogError for unknown names and values out of range."""
        known = {field.name: field for field in self.fields}
        for name in given:
            if name not in known:
                raise CatalogError(f"{self.kind} {self.id!r} has no field {short_repr(name)}; it has {', '.join(known) or 'none'}.")
        return {name: field.check(given.get(name, field.default), f"{self.kind} {self.id}") for name, field in known.items()}


@dataclass(frozen=True)
class Catalog:
    """All plug-ins, and the hash of the files they were read from."""

    version: str
    entries: tuple[Entry, ...]

    def of(self, kind: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind == kind]

    @property
    def aggregations(self) -> list[Entry]:
        """The protocols that are laid over another one, by title; the first is the usual one."""
        return sorted((entry for entry in self.of("protocol") if entry.is_aggregation), key=lambda entry: entry.title)

    def find(self, kind: str, name: str) -> Entry | None:
        """The plug-in of that id; None where it is gone, as it may be from an old run."""
        return next((entry for entry in self.of(kind) if entry.id == name), None)

    def strategy_title(self, name: str) -> str:
        """What an attacker does about a protection, by its name on the page."""
        return next((entry.strategy_titles[name] for entry in self.of("defense") if name in entry.strategy_titles), name)

    def get(self, kind: str, name: str) -> Entry:
        """Raises CatalogError, listing what there is."""
        if found := self.find(kind, name):
            return found
        raise CatalogError(f"{kind}: {name!r} is not known here; allowed are {', '.join(entry.id for entry in self.of(kind))}.")


def version() -> str:
    """A hash of all that a result can depend on, and of nothing else: it keys the catalog, and runs are shared between equal versions.

    Read from the disk at every call: a web server that runs for weeks must see that a plug-in was added.
    """
    digest = hashlib.sha256()
    for file in sources():
        name = f"{file.relative_to(PACKAGE)}\0".encode() if file.suffix == ".py" else b""
        digest.update(name + file.read_bytes())
    return digest.hexdigest()[:16]


def sources() -> list[Path]:
    """The files of all that a result can depend on: code, and cards of trained models and generators, which hold the weights' hashes."""
    code = sorted({file for pattern in SOURCES for file in PACKAGE.glob(pattern)})
    cards = ("checkpoints/*/card.json", "generators/*.json", "inverters/*/card.json")
    return code + sorted(card for pattern in cards for card in ROOT.glob(f"assets/{pattern}"))


def read(path: Path) -> Catalog | None:
    """The catalog at `path`, or None when there is none or it describes other files than those on disk."""
    try:
        raw = json.loads(path.read_text())
        if raw["version"] != version():
            return None
        return Catalog(version=raw["version"], entries=tuple(_entry(entry) for entry in raw["entries"]))
    except (OSError, ValueError, KeyError, TypeError):  # not there, cut short, or of a newer program than this process
        return None


def _entry(raw: dict[str, Any]) -> Entry:
    """An entry as JSON has it, with its lists as tuples again."""
    fields = tuple(Field(**{**field, "options": tuple(field["options"])}) for field in raw["fields"])
    published = raw["published"] and Published(**{**raw["published"], "ends": tuple(raw["published"]["ends"])})
    return Entry(**{**raw, "fields": fields, "published": published, "travels": Travels(**raw["travels"])})
