"""Settings at a link: from the address into the widgets, and all that differs from its default into the address."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import streamlit as st

from leakage import checkpoints
from leakage.catalog import Catalog, Field
from leakage.spec import MAX_BATCH, MAX_ROUNDS, MAX_SECONDS, SIZES, VERSION
from leakage.ui import forms
from leakage.ui.stacks import typed

OTHERS = {  # widgets that belong to no plug-in
    "labels_known": Field("labels_known", "bool", forms.DEFAULT.assume.labels, ""),
    "seed": Field("seed", "int", forms.DEFAULT.seed, "", 0, 2**31 - 1),
    "max_seconds": Field("max_seconds", "int", forms.DEFAULT.max_seconds, "", 1, MAX_SECONDS),
    "batch": Field("batch", "int", 1, "", 1, MAX_BATCH),
    "offset": Field("offset", "int", 0, "", 0, 10**9),  # the data set says where it ends
}


def read_url(known: Catalog) -> None:
    """On a visitor's first run: widgets take their values from the address. What is not known or not allowed is passed over.

    The widgets are not bound to the address by Streamlit: it would write the titles of menus, and a link must outlive a better title;
    and it would not write what a preset or a link to runs has set, and forget that with the next reload.
    """
    state, asked = st.session_state, st.query_params
    for key, options in _menus(known).items():
        found = [option for option in options if str(option) == asked.get(key)]
        if found and key not in state:
            state[key] = found[0]
    for key, field in (*_fields(known), *OTHERS.items()):
        if key in asked and key not in state:
            with suppress(ValueError):  # of a free text its own widget tells what is wrong
                state[key] = asked[key] if field.syntax else field.check(typed(field.type, asked[key]), "address")


def write_url(known: Catalog) -> None:
    """Whatever differs from its default goes into the address, and the version that says which defaults were meant."""
    state, menus = st.session_state, _menus(known)
    chosen = {state.get(kind, options[0]) for kind, options in menus.items() if kind in (*forms.DEFAULTS, "aggregation")}
    usual: dict[str, Any] = {key: options[0] for key, options in menus.items()} | {key: field.default for key, field in OTHERS.items()}
    usual |= {key: field.default for key, field in _fields(known)}
    st.query_params["v"] = str(VERSION)
    for key, default in usual.items():
        entry, dot, _ = key.partition(".")
        value = state.get(key, default)
        if value == default or (dot and entry not in chosen):
            st.query_params.pop(key, None)
        elif st.query_params.get(key) != str(value):
            st.query_params[key] = str(value)


def _menus(known: Catalog) -> dict[str, list[Any]]:
    """The options of every menu, the default first."""
    menus: dict[str, list[Any]] = {
        kind: sorted((entry.id for entry in forms.offered(known, kind)), key=lambda name: name != default)
        for kind, default in forms.DEFAULTS.items()
    }
    return {
        **menus,
        "defense": [forms.NONE, *menus["defense"]],
        "checkpoint": [
            forms.UNTRAINED,
            *(f"{id}@{stage.rounds}" for id, card in checkpoints.cards().items() for stage in card.stages),
        ],
        "size": sorted(SIZES, key=lambda size: size != forms.DEFAULT.size),
        "channels": [forms.DEFAULT.channels, 1],
        "task": list(forms.TASKS),
        "batch_norm": list(forms.BATCH_NORM),
        "phones": list(range(1, forms.MAX_PHONES + 1)),
        **({"aggregation": over} if (over := [entry.id for entry in forms.aggregations(known)]) else {}),
        "rounds": list(range(1, MAX_ROUNDS + 1)),
        "attacked_round": list(range(1, MAX_ROUNDS + 1)),
        "adaptive": list(forms.ADAPTIVE),
        "counter": [forms.USUAL, *dict.fromkeys(name for entry in known.of("defense") for name in list(entry.counters)[1:])],
        "statistics": list(forms.STATISTICS),
        "source": list(forms.SOURCES),
    }


def _fields(known: Catalog) -> Iterator[tuple[str, Field]]:
    """The fields of all plug-ins by the keys of their widgets."""
    for entry in known.entries:
        for field in entry.fields:
            yield f"{entry.id}.{field.name}", field
