"""Links to settings: read an address into the widgets, and write every setting that differs from its default into the address."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from leakage.data import checkpoints
from leakage.spec.aliases import settings_today
from leakage.spec.catalog import Catalog, Field
from leakage.spec.experiment import MAX_BATCH, MAX_CHECKS, MAX_ROUNDS, MAX_SECONDS, SIZES, VERSION
from leakage.spec.lab_settings import CHECKS, NONE, PICKED, lab_settings
from leakage.spec.plugin_menu import menu_entries
from leakage.spec.refusals import MAX_CLASSES
from leakage.ui.common import forms, misread
from leakage.ui.common.session import BEFORE

NEXT = "next-address"  # in session state: keys that `write_url` adds next time, such as {"run": id}; a value of None removes the key
OPENING = "opening"  # in session state: the settings of a page that was opened without any settings in its address
RUN_KEYS = {"run", "runs"}  # keys of an address that need no settings beside them: the settings are those of the runs
USUAL_PICTURES = lab_settings(forms.DEFAULT)[PICKED]
COMPLETE = ("gallery", "upload")  # sources of which the page shows all pictures at once
OTHERS = {  # widgets that belong to no plug-in, by their keys
    "labels_known": Field("labels_known", "bool", forms.DEFAULT.assume.labels, ""),
    "refuse": Field("refuse", "bool", forms.DEFAULT.refuse, ""),
    "examples": Field("examples", "bool", forms.DEFAULT.assume.examples, ""),
    "seed": Field("seed", "int", forms.DEFAULT.seed, "", 0, 2**31 - 1),
    "max_seconds": Field("max_seconds", "int", forms.DEFAULT.max_seconds, "", 1, MAX_SECONDS),
    "batch": Field("batch", "int", 1, "", 1, MAX_BATCH),
    "outputs": Field("outputs", "int", forms.DEFAULT.outputs, "", 0, MAX_CLASSES),
    "offset": Field("offset", "int", 0, "", 0, 10**9),  # the data set limits it further
}


def went_through_history() -> bool:
    """Return whether the visitor came here by the browser's Back or Forward; then the address decides the settings, not the widgets."""
    return bool(getattr(get_script_run_ctx(), "is_history_navigation", False))


def read_url(known: Catalog, *, again: bool = False) -> None:
    """Set the widgets to the values in the page's address (URL), before the page draws them.

    Values that cannot be used are skipped; `tell_misread` names them later.

    Streamlit could bind widgets to the address itself, but it would write the titles of menus there, and a link must still work after a
    title has changed. It would also not write the settings that a preset or a link to runs has set, so that a reload would lose them.

    Args:
        known: The catalog of plug-ins.
        again: The page has been drawn before. Every setting that the address does not name then returns to its default.
    """
    state, asked = st.session_state, settings_today(st.query_params.to_dict())
    if again:
        classes = state.get("classes", {})  # the classes of uploads, which no address names
        forms.put_defaults(known)
        state["classes"] = classes
    state[misread.ASKED] = asked
    state.pop(OPENING, None)
    for key, options in _menus(known).items():
        if matching := [option for option in options if str(option) == asked.get(key)]:
            state[key] = matching[0]
    for key, field in (*_fields(known), *OTHERS.items()):
        if key in asked:
            with suppress(ValueError):  # the widget of a free text reports errors itself
                state[key] = asked[key] if field.syntax else field.read(asked[key], "address")
    if CHECKS in asked:
        state[CHECKS] = [name for name in dict.fromkeys(asked[CHECKS].split(",")) if known.checks.find(name)][:MAX_CHECKS]
    if named := [name for name in asked.get(PICKED, "").split(",") if name]:
        state[PICKED] = named
        state["batch"] = max(len(named), state.get("batch", 1))  # the chooser adds pictures where fewer are named


def reset(known: Catalog) -> None:
    """Reset the widgets and the address to the defaults, and remove the shown run from the page."""
    forms.put_defaults(known)
    st.session_state.pop(BEFORE, None)
    st.session_state[NEXT] = {"run": None}


