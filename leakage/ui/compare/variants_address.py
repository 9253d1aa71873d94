"""The variants of a comparison in the address: read and write what differs, and set the widgets to a comparison that was run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from leakage.results import worst_case
from leakage.results.comparison_plan import SEEDS, WORST
from leakage.results.defense_keys import key_of, key_today, known_keys, parse_key
from leakage.results.differences import attacker
from leakage.results.server_variants import differ_in_server
from leakage.results.strength_sweep import find_sweep
from leakage.results.variant import MOST
from leakage.spec.aliases import plugin_today, setting_today
from leakage.spec.catalog import Catalog, CatalogError
from leakage.spec.experiment import Experiment
from leakage.spec.lab_settings import NONE
from leakage.ui.common import forms
from leakage.ui.common.misread import short
from leakage.ui.compare import client_axes, server_axis
from leakage.ui.compare.variants import ATTACKER_CHOICES, BATCHES, DIFFERS, LISTS, SHARED, TRIED

BETWEEN = {"answers": "|"}  # separator of a list, if it is not a comma: names of countermeasures contain commas
MENUS = tuple(dict.fromkeys(key for keys in LISTS.values() for key in keys))


def asks() -> bool:
    """Return whether the address has settings besides runs: a version, or without runs a key of this page."""
    page_keys = {"differs", "voices", "seeds", "swept", server_axis.HONEST_TOO, *MENUS, *SHARED, *forms.DEFAULTS}
    return "v" in st.query_params or ("runs" not in st.query_params and any(key in page_keys or "." in key for key in st.query_params))


def read_url(known: Catalog) -> None:
    """Set what differs, and its values, from the address on a visitor's first run; unknown values are ignored."""
    state, address = st.session_state, _with_names_today(st.query_params.to_dict())
    for key, options in (("differs", DIFFERS), ("voices", ATTACKER_CHOICES), ("seeds", SEEDS)):
        for option in options:
            if str(option) == address.get(key):
                state[key] = option
    lists: dict[str, list[Any]] = {key: address[key].split(BETWEEN.get(key, ",")) for key in (*MENUS, "protected") if key in address}
    for key in {"arms", "protected"} & set(lists):
        state[key] = known_keys(lists[key], known)[:MOST]
    if "attacks" in lists:
        state["attacks"] = [id for id in lists["attacks"] if id in {attack.id for attack in known.attacks}][:MOST]
    if server_axis.KEY in lists:
        state[server_axis.KEY] = [key for key in known_keys(lists[server_axis.KEY], known, "server") if key != NONE][: MOST - 1]
    if server_axis.HONEST_TOO in address:
        state[server_axis.HONEST_TOO] = address[server_axis.HONEST_TOO] != "false"
    if "sizes" in lists:
        state["sizes"] = [size for size in BATCHES if str(size) in lists["sizes"]]
    if "states" in lists:
        state["states"] = lists["states"][:MOST]
    for key in set(client_axes.KEYS.values()) & set(lists):  # the widget names each text that is not a number
        state[key] = [short(text) for text in dict.fromkeys(lists[key])][:MOST]
    if "answers" in lists:
        names = {name for defense in known.defenses for name in defense.strategies}
        state["answers"] = [name for name in lists["answers"] if not name or name in names][:MOST]
    if answered := known_keys([address.get("answered", "")], known):
        state["answered"] = answered[0]
    if "swept" in address:
        defense, _, name = address["swept"].partition(".")
        with suppress(CatalogError):
            if any(field.name == name and field.type in ("int", "float") for field in known.defenses.get(defense).fields):
                state["swept"] = address["swept"]
                state.update({f"values.{address['swept']}": address["values"]} if "values" in address else {})


