"""The plug-ins on disk, imported and written down as data, so that pages need not import them."""

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
    """Import every plug-in and write what they declare.

    Args:
        path: where `leakage.spec.catalog.read` finds it.

    Returns:
        The catalog as it was written.
    """
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
    """Return the catalog entry of a plug-in: what is computed about it here, and else what it declares."""
    plugin = load(kind, name)
    found: dict[str, Any] = {"id": name, "short": plugin.short or plugin.title, "doc": inspect.cleandoc(plugin.__doc__ or "")}
    found |= {"fields": described(plugin), **(_defense(plugin) if kind == "defense" else {})}
    return {field: found[field] if field in found else getattr(plugin, field) for field in ENTRIES[kind].model_fields}


def _defense(plugin: type[Defense]) -> dict[str, Any]:
    """Compute what the catalog says of a defense with its default fields."""
    own = plugin()
    promised = own.effective_noise_multiplier(1), own.pure_epsilon(1)
    strategies = {
        name: _strategy(name, strategy, idle=index == 0 and plugin.surrogate is Defense.surrogate)
        for index, (name, strategy) in enumerate(own.strategies().items())
    }
    return {"strategies": strategies, "noise_field": noise_field(plugin), "private": promised != (None, None)}


def _strategy(name: str, strategy: AdaptiveStrategy, *, idle: bool) -> StrategyEntry:
    """Return the catalog entry of one strategy."""
    found: dict[str, Any] = {"title": strategy.title or name, "idle": idle, "imitating": strategy.only_imitates and not idle}
    return StrategyEntry(
        **{field.name: found[field.name] if field.name in found else getattr(strategy, field.name) for field in fields(StrategyEntry)}
    )


def noise_field(plugin: type[Defense]) -> str:
    """Return the field of a defense that is its noise multiplier, whatever the number of tensors; "" where no field is."""
    for field in described(plugin):
        if field.type == "float" and field.low is not None and field.high is not None:
            value = field.low + 0.37 * min(1.0, field.high - field.low)  # inside the range
            if {plugin(**{field.name: value}).effective_noise_multiplier(tensors) for tensors in (1, 4)} == {value}:
                return field.name
    return ""