def tell_misread(place: DeltaGenerator, known: Catalog, *, without: Collection[str] = (), more: misread.More | None = None) -> None:
    """Show one warning that lists the values of the page's address (URL) that could not be used, until a setting changes.

    Call it after `write_url`.

    Args:
        place: Where the warning appears.
        known: The catalog of plug-ins.
        without: Menus that the page does not have.
        more: Yields further sentences, about keys of the address that only this page reads.
    """
    menus = {key: options for key, options in _menus(known).items() if key not in without}
    misread.show_warning(place, menus, {**dict(_fields(known)), **OTHERS}, known, more)


def write_url(known: Catalog, *, without: Collection[str] = (), more: Mapping[str, str | None] | None = None) -> None:
    """Write every setting that differs from its default into the page's address (URL), with a version number that fixes the defaults.

    All keys are written at once, with the run that was started, so that a change is a single step of the browser's history. A page that
    was opened without settings, or by a link to runs, keeps its address until a setting changes, so that opening it is one step, not two.

    Args:
        known: The catalog of plug-ins.
        without: Menus that the page does not have.
        more: Further keys to write; a value of None removes the key.
    """
    state, menus, fields = st.session_state, _menus(known), dict(_fields(known))
    usual: dict[str, Any] = {key: options[0] for key, options in menus.items()}
    usual |= {key: field.default for key, field in (*fields.items(), *OTHERS.items())}
    chosen = {state.get(kind, usual.get(kind)) for kind in {*forms.DEFAULTS, "aggregation"} - {*without}} | {*state.get(CHECKS, ())}
    idle = {*without, *(key for key in fields if key.split(".")[0] not in chosen)}
    idle |= {"offset"} if state.get("source") in COMPLETE else set()
    entries: dict[str, str | None] = {
        key: None if key in idle or state.get(key, value) == value else str(state[key]) for key, value in usual.items()
    }
    entries[CHECKS] = ",".join(state.get(CHECKS, ())) or None
    if PICKED in state:  # the usual pictures are left out beside the usual source only: other sources begin with other pictures
        entries[PICKED] = None if state[PICKED] == USUAL_PICTURES and entries["source"] is None else ",".join(state[PICKED])
        entries["batch"] = None  # the number of named pictures says it
    entries |= more or {}
    written = st.query_params.to_dict()
    before, added = settings_today(written), state.pop(NEXT, {})
    without_settings = RUN_KEYS.issuperset(before) and all(before.get(key) == value for key, value in added.items())
    if without_settings and entries == state.setdefault(OPENING, entries):
        return
    after = {key: value for key, value in {**before, "v": str(VERSION), **entries, **added}.items() if value is not None}
    if after != written:
        st.query_params.from_dict(after)


def _menus(known: Catalog) -> dict[str, list[Any]]:
    """Return the options of every menu by the key of its widget, the default first."""
    menus: dict[str, list[Any]] = {
        kind: sorted((entry.id for entry in menu_entries(known, kind)), key=lambda name: name != default)
        for kind, default in forms.DEFAULTS.items()
    }
    return {
        **menus,
        **{kind: [NONE, *menus[kind]] for kind in forms.WITHOUT},
        "checkpoint": [
            forms.UNTRAINED,
            *(f"{id}@{stage.rounds}" for id, card in checkpoints.cards().items() for stage in card.stages),
        ],
        "size": sorted(SIZES, key=lambda size: size != forms.DEFAULT.size),
        "channels": [forms.DEFAULT.channels, 1],
        "task": list(forms.TASKS),
        "loss": list(forms.LOSSES),
        "batch_norm": list(forms.BATCH_NORM),
        "phones": list(range(1, forms.MAX_PHONES + 1)),
        **({"aggregation": ids} if (ids := [entry.id for entry in known.aggregations]) else {}),
        "rounds": list(range(1, MAX_ROUNDS + 1)),
        "attacked_round": list(range(1, MAX_ROUNDS + 1)),
        "adaptive": list(forms.ADAPTIVE),
        "counter": [forms.USUAL, *dict.fromkeys(name for entry in known.defenses for name in list(entry.strategies)[1:])],
        "statistics": list(forms.STATISTICS),
        "accomplice": forms.accomplice_options(),
        "source": list(forms.SOURCES),
    }


def _fields(known: Catalog) -> Iterator[tuple[str, Field]]:
    """Yield the fields of all plug-ins, each with the key of its widget."""
    for entry in known.entries:
        for field in entry.fields:
            yield f"{entry.id}.{field.name}", field