def _with_names_today(address: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of an address (URL) with today's names of plug-ins and fields in attacks, protections and the swept strength."""
    today = {key: key_today for key in ("arms", "protected", "answered", server_axis.KEY)} | {
        "attacks": plugin_today,
        "swept": setting_today,
    }
    return {key: ",".join(map(today[key], value.split(","))) if key in today else value for key, value in address.items()}


def misread(address: Mapping[str, str], known: Catalog) -> Iterator[str]:
    """Yield a sentence for each value of the address that the drawn widgets do not have.

    Values of a strength are left out: their widget names them itself.
    """
    state, address = st.session_state, _with_names_today(address)
    titles_of: dict[str, Mapping[Any, str]] = {"differs": DIFFERS, "voices": ATTACKER_CHOICES}
    for key in ("differs", "voices", "seeds", "swept", "answered"):
        if key in address and key in state and str(state[key]) != address[key]:
            replacement = titles_of.get(key, {}).get(state[key], str(state[key]))
            yield f"{key}={short(address[key])} cannot be used here; {replacement} is used instead{_reason(address[key], known, key)}."
    for key in (*MENUS, "protected"):
        separator = BETWEEN.get(key, ",")
        for item in dict.fromkeys(address[key].split(separator) if key in address else ()):
            if key in state and item not in map(str, state[key]):
                yield f"{key}: {short(item)} cannot be used here and is left out{_reason(item, known, key)}."


def _reason(item: str, known: Catalog, key: str) -> str:
    """Return in brackets why an item is no protection or server; an empty string if it is, or if the key is about something else."""
    try:
        if key in ("arms", *SHARED):
            parse_key(item, known)
        if key == server_axis.KEY:
            parse_key(item, known, "server")
    except ValueError as error:
        return f" ({short(str(error).removesuffix('.'))})"
    return ""


def address_fields() -> dict[str, str | None]:
    """Return what differs and its values, for the address; None for a key that belongs to another choice."""
    state = st.session_state
    differs = state.get("differs", "")
    keys = LISTS.get(differs, ())
    if not all(key in state for key in keys or ["swept"]):  # without a picture the widgets were not drawn
        return {}
    kept = {"differs": differs, "voices": state.get("voices", WORST)}
    kept |= {key: BETWEEN.get(key, ",").join(map(str, state[key])) for key in [*keys, *(["protected"] if state.get("protected") else [])]}
    if state.get("server", NONE) != NONE and differs not in server_axis.ALONE:
        kept[server_axis.HONEST_TOO] = "true" if state.get(server_axis.HONEST_TOO, True) else "false"
    if differs == "answer":
        kept["answered"] = state["answered"]
    if differs == "strength":
        kept |= {"swept": state["swept"], "values": state[f"values.{state['swept']}"], "seeds": str(state["seeds"])}
    return {key: kept.get(key) for key in ("differs", "voices", *MENUS, *SHARED, "swept", "values", "seeds", server_axis.HONEST_TOO)}


def load(experiments: Sequence[Experiment], known: Catalog) -> None:
    """Set the widgets to a comparison that was run. Call it before the widgets are drawn."""
    honest, cheated = [each for each in experiments if each.server is None], [each for each in experiments if each.server]
    if differ_in_server(experiments, known):
        _load(honest or [cheated[0].model_copy(update={"server": None})], known)
        servers = server_axis.keys_of(cheated, known)
        shared = known_keys([key_of((part,), known) for part in experiments[0].defenses], known)
        attackers = {attacker(experiment, known) for experiment in experiments} - {"both"}
        differs = server_axis.CHECKED if experiments[0].checks else server_axis.SERVER
        st.session_state.update({"differs": differs, server_axis.KEY: servers, "protected": shared})
        st.session_state["voices"] = next(iter(attackers)) if len(attackers) == 1 else "both"
    else:
        _load(cheated or honest, known)
        st.session_state[server_axis.HONEST_TOO] = bool(honest)


def _load(experiments: Sequence[Experiment], known: Catalog) -> None:
    """Set the widgets to a comparison of experiments that have the same server."""
    state = st.session_state
    forms.load(max(experiments, key=lambda experiment: len(experiment.pictures)))
    choices: dict[str, list[Any]] = {
        "protection": list(dict.fromkeys(key_of(experiment.defenses, known) for experiment in experiments)),
        "attack": list(dict.fromkeys(experiment.attack.id for experiment in experiments)),
        "answer": list(
            dict.fromkeys(experiment.assume.strategy for experiment in experiments if attacker(experiment, known) == "adaptive")
        ),
        "batch": sorted({len(experiment.pictures) for experiment in experiments} & set(BATCHES)),
        "training": list(dict.fromkeys(experiment.checkpoint for experiment in experiments)),
        **{about: client_axes.values_of(about, experiments, known) for about in client_axes.KEYS},
    }
    worst_case_tried = worst_case.are_strongest_attacks(experiments, known)
    differing = [about for about, values in choices.items() if len(values) > 1 and (about in TRIED or not worst_case_tried)]
    differing = differing or ["protection"]
    differs = "matrix" if differing[:2] == ["protection", "attack"] else differing[0]
    state["differs"] = differs
    for about in differing[: len(LISTS[differs])]:
        state[LISTS[about][0]] = choices[about][:MOST]
    if differs == "rounds":  # the widgets of both are not drawn
        state.update({"rounds": 1, "attacked_round": 1})
    shared = () if differing[0] == "protection" else experiments[0].defenses
    state["protected"] = known_keys([key_of((part,), known) for part in shared], known)
    if differs == "answer":
        state["answered"] = key_of(experiments[0].defenses, known)
    if sweep := find_sweep(experiments):
        with suppress(CatalogError):  # the protection may not exist any more
            _load_sweep(*sweep, experiments, known)
    attackers = {attacker(experiment, known) for experiment in experiments} - {"both"}
    state["voices"] = WORST if worst_case_tried else next(iter(attackers)) if len(attackers) == 1 else "both"


def _load_sweep(id: str, name: str, values: Sequence[float], experiments: Sequence[Experiment], known: Catalog) -> None:
    """Set the widgets to a strength sweep, if they can express it: of the last protection, with its other fields at their defaults."""
    *others, last = experiments[0].defenses
    fields_with_defaults = known.defenses.get(last.id).resolve({name: last.fields[name]}) if last.id == id else None
    if fields_with_defaults != last.fields:
        return
    first, seeds = min(experiment.seed for experiment in experiments), len({experiment.seed for experiment in experiments})
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
