"""The plug-ins described as data, so that pages build menus, sliders and help without importing torch.

Reading a catalog needs no torch. Writing one (`write`, `load`, done by the dispatcher and the workers) imports the plug-ins.
"""

import hashlib
import importlib
import inspect
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from leakage.syntax import read as read_text

KINDS = {"attack": "attacks", "defense": "defenses", "protocol": "protocols", "model": "models"}
PACKAGE = Path(__file__).parent


class CatalogError(ValueError):
    """A name or value that the catalog does not allow; the message names it, what is allowed and what was given."""


@dataclass(frozen=True)
class Field:
    """One setting of a plug-in: a number with a range, a word out of options, a text in a syntax, or a switch."""

    name: str
    type: str  # "int", "float", "bool" or "str"
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    options: tuple[str, ...] = ()
    syntax: str = ""  # of a free text: a name of `syntax.SYNTAXES`

    def check(self, value: Any, where: str) -> Any:
        """`value` in the field's type, a text in its one spelling. Raises CatalogError."""
        if self.syntax:
            try:
                return read_text(self.syntax, value, f"{where}.{self.name}")
            except ValueError as error:
                raise CatalogError(str(error)) from None
        if self.type == "str":
            allowed, good = " or ".join(repr(word) for word in self.options), value in self.options
        elif self.type == "bool":
            allowed, good = "true or false", isinstance(value, bool)
        else:
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            number = isinstance(value, int | float) and not isinstance(value, bool) and (self.type == "float" or whole)
            allowed = f"a {'whole ' if self.type == 'int' else ''}number from {self.low} to {self.high}"
            good = number and self.low <= value <= self.high
        if not good:
            raise CatalogError(f"{where}.{self.name}: allowed is {allowed}, given was {value!r}.")
        return {"int": int, "float": float, "bool": bool, "str": str}[self.type](value)


@dataclass(frozen=True)
class Entry:
    """One plug-in as data."""

    kind: str
    id: str
    title: str
    plain: str
    hint: str
    source: str
    doc: str
    presets: dict[str, dict[str, Any]]
    evaluations_per_step: float  # of an attack
    counters: dict[str, str]  # of a defense: what attackers can do who know it, name -> in words; the first is the usual one
    needs: dict[str, str]  # of a defense: fields that the model must have, with these values
    smallest: int  # of a model: the shortest side of a picture that it can take, in pixels
    over_others: bool  # of a protocol: laid over another one
    fields: tuple[Field, ...]

    def answer(self, counter: str) -> str:
        """Of a defense, in words: what the attacker does who chose this counter, or the usual one."""
        return self.counters.get(counter) or next(iter(self.counters.values()))

    def resolve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Every field with its value, defaults filled in. Raises CatalogError for unknown names and values out of range."""
        known = {field.name: field for field in self.fields}
        for name in given:
            if name not in known:
                raise CatalogError(f"{self.kind} {self.id!r} has no field {name!r}; it has {', '.join(known) or 'none'}.")
        return {name: field.check(given.get(name, field.default), f"{self.kind} {self.id}") for name, field in known.items()}


@dataclass(frozen=True)
class Catalog:
    """All plug-ins, and the hash of the files they were read from."""

    version: str
    entries: tuple[Entry, ...]

    def of(self, kind: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind == kind]

    def get(self, kind: str, name: str) -> Entry:
        """Raises CatalogError, listing what there is."""
        for entry in self.of(kind):
            if entry.id == name:
                return entry
        raise CatalogError(f"{kind}: {name!r} is not known here; allowed are {', '.join(entry.id for entry in self.of(kind))}.")


def version() -> str:
    """A hash of all that a result depends on: it keys the catalog, and runs are shared only between equal versions.

    Read from the disk at every call: a web server that runs for weeks must see that a plug-in was added.
    """
    digest = hashlib.sha256()
    for pattern in ("*.py", "engine/*.py", *(f"{folder}/*.py" for folder in KINDS.values())):
        for file in sorted(PACKAGE.glob(pattern)):
            digest.update(f"{file.relative_to(PACKAGE)}\0".encode() + file.read_bytes())
    for card in sorted(PACKAGE.parent.glob("assets/checkpoints/*/card.json")):  # they hold the hashes of the weights
        digest.update(card.read_bytes())
    return digest.hexdigest()[:16]


def read(path: Path) -> Catalog | None:
    """The catalog at `path`, or None when there is none or it describes other files than those on disk."""
    try:
        raw = json.loads(path.read_text())
        if raw["version"] != version():
            return None
        entries = [
            Entry(**{**entry, "fields": tuple(Field(**{**field, "options": tuple(field["options"])}) for field in entry["fields"])})
            for entry in raw["entries"]
        ]
        return Catalog(version=raw["version"], entries=tuple(entries))
    except (OSError, ValueError, KeyError, TypeError):  # not there, cut short, or of a newer program than this process
        return None


def write(path: Path) -> Catalog:
    """Import every plug-in and write what they say about themselves."""
    catalog = describe()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(json.dumps(asdict(catalog), indent=1))
    fresh.replace(path)
    return catalog


def describe() -> Catalog:
    """The catalog of the plug-ins on disk (imports them)."""
    entries = [
        _entry(kind, file.stem)
        for kind, folder in KINDS.items()
        for file in sorted((PACKAGE / folder).glob("*.py"))
        if not file.stem.startswith("_")
    ]
    return Catalog(version=version(), entries=tuple(entries))


def load(kind: str, name: str) -> Any:
    """The class of one plug-in (imports it). Raises CatalogError when its file does not hold exactly one."""
    module = importlib.import_module(f"leakage.{KINDS[kind]}.{name}")
    base = getattr(importlib.import_module("leakage.engine.core"), kind.capitalize())
    found = [c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, base) and c.__module__ == module.__name__]
    if len(found) != 1:
        raise CatalogError(f"leakage/{KINDS[kind]}/{name}.py must define exactly one {base.__name__}; found {len(found)}.")
    return found[0]


def _entry(kind: str, name: str) -> Entry:
    plugin = load(kind, name)
    described = [
        Field(
            name=field.name,
            type=getattr(field.type, "__name__", str(field.type)),
            default=field.default,
            help=field.metadata["help"],
            low=field.metadata.get("low"),
            high=field.metadata.get("high"),
            options=field.metadata.get("options", ()),
            syntax=field.metadata.get("syntax", ""),
        )
        for field in fields(plugin)
    ]
    return Entry(
        kind=kind,
        id=name,
        title=plugin.title,
        plain=plugin.plain,
        hint=plugin.hint,
        source=plugin.source,
        doc=inspect.cleandoc(plugin.__doc__ or ""),
        evaluations_per_step=getattr(plugin, "evaluations_per_step", 0),
        counters={name: counter.words for name, counter in plugin().counters().items()} if kind == "defense" else {},
        needs=dict(getattr(plugin, "needs", {})),
        smallest=getattr(plugin, "smallest", 0),
        over_others=getattr(plugin, "over_others", False),
        presets={name: dict(values) for name, values in plugin.presets.items()},
        fields=tuple(described),
    )
