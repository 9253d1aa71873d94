"""The catalog of the plug-ins on disk, written as data, so that pages need not import plug-ins."""

import inspect
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from leakage.engine.core import AdaptiveStrategy, Defense
from leakage.engine.loading import ids, load
from leakage.engine.plugin import described
from leakage.spec.catalog import ENTRIES, Catalog, StrategyEntry, make_catalog, text, version
from leakage.spec.fields import KINDS


def write(path: Path) -> Catalog:
    """Import every plug-in, write the catalog of their declarations to `path`, and return it."""
    catalog = describe()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(text(catalog))
    fresh.replace(path)
    return catalog


def describe() -> Catalog:
    """Import the plug-ins on disk and return their catalog."""
    return make_catalog(version(), {folder: [_entry(kind, name) for name in ids(kind)] for kind, folder in KINDS.items()})


def _entry(kind: str, name: str) -> dict[str, Any]:
    """Return the fields of a plug-in's catalog entry: some are computed here, the others are the plug-in's declarations."""
    plugin = load(kind, name)
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
    """Return the catalog entry of one strategy."""
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
