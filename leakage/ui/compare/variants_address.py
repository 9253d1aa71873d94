"""The variants of a comparison at a link: what differs, from and into the address, and the widgets set to runs that were asked before."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from leakage.results import worst_case
from leakage.results.comparison_plan import SEEDS, WORST
from leakage.results.defense_keys import key_of, key_today, known_keys, parse_key
from leakage.results.differences import attacker
from leakage.results.strength_sweep import find_sweep
from leakage.results.variant import MOST
from leakage.spec.aliases import setting_today
from leakage.spec.catalog import Catalog, CatalogError
from leakage.spec.experiment import Experiment
from leakage.ui.common import forms
from leakage.ui.common.misread import short
from leakage.ui.compare import client_axes
from leakage.ui.compare.variants import ATTACKER_CHOICES, BATCHES, DIFFERS, LISTS, SHARED, TRIED

BETWEEN = {"answers": "|"}  # the names of answers have commas
MENUS = tuple(dict.fromkeys(key for keys in LISTS.values() for key in keys))


def asks() -> bool:
    """Whether the address has settings, and not only runs: a version, or, where no runs are named, any of this page's keys."""
    own = {"differs", "voices", "seeds", "swept", *MENUS, *SHARED, *forms.DEFAULTS}
    return "v" in st.query_params or ("runs" not in st.query_params and any(key in own or "." in key for key in st.query_params))


def read_url(known: Catalog) -> None:
    """What differs and in which arms, from the address, on a visitor's first run; what is not known here is passed over."""
    state, asked = st.session_state, _with_names_today(st.query_params.to_dict())
    for key, options in (("differs", DIFFERS), ("voices", ATTACKER_CHOICES), ("seeds", SEEDS)):
        for option in options:
            if str(option) == asked.get(key):
                state[key] = option
    lists: dict[str, list[Any]] = {key: asked[key].split(BETWEEN.get(key, ",")) for key in (*MENUS, "protected") if key in asked}
    for key in {"arms", "protected"} & set(lists):
        state[key] = known_keys(lists[key], known)[:MOST]
    if "attacks" in lists:
        state["attacks"] = [id for id in lists["attacks"] if id in {entry.id for entry in known.attacks}][:MOST]
    if "sizes" in lists:
        state["sizes"] = [size for size in BATCHES if str(size) in lists["sizes"]]
    if "states" in lists:
        state["states"] = lists["states"][:MOST]
    for key in set(client_axes.KEYS.values()) & set(lists):  # what is no such number is named by the widget
        state[key] = [short(word) for word in dict.fromkeys(lists[key])][:MOST]
    if "answers" in lists:
        names = {name for entry in known.defenses for name in entry.strategies}
        state["answers"] = [name for name in lists["answers"] if not name or name in names][:MOST]
    if found := known_keys([asked.get("answered", "")], known):
        state["answered"] = found[0]
    if "swept" in asked:
        entry, _, name = asked["swept"].partition(".")
        with suppress(CatalogError):
            if any(field.name == name and field.type in ("int", "float") for field in known.defenses.get(entry).fields):
                state["swept"] = asked["swept"]
                state.update({f"values.{asked['swept']}": asked["values"]} if "values" in asked else {})


def _with_names_today(asked: Mapping[str, str]) -> dict[str, str]:
    """Return an address with today's names of fields in its protections and in the strength that is swept."""
    today = {key: key_today for key in ("arms", "protected", "answered")} | {"swept": setting_today}
    return {key: ",".join(map(today[key], value.split(","))) if key in today else value for key, value in asked.items()}


def misread(asked: Mapping[str, str], known: Catalog) -> Iterator[str]:
    """What of that is not as the link asked for it, once the page is drawn; values of a strength are named by their own widget."""
    state, asked = st.session_state, _with_names_today(asked)
    words: dict[str, Mapping[Any, str]] = {"differs": DIFFERS, "voices": ATTACKER_CHOICES}
    for key in ("differs", "voices", "seeds", "swept", "answered"):
        if key in asked and key in state and str(state[key]) != asked[key]:
            used = words.get(key, {}).get(state[key], str(state[key]))
            yield f"{key}={short(asked[key])} cannot be used here; {used} is used instead{_reason(asked[key], known, key)}."
    for key in (*MENUS, "protected"):
        between = BETWEEN.get(key, ",")
        for item in dict.fromkeys(asked[key].split(between) if key in asked else ()):
            if key in state and item not in map(str, state[key]):
                yield f"{key}: {short(item)} cannot be used here and is left out{_reason(item, known, key)}."


