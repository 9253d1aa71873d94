"""The only list of names that files, stores and addresses of earlier versions use. No torch."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import AliasChoices

from leakage.spec.words import NOT_SHOWN, PARTLY, RECOGNIZABLE

EARLIER = {  # field today -> what it was called
    "adaptive": ("defense",),  # until 0.2
    "strategy": ("counter",),  # until 0.2
    "timing_key": ("like",),  # until 0.2
    "clients": ("phones",),  # of a question, until 0.2
}

EARLIER_PLUGINS = {  # id of a plug-in today -> what it was called until 0.2; digests go on using that id
    "sme": "surrogate_model",
    "spear": "exact_batches",
}
PLUGIN_KEYS = (
    "attack",
    "aggregation",
    "check",
    "defense",
    "model",
    "protocol",
    "server",
)  # keys of an address with the id of a plug-in as value

RESTARTS, FRACTION = {"restarts": "tries"}, {"fraction": "share"}
EARLIER_PLUGIN_FIELDS = {  # id of a plug-in -> its field today -> what it was called until 0.2; digests go on using that name
    "dp_sgd": {"noise_multiplier": "sigma", "max_grad_norm": "clip"},
    "fed_cdp": {"noise_multiplier": "sigma"},
    "flower_central_dp": {"clipping_norm": "clip"},
    "flower_local_dp": {"clipping_norm": "clip"},
    **dict.fromkeys(("dlg", "dlg_admm", "h_gap", "idlg", "idlg_admm"), RESTARTS),
    **dict.fromkeys(("pruning", "soteria"), FRACTION),
    "inverting_gradients": {"clamped": "boxed"},
    "ring_all_reduce": {"clients_before": "place"},
}

EARLIER_VERDICTS = {  # until 0.2
    "recognisable": RECOGNIZABLE,
    "partly recognisable": PARTLY,
    "not recognisable": NOT_SHOWN,
}

LAB_RUN = "r02"  # the recorded run with which the Lab opens
EARLIER_RUNS = dict.fromkeys(  # until 0.2 it had a new id with every recording
    (
        *("1XNF97x3pAYlBOUz", "5q2xguPLPj2rgbPk", "5rvDWOueJdIvVC77", "Ae0TBPQi6ou83eyH", "BKc6YftMF7m-UV63"),
        *("R4Lw0pPr91Kpz51V", "cvEWk_pO69BEBQyT", "oqZUK4keesSoZ7ud", "uzIQBq9Rjh8enReE", "z26tbcjOL8ztbPVI"),
    ),
    LAB_RUN,
)


Value = TypeVar("Value")


def plugin_today(plugin: str) -> str:
    """Return today's id of a plug-in, which may be given under an earlier id; any other text is returned as it is.

    >>> plugin_today("exact_batches"), plugin_today("spear")
    ('spear', 'spear')
    """
    return next((today for today, earlier in EARLIER_PLUGINS.items() if plugin == earlier), plugin)


def plugin_at_first(plugin: str) -> str:
    """Return the id that a plug-in of today had in the first version, from which digests are computed.

    >>> plugin_at_first("spear"), plugin_at_first("dlg")
    ('exact_batches', 'dlg')
    """
    return EARLIER_PLUGINS.get(plugin, plugin)


def fields_today(plugin: str, fields: Mapping[str, Value]) -> dict[str, Value]:
    """Return a plug-in's fields under today's names.

    >>> fields_today("dp_sgd", {"clip": 2.0, "sigma": 0.1})
    {'max_grad_norm': 2.0, 'noise_multiplier': 0.1}
    """
    today = {earlier: name for name, earlier in EARLIER_PLUGIN_FIELDS.get(plugin, {}).items() if name not in fields}
    return {today.get(name, name): value for name, value in fields.items()}


def fields_at_first(plugin: str, fields: Mapping[str, Value]) -> dict[str, Value]:
    """Return a plug-in's fields under the names of the first version, from which digests are computed.

    >>> fields_at_first("dp_sgd", {"max_grad_norm": 2.0, "noise_multiplier": 0.1})
    {'clip': 2.0, 'sigma': 0.1}
    """
    return {EARLIER_PLUGIN_FIELDS.get(plugin, {}).get(name, name): value for name, value in fields.items()}


def setting_today(key: str) -> str:
    """Return a key of an address, or another name of a setting, with today's names of the plug-in and of its field.

    >>> setting_today("dp_sgd.sigma"), setting_today("exact_batches.search"), setting_today("seed")
    ('dp_sgd.noise_multiplier', 'spear.search', 'seed')
    """
    plugin, dot, name = key.partition(".")
    if not dot:
        return key
    plugin = plugin_today(plugin)
    return plugin + dot + next(iter(fields_today(plugin, {name: None})))


def settings_today(address: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of an address under today's names of plug-ins and fields.

    If a setting has both names, the value under today's name counts.
    """
    today = {key: plugin_today(value) if key in PLUGIN_KEYS else value for key, value in address.items()}
    return {setting_today(key): value for key, value in today.items()} | {
        key: value for key, value in today.items() if setting_today(key) == key
    }


def verdict_today(word: str) -> str:
    """Return today's word for a verdict, which an earlier version may have written."""
    return EARLIER_VERDICTS.get(word, word)


def names_of(name: str) -> tuple[str, ...]:
    """Return a field's name today and its earlier names, in this order."""
    return name, *EARLIER[name]


def also_as_before(name: str) -> AliasChoices:
    """Return aliases with which pydantic reads a field under today's name and earlier names; it is written under today's name."""
    return AliasChoices(*names_of(name))
