"""The plug-ins on disk, imported and written down as data, so that pages need not import them."""

import inspect
import json
import os
from dataclasses import asdict
from pathlib import Path

from leakage.engine.core import Defense
from leakage.engine.loading import ids, load
from leakage.engine.plugin import described
from leakage.spec.catalog import Catalog, Entry, version
from leakage.spec.fields import KINDS, Travels


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
    return Catalog(version=version(), entries=tuple(_entry(kind, name) for kind in KINDS for name in ids(kind)))


def _entry(kind: str, name: str) -> Entry:
    plugin = load(kind, name)
    strategies = plugin().strategies() if kind == "defense" else {}
    idle = kind == "defense" and plugin.surrogate is Defense.surrogate
    return Entry(
        kind=kind,
        id=name,
        title=plugin.title,
        short=plugin.short or plugin.title,
        plain=plugin.plain,
        hint=plugin.hint,
        source=plugin.source,
        doc=inspect.cleandoc(plugin.__doc__ or ""),
        evaluations_per_step=getattr(plugin, "evaluations_per_step", 0),
        mistakes=dict(getattr(plugin, "mistakes", {})),
        strongest=None if (fields := getattr(plugin, "strongest", None)) is None else dict(fields),
        in_place_of_steps=getattr(plugin, "in_place_of_steps", ""),
        learned=getattr(plugin, "learned", False),
        ends_without=getattr(plugin, "ends_without", ""),
        fits={about: list(allowed) for about, allowed in getattr(plugin, "fits", {}).items()},
        reads_labels=getattr(plugin, "reads_labels", False),
        strategies={name: strategy.words for name, strategy in strategies.items()},
        strategy_titles={name: strategy.title for name, strategy in strategies.items() if strategy.title},
        idle=idle,
        averaging=[name for name, strategy in strategies.items() if strategy.averaging],
        colluding=[name for name, strategy in strategies.items() if strategy.colluding],
        imitating=[name for place, (name, own) in enumerate(strategies.items()) if own.only_imitates and not (idle and place == 0)],
        literal=[name for name, strategy in strategies.items() if strategy.exact or strategy.invert_update],
        stage=getattr(plugin, "stage", ""),
        needs=dict(getattr(plugin, "needs", {})),
        needs_structure=dict(getattr(plugin, "needs_structure", {})),
        one_by_one=getattr(plugin, "one_by_one", False),
        needs_step=getattr(plugin, "needs_step", ""),
        published=getattr(plugin, "published", None),
        noise_field=noise_field(plugin) if kind == "defense" else "",
        private=kind == "defense" and any(own is not None for own in (plugin().effective_noise_multiplier(1), plugin().pure_epsilon(1))),
        backfires=getattr(plugin, "backfires", ""),
        smallest=getattr(plugin, "smallest", 0),
        smallest_alone=getattr(plugin, "smallest_alone", 0),
        structure=list(getattr(plugin, "structure", ())),
        is_aggregation=getattr(plugin, "is_aggregation", False),
        sends_gradient=getattr(plugin, "sends_gradient", False),
        travels=getattr(plugin, "travels", Travels()),
        presets={name: dict(values) for name, values in plugin.presets.items()},
        fields=described(plugin),
    )


def noise_field(plugin: type[Defense]) -> str:
    """Which field of a defense is its noise multiplier as it stands, however many tensors there are; "" where none is."""
    for field in described(plugin):
        if field.type == "float" and field.low is not None and field.high is not None:
            value = field.low + 0.37 * min(1.0, field.high - field.low)  # inside the range
            if {plugin(**{field.name: value}).effective_noise_multiplier(tensors) for tensors in (1, 4)} == {value}:
                return field.name
    return ""
