"""Settings at a link: from the address into the widgets, and all that differs from its default into the address; and the way back."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from leakage.data import checkpoints
from leakage.spec.aliases import settings_today
from leakage.spec.catalog import Catalog, Field
from leakage.spec.experiment import MAX_BATCH, MAX_ROUNDS, MAX_SECONDS, SIZES, VERSION
from leakage.spec.lab_settings import NONE, PICKED, lab_settings
from leakage.spec.plugin_menu import menu_entries
from leakage.spec.refusals import MAX_CLASSES
from leakage.ui.common import forms, misread
from leakage.ui.common.session import BEFORE

NEXT = "next-address"  # in session state: what else the address is to say when it is written next, as {"run": its id}; None: no more
OPENING = "opening"  # in session state: what a page shows that was opened without any settings in its address
ALONE = {"run", "runs"}  # keys of an address that say all by themselves: the settings are those of the runs
USUAL_PICTURES = lab_settings(forms.DEFAULT)[PICKED]
WHOLE = ("gallery", "upload")  # sources that are shown whole
OTHERS = {  # widgets that belong to no plug-in
    "labels_known": Field("labels_known", "bool", forms.DEFAULT.assume.labels, ""),
    "examples": Field("examples", "bool", forms.DEFAULT.assume.examples, ""),
    "seed": Field("seed", "int", forms.DEFAULT.seed, "", 0, 2**31 - 1),
    "max_seconds": Field("max_seconds", "int", forms.DEFAULT.max_seconds, "", 1, MAX_SECONDS),
    "batch": Field("batch", "int", 1, "", 1, MAX_BATCH),
    "outputs": Field("outputs", "int", forms.DEFAULT.outputs, "", 0, MAX_CLASSES),
    "offset": Field("offset", "int", 0, "", 0, 10**9),  # the data set says where it ends
}


def went_through_history() -> bool:
    """Whether the browser's Back or Forward led here: then the address, and no widget, says what was meant."""
    return bool(getattr(get_script_run_ctx(), "is_history_navigation", False))


def read_url(known: Catalog, *, again: bool = False) -> None:
    """Before a page is drawn for the first time: widgets take their values from the address. `tell_misread` names what cannot be taken.

    `again`: it has been drawn before, so that all which the address does not name becomes as usual.

    The widgets are not bound to the address by Streamlit: it would write the titles of menus, and a link must outlive a better title;
    and it would not write what a preset or a link to runs has set, and forget that with the next reload.
    """
    state, asked = st.session_state, settings_today(st.query_params.to_dict())
    if again:
        classes = state.get("classes", {})  # of uploads, which no address names
        forms.put_defaults(known)
        state["classes"] = classes
    state[misread.ASKED] = asked
    state.pop(OPENING, None)
    for key, options in _menus(known).items():
        if found := [option for option in options if str(option) == asked.get(key)]:
            state[key] = found[0]
    for key, field in (*_fields(known), *OTHERS.items()):
        if key in asked:
            with suppress(ValueError):  # of a free text its own widget tells what is wrong
                state[key] = asked[key] if field.syntax else field.read(asked[key], "address")
    if named := [name for name in asked.get(PICKED, "").split(",") if name]:
        state[PICKED] = named
        state["batch"] = max(len(named), state.get("batch", 1))  # fewer are filled up


def reset(known: Catalog) -> None:
    """Back to the defaults, in the widgets and in the URL; the shown run leaves the page too."""
    forms.put_defaults(known)
    st.session_state.pop(BEFORE, None)
    st.session_state[NEXT] = {"run": None}


def tell_misread(place: DeltaGenerator, known: Catalog, *, without: Collection[str] = (), more: misread.More | None = None) -> None:
    """After `write_url`: what the link asked for and did not get, in one warning, until a setting changes.

    `without`: menus that the page does not have. `more`: what else the page reads of its address.
    """
    menus = {key: options for key, options in _menus(known).items() if key not in without}
    misread.tell(place, menus, {**dict(_fields(known)), **OTHERS}, known, more)


def write_url(known: Catalog, *, without: Collection[str] = (), more: Mapping[str, str | None] | None = None) -> None:
    """Whatever differs from its default goes into the address, and the version that says which defaults were meant.

    `without`: menus that the page does not have. `more`: what else to write; None takes a key out.
    All at once, with the run that was started: a change is one step of the browser's history, however many settings go with it.
    A page that was opened without settings, or by a link to runs, leaves its address alone until something is changed: coming there is
    one step, not two.
    """
    state, menus, fields = st.session_state, _menus(known), dict(_fields(known))
    usual: dict[str, Any] = {key: options[0] for key, options in menus.items()}
    usual |= {key: field.default for key, field in (*fields.items(), *OTHERS.items())}
    chosen = {state.get(kind, usual.get(kind)) for kind in {*forms.DEFAULTS, "aggregation"} - {*without}}
    idle = {*without, *(key for key in fields if key.split(".")[0] not in chosen)}
    idle |= {"offset"} if state.get("source") in WHOLE else set()
    told: dict[str, str | None] = {
        key: None if key in idle or state.get(key, value) == value else str(state[key]) for key, value in usual.items()
    }
    if PICKED in state:  # a source other than the usual one begins with a picture of its own
        told[PICKED] = None if state[PICKED] == USUAL_PICTURES and told["source"] is None else ",".join(state[PICKED])
        told["batch"] = None  # so many as are named
    told |= more or {}
    written = st.query_params.to_dict()
    before, also = settings_today(written), state.pop(NEXT, {})
    unasked = ALONE.issuperset(before) and all(before.get(key) == value for key, value in also.items())
    if unasked and told == state.setdefault(OPENING, told):
        return
    after = {key: value for key, value in {**before, "v": str(VERSION), **told, **also}.items() if value is not None}
    if after != written:
        st.query_params.from_dict(after)


def _menus(known: Catalog) -> dict[str, list[Any]]:
    """The options of every menu, the default first."""
    menus: dict[str, list[Any]] = {
        kind: sorted((entry.id for entry in menu_entries(known, kind)), key=lambda name: name != default)
        for kind, default in forms.DEFAULTS.items()
    }
    return {
        **menus,
        "defense": [NONE, *menus["defense"]],
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
        **({"aggregation": over} if (over := [entry.id for entry in known.aggregations]) else {}),
        "rounds": list(range(1, MAX_ROUNDS + 1)),
        "attacked_round": list(range(1, MAX_ROUNDS + 1)),
        "adaptive": list(forms.ADAPTIVE),
        "counter": [forms.USUAL, *dict.fromkeys(name for entry in known.defenses for name in list(entry.strategies)[1:])],
        "statistics": list(forms.STATISTICS),
        "accomplice": forms.accomplices(),
        "source": list(forms.SOURCES),
    }


def _fields(known: Catalog) -> Iterator[tuple[str, Field]]:
    """The fields of all plug-ins by the keys of their widgets."""
    for entry in known.entries:
        for field in entry.fields:
            yield f"{entry.id}.{field.name}", field
