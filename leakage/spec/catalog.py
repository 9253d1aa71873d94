"""The plug-ins described as data, so that pages build menus, sliders and help without importing torch.

`leakage.workers.plugin_catalog`, run by the dispatcher, imports all plug-ins and writes the catalog. Reading it needs no torch.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict

from leakage.settings import ROOT
from leakage.spec.declarations import (
    AttackDeclarations,
    CheckDeclarations,
    Declarations,
    DefenseDeclarations,
    ModelDeclarations,
    ProtocolDeclarations,
    ServerDeclarations,
    StrategyDeclarations,
)
from leakage.spec.fields import KINDS as KINDS
from leakage.spec.fields import CatalogError as CatalogError
from leakage.spec.fields import Field as Field
from leakage.spec.words import short_repr

LOCAL_STEPS, LOCAL_RATE = "epochs", "rate"  # fields of protocols with local training
PACKAGE = Path(__file__).parent.parent
SOURCES = (  # the files on which results depend, and which are hashed; relative to the package
    *(f"{folder}/*.py" for folder in (*KINDS.values(), "engine", "evaluation", "networks", "data", "auditing")),
    *(
        f"spec/{name}.py"
        for name in (
            "aliases",
            "catalog",
            "declarations",
            "experiment",
            "fields",
            "json_reading",
            "json_size",
            "local_steps",
            "part",
            "refusals",
            "server_fit",
            "syntax",
            "tasks",
        )
    ),
    *(
        f"workers/{name}.py"
        for name in ("*adapter", "class_examples", "compiled_programs", "private_pictures", "step_choice", "training_folder", "*_job")
    ),
)


class Entry(BaseModel, Declarations):
    """The catalog's description of a plug-in as plain data: its declarations (class attributes), its fields and its docstring."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[str]
    id: str
    doc: str
    """The docstring of its class."""
    fields: tuple[Field, ...]

    def resolve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return all fields with their values, defaults filled in.

        Args:
            given: name of a field -> its value.

        Raises:
            CatalogError: for an unknown name or a value that is not allowed.
        """
        known = {field.name: field for field in self.fields}
        for name in given:
            if name not in known:
                raise CatalogError(f"{self.kind} {self.id!r} has no field {short_repr(name)}; it has {', '.join(known) or 'none'}.")
        return {name: field.check(given.get(name, field.default), f"{self.kind} {self.id}") for name, field in known.items()}


class AttackEntry(Entry, AttackDeclarations):
    """The catalog's description of an attack."""

    kind = "attack"


@dataclass(frozen=True, kw_only=True)
class StrategyEntry(StrategyDeclarations):
    """The catalog's description of an adaptive strategy (what an attacker does about a defense). `title` is never empty here."""

    idle: bool
    """The attacker does the same as a naive attacker: true for the default strategy of a defense that has no `surrogate`."""
    imitating: bool
    """The strategy imitates the defense, and does nothing else."""
    literal: bool
    """The strategy works with the very numbers that the defense made."""


class DefenseEntry(Entry, DefenseDeclarations):
    """The catalog's description of a defense, with its adaptive strategies by name."""

    kind = "defense"

    strategies: dict[str, StrategyEntry]
    """What an attacker that knows the defense can do, by the name that an experiment gives; the first is the default."""
    noise_field: str
    """The name of the field with the noise multiplier for one picture's contribution. Empty: the defense has no such field."""
    private: bool
    """The defense promises differential privacy."""

    @property
    def default_strategy(self) -> StrategyEntry:
        """The first strategy, which an attacker uses unless the experiment names another."""
        return next(iter(self.strategies.values()))

    def strategy(self, name: str) -> StrategyEntry:
        """Return the strategy of this name, or the default strategy if the defense has none of this name."""
        return self.strategies.get(name, self.default_strategy)

    def strategies_with(self, **declared: bool) -> list[str]:
        """Return the names of the strategies that have all of these declarations.

        Args:
            declared: attributes of a strategy, and their values.
        """
        return [
            name for name, strategy in self.strategies.items() if all(getattr(strategy, key) == value for key, value in declared.items())
        ]


class ProtocolEntry(Entry, ProtocolDeclarations):
    """The catalog's description of a protocol of federated learning, such as FedAvg, or of an aggregation of its clients' updates."""

    kind = "protocol"

    @property
    def trains_locally(self) -> bool:
        """Whether its clients train for some steps by themselves before they send."""
        return any(field.name == LOCAL_STEPS for field in self.fields)


class ModelEntry(Entry, ModelDeclarations):
    """The catalog's description of a model (network architecture)."""

    kind = "model"


class ServerEntry(Entry, ServerDeclarations):
    """The catalog's description of a server that changes the model which it hands out."""

    kind = "server"


class CheckEntry(Entry, CheckDeclarations):
    """The catalog's description of a check of the received model."""

    kind = "check"


