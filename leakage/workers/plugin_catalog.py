"""The catalog of the plug-ins on disk, written as data, so that pages need not import plug-ins."""

import inspect
import traceback
from dataclasses import fields
from pathlib import Path
from typing import Any

from leakage.engine.core import AdaptiveStrategy, Defense
from leakage.engine.loading import ids, load
from leakage.engine.plugin import described
from leakage.settings import PREPARED_CATALOG
from leakage.spec.catalog import ENTRIES, Catalog, StrategyEntry, fault_file, make_catalog, put, text, version
from leakage.spec.declarations import Declarations, explanations
from leakage.spec.fields import KINDS, CatalogError

REQUIRED = [name for name in inspect.get_annotations(Declarations) if not hasattr(Declarations, name)]
REMEDY = "Correct the file, or move it elsewhere; then everything goes on by itself."


def write(path: Path) -> Catalog:
    """Import every plug-in, write the catalog of their declarations to `path`, and return it.

    If a plug-in cannot be described, write the reason as a sentence to `fault_file(path)`, which `read_fault` reads, and raise the error.
    """
    before = version()
    try:
        catalog = describe()
    except Exception as error:  # a plug-in may raise any error
        put(fault_file(path), f"{before}\n{fault(error)}")
        raise
    put(path, text(catalog))
    fault_file(path).unlink(missing_ok=True)
    return catalog


def fault(error: Exception) -> str:
    """Return in a sentence which plug-in raised this error of `describe`, on which line, and what to do."""
    if isinstance(error, CatalogError):
        return f"The plug-ins cannot be listed. {error} {REMEDY}"
    file = (getattr(error, "__notes__", None) or [""])[-1]
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if file and frame.filename.endswith(file)]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    what = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split()).rstrip(".")
    place = f"{file}, line {line}" if line else file or "an error in one of them"
    return f"The plug-ins cannot be listed, because of {place}: {type(error).__name__}: {what}. {REMEDY}"


def describe() -> Catalog:
    """Import the plug-ins on disk and return their catalog."""
    return make_catalog(version(), {folder: [_entry(kind, name) for name in ids(kind)] for kind, folder in KINDS.items()})


def lack_of(plugin: type) -> str:
    """Return in a sentence what the class of a plug-in lacks, and how to add it; "" if nothing is missing."""
    if "__dataclass_params__" not in vars(plugin):
        return f"the class {plugin.__name__} is no dataclass. Write @dataclass(frozen=True, kw_only=True) above it."
    for entry in fields(plugin):
        if "help" not in entry.metadata:
            example = f'{entry.name}: int = param(10, 1, 100, "What it is.")'
            return f"the field {entry.name} has no help text. Declare it with param, choice, flag or text, such as {example}"
    for name in REQUIRED:
        if not isinstance(getattr(plugin, name, None), str):
            meaning = explanations(Declarations)[name]
            return f'the class {plugin.__name__} has no {name}. Add a line {name} = "..." to it. Its meaning: {meaning}'
    return ""


def _entry(kind: str, name: str) -> dict[str, Any]:
    """Return the fields of a plug-in's catalog entry; add the plug-in's file as a note to an error."""
    try:
        plugin = load(kind, name)
        if lack := lack_of(plugin):
            raise CatalogError(f"leakage/{KINDS[kind]}/{name}.py is incomplete: {lack}")
        return _declared(plugin, kind, name)
    except Exception as error:
        error.add_note(f"leakage/{KINDS[kind]}/{name}.py")
        raise


def _declared(plugin: Any, kind: str, name: str) -> dict[str, Any]:
    """Return the fields of a catalog entry: some are computed here, the others are the plug-in's declarations."""
    computed: dict[str, Any] = {"id": name, "short": plugin.short or plugin.title, "doc": inspect.cleandoc(plugin.__doc__ or "")}
    computed |= {"fields": described(plugin), **(_defense(plugin) if kind == "defense" else {})}
    return {field: computed[field] if field in computed else getattr(plugin, field) for field in ENTRIES[kind].model_fields}


def _defense(plugin: type[Defense]) -> dict[str, Any]:
    """Compute the fields of a defense's catalog entry from the defense with its defaults."""
    defense = plugin()
    promised = defense.effective_noise_multiplier(1), defense.pure_epsilon(1)
    strategies = {
        name: _strategy(name, strategy, idle=index == 0 and plugin.surrogate is Defense.surrogate)
        for index, (name, strategy) in enumerate(defense.strategies().items())
    }
    return {"strategies": strategies, "noise_field": noise_field(plugin), "private": promised != (None, None)}


def _strategy(name: str, strategy: AdaptiveStrategy, *, idle: bool) -> StrategyEntry:
    """Return the catalog entry of an adaptive strategy; `idle`: whether it does the same as a naive attacker."""
    computed: dict[str, Any] = {"title": strategy.title or name, "idle": idle, "imitating": strategy.only_imitates and not idle}
    names = [field.name for field in fields(StrategyEntry)]
    return StrategyEntry(**{name: computed[name] if name in computed else getattr(strategy, name) for name in names})


def noise_field(plugin: type[Defense]) -> str:
    """Return the name of the field that is a defense's noise multiplier for any number of tensors; "" if the defense has no such field."""
    for field in described(plugin):
        if field.type == "float" and field.low is not None and field.high is not None:
            value = field.low + 0.37 * min(1.0, field.high - field.low)  # inside the range
            if {plugin(**{field.name: value}).effective_noise_multiplier(tensors) for tensors in (1, 4)} == {value}:
                return field.name
    return ""


if __name__ == "__main__":  # part of the set-up, so that the first start need not wait for it
    write(PREPARED_CATALOG)