def _reason(item: str, known: Catalog, key: str) -> str:
    """Why a protection is none, in brackets."""
    try:
        if key in ("arms", *SHARED):
            parse_key(item, known)
    except ValueError as error:
        return f" ({short(str(error).removesuffix('.'))})"
    return ""


def address_fields() -> dict[str, str | None]:
    """What differs, and the arms of it, for the address; None for what belongs to another choice."""
    state = st.session_state
    differs = state.get("differs", "")
    keys = LISTS.get(differs, ())
    if not all(key in state for key in keys or ["swept"]):  # without a picture nothing was asked
        return {}
    kept = {"differs": differs, "voices": state.get("voices", WORST)}
    kept |= {key: BETWEEN.get(key, ",").join(map(str, state[key])) for key in [*keys, *(["protected"] if state.get("protected") else [])]}
    if differs == "answer":
        kept["answered"] = state["answered"]
    if differs == "strength":
        kept |= {"swept": state["swept"], "values": state[f"values.{state['swept']}"], "seeds": str(state["seeds"])}
    return {key: kept.get(key) for key in ("differs", "voices", *MENUS, *SHARED, "swept", "values", "seeds")}


def load(experiments: Sequence[Experiment], known: Catalog) -> None:
    """The settings of a comparison that was run into the widgets (call it before they are drawn)."""
    state = st.session_state
    forms.load(max(experiments, key=lambda one: len(one.pictures)))
    found: dict[str, list[Any]] = {
        "protection": list(dict.fromkeys(key_of(one.defenses, known) for one in experiments)),
        "attack": list(dict.fromkeys(one.attack.id for one in experiments)),
        "answer": list(dict.fromkeys(one.assume.strategy for one in experiments if attacker(one, known) == "adaptive")),
        "batch": sorted({len(one.pictures) for one in experiments} & set(BATCHES)),
        "training": list(dict.fromkeys(one.checkpoint for one in experiments)),
        **{about: client_axes.values_of(about, experiments, known) for about in client_axes.KEYS},
    }
    tried = worst_case.are_strongest_attacks(experiments, known)
    apart = [about for about, values in found.items() if len(values) > 1 and not (tried and about not in TRIED)] or ["protection"]
    differs = "matrix" if apart[:2] == ["protection", "attack"] else apart[0]
    state["differs"] = differs
    for about in apart[: len(LISTS[differs])]:
        state[LISTS[about][0]] = found[about][:MOST]
    if differs == "rounds":  # their widgets are not drawn
        state.update({"rounds": 1, "attacked_round": 1})
    shared = () if apart[0] == "protection" else experiments[0].defenses
    state["protected"] = known_keys([key_of((part,), known) for part in shared], known)
    if differs == "answer":
        state["answered"] = key_of(experiments[0].defenses, known)
    if found_sweep := find_sweep(experiments):
        with suppress(CatalogError):  # the protection is gone since
            _load_sweep(*found_sweep, experiments, known)
    heard = {attacker(one, known) for one in experiments} - {"both"}
    state["voices"] = WORST if tried else next(iter(heard)) if len(heard) == 1 else "both"


def _load_sweep(id: str, name: str, values: Sequence[float], experiments: Sequence[Experiment], known: Catalog) -> None:
    """A strength that differs, where the widgets can say it: of the last protection, its other fields as usual."""
    *others, last = experiments[0].defenses
    usual = known.defenses.get(last.id).resolve({name: last.fields[name]}) if last.id == id else None
    if usual != last.fields:
        return
    first, seeds = min(one.seed for one in experiments), len({one.seed for one in experiments})
    st.session_state.update(
        {
            "differs": "strength",
            "swept": f"{id}.{name}",
            f"values.{id}.{name}": ", ".join(f"{value:g}" for value in dict.fromkeys(values)),
            "seeds": next((number for number in SEEDS if number >= seeds), SEEDS[-1]),
            "seed": first,
            "protected": known_keys([key_of((part,), known) for part in others], known),
        }
    )