KIND_ENTRIES = (AttackEntry, DefenseEntry, ProtocolEntry, ModelEntry, ServerEntry, CheckEntry)
ENTRIES: dict[str, type[Entry]] = {entry.kind: entry for entry in KIND_ENTRIES}
E = TypeVar("E", bound=Entry, covariant=True)


@dataclass(frozen=True)
class Entries(Iterable[E]):
    """The plug-ins of one kind, in the order of their ids."""

    kind: str
    all: tuple[E, ...]

    def __iter__(self) -> Iterator[E]:
        return iter(self.all)

    def find(self, name: str) -> E | None:
        """Return the plug-in with the id `name`; None if it does not exist, as after the plug-in of an old run was removed."""
        return next((entry for entry in self.all if entry.id == name), None)

    def get(self, name: str) -> E:
        """Return the plug-in with the id `name`; raise CatalogError with the known ids if it does not exist."""
        if entry := self.find(name):
            return entry
        raise CatalogError(f"{self.kind}: {name!r} is not known here; allowed are {', '.join(entry.id for entry in self.all)}.")


@dataclass(frozen=True)
class Catalog:
    """All plug-ins, and the hash of the files from which they were read."""

    version: str
    attacks: Entries[AttackEntry]
    defenses: Entries[DefenseEntry]
    protocols: Entries[ProtocolEntry]
    models: Entries[ModelEntry]
    servers: Entries[ServerEntry]
    checks: Entries[CheckEntry]

    @property
    def entries(self) -> list[Entry]:
        """The plug-ins of all kinds."""
        return [*self.attacks, *self.defenses, *self.protocols, *self.models, *self.servers, *self.checks]

    @property
    def aggregations(self) -> list[ProtocolEntry]:
        """The protocols that add up the updates of another protocol's clients, by title; the first is the default."""
        return sorted((entry for entry in self.protocols if entry.is_aggregation), key=lambda entry: entry.title)

    def of(self, kind: str) -> Entries[Entry]:
        """Return the plug-ins of a kind, a key of `KINDS`, such as "attack"."""
        entries: Entries[Entry] = getattr(self, KINDS[kind])
        return entries

    def strategy_title(self, name: str) -> str:
        """Return the title of an adaptive strategy; its name if no defense offers it."""
        return next((entry.strategies[name].title for entry in self.defenses if name in entry.strategies), name)


def version() -> str:
    """Return a hash of all files on which a result can depend, and of no others.

    The catalog is valid for one version, and runs of equal versions are shared. The files are read at every call, because a web server
    that runs for weeks must notice a new plug-in.
    """
    digest = hashlib.sha256()
    for file in sources():
        name = f"{file.relative_to(PACKAGE)}\0".encode() if file.suffix == ".py" else b""
        with suppress(FileNotFoundError):  # it was deleted since it was listed
            digest.update(name + file.read_bytes())
    return digest.hexdigest()[:16]


def sources() -> list[Path]:
    """List the files on which a result can depend: code, and the cards of trained models and generators with the weights' hashes."""
    code = sorted({file for pattern in SOURCES for file in PACKAGE.glob(pattern)})
    cards = ("checkpoints/*/card.json", "generators/*.json", "inverters/*/card.json")
    return code + sorted(card for pattern in cards for card in ROOT.glob(f"assets/{pattern}"))


def text(catalog: Catalog) -> str:
    """Return the catalog as JSON, in the form that `read` reads."""
    kinds = {KINDS[kind]: [entry.model_dump(mode="json") for entry in catalog.of(kind)] for kind in KINDS}
    return json.dumps({"version": catalog.version, **kinds}, indent=1)


def put(path: Path, content: str) -> None:
    """Write a file of the catalog in one step, so that no reader sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(content)
    fresh.replace(path)


def read(path: Path) -> Catalog | None:
    """Read the catalog at `path`; return None if there is none, or if it describes other files than those on disk."""
    try:
        raw = json.loads(path.read_text())
        return make_catalog(raw["version"], raw) if raw["version"] == version() else None
    except (OSError, ValueError, KeyError, TypeError):  # missing, incomplete, or written by a newer version of the program
        return None


def read_fault(path: Path) -> str:
    """Read why the catalog at `path` could not be written; return "" if that is not known, or if files have changed since."""
    try:
        of_version, _, sentence = fault_file(path).read_text().partition("\n")
    except (OSError, ValueError):
        return ""
    return sentence if of_version == version() else ""


def fault_file(path: Path) -> Path:
    """Return the file beside the catalog at `path` that says why the catalog could not be written."""
    return path.with_suffix(".fault")


def make_catalog(version: str, plugins: Mapping[str, Iterable[Mapping[str, Any]]]) -> Catalog:
    """Make a catalog from plain data.

    Args:
        version: the hash of the files that describe the plug-ins.
        plugins: folder of a kind -> the fields of the entry of each plug-in.

    Raises:
        ValueError: if an entry is not valid.
    """
    kinds: dict[str, Any] = {
        folder: Entries(kind, tuple(map(ENTRIES[kind].model_validate, plugins[folder]))) for kind, folder in KINDS.items()
    }
    return Catalog(version, **kinds)
