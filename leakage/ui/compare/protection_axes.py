"""Variants that differ in what the phone does about an attacker, or the attacker about it: protections, strengths, countermeasures."""

import re
from collections.abc import Sequence

import streamlit as st

from leakage.results.comparison_plan import SEEDS
from leakage.results.defense_keys import known_keys, parse_key, parse_value, ready_made, short_names, strength_values
from leakage.results.differences import sentence_case
from leakage.results.variant import MOST, Variant
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, Part
from leakage.spec.plugin_menu import menu_entries
from leakage.spec.prepared import prepared
from leakage.ui.common.markdown import escape, ours
from leakage.ui.compare.deployed import render_deployed

STACKED = 4  # most protections of one phone


def menu_of(key: str, options: list[str], known: Catalog) -> dict[str, str]:
    """Return a menu of protections, key to short name: `options`, and what a link or the visitor has chosen in the widget `key`."""
    chosen = st.session_state.get(key, [])
    added_keys = known_keys([chosen] if isinstance(chosen, str) else chosen, known)
    return short_names([*options, *(key for key in added_keys if key not in options)], known)


def protections(base: Experiment, known: Catalog) -> list[Variant]:
    """Draw the choice of protections, one after the other or several in one variant, and return a variant for each."""
    menu = menu_of("arms", ready_made(known), known)
    first = known_keys(prepared().compare.protections, known)
    picked = st.multiselect("Protections", menu, default=first, format_func=menu.__getitem__, key="arms", max_selections=MOST)
    with st.popover("Several protections in one variant", icon=":material/layers:", type="tertiary"):
        order = st.multiselect(
            "Protections of this variant, in this order", list(menu)[1:], format_func=menu.__getitem__, key="stack", max_selections=STACKED
        )
        st.button("Add this variant", on_click=_add, args=("+".join(order), picked), disabled=len(order) < 2 or len(picked) >= MOST)
    render_deployed(known)
    return [Variant(menu[key], {"defenses": parse_key(key, known)}) for key in picked]


def _add(key: str, picked: list[str]) -> None:
    st.session_state["arms"], st.session_state["stack"] = list(dict.fromkeys([*picked, key])), []


def answers(base: Experiment, known: Catalog) -> list[Variant]:
    """Draw the choice of countermeasures against the protections of `base`, and return a variant for each."""
    names = {"": "Default", **{name: sentence_case(known.strategy_title(name)) for name in strategies(base.defenses, known)}}
    if not set(st.session_state.get("answers", ())) <= set(names):  # these countermeasures were against another protection
        del st.session_state["answers"]
    st.caption("What an attacker that knows the protection below can do about the protection.")
    if len(names) == 1:
        st.caption(
            "An adaptive attacker has a single countermeasure against this protection. The page compares this "
            "countermeasure with a naive attacker."
        )
    picked = st.multiselect(
        "Countermeasures (adaptive strategies)",
        names,
        default=list(names),
        format_func=names.__getitem__,
        key="answers",
        max_selections=MOST,
    )
    return [Variant(names[name], {"assume": base.assume.model_copy(update={"strategy": name})}) for name in picked]


def forget_answers() -> None:
    """Forget the chosen countermeasures, so that all countermeasures to the new protection are offered."""
    st.session_state.pop("answers", None)


def strategies(defenses: Sequence[Part], known: Catalog) -> list[str]:
    """Return the names of the adaptive strategies against these protections, without the default strategy."""
    return list(dict.fromkeys(name for part in defenses for name in list(known.defenses.get(part.id).strategies)[1:]))


def strengths(base: Experiment, known: Catalog) -> list[Variant]:
    """Draw the choice of a protection's number and its values, and return a variant for each value."""
    sweeps = {
        f"{entry.id}.{field.name}": (entry, field)
        for entry in menu_entries(known, "defense")
        for field in entry.fields
        if field.type in ("int", "float")
    }
    swept = st.selectbox(
        "Strength of",
        list(sweeps),
        format_func=lambda name: f"{sweeps[name][0].short}: {sweeps[name][1].name.replace('_', ' ')}",
        index=list(sweeps).index(prepared().compare.swept) if prepared().compare.swept in sweeps else 0,
        key="swept",
    )
    entry, field = sweeps[swept]
    defaults = ", ".join(f"{value:g}" for value in strength_values(field, (0.01, 0.1, 1, 10), (5, 2, 1, 0.1)))
    text = st.text_input(f"Strengths to try, {field.low:g} to {field.high:g}", defaults, key=f"values.{swept}", help=ours(field.help))
    st.segmented_control(
        "Random starts (seeds)",
        SEEDS,
        default=3,
        required=True,
        key="seeds",
        help="With 3 or 5, every strength is tried with that many random starts (seeds), and the curve shows their mean. With 1 the "
        "chart has only points, and another random start may move a point by decibels. The band shows where the mean over all random "
        "starts probably lies (with 95 % confidence, if the values scatter in a bell curve).",
    )
    variants = []
    for number in re.findall(r"[^,;\s]+", text)[:MOST]:
        try:
            value = parse_value(field.type, number)
        except ValueError:
            st.warning(f"{escape(number)} is no number and is left out.")
            continue
        variants.append(Variant(f"{field.name} {number}", {"defenses": (*base.defenses, Part(id=entry.id, fields={field.name: value}))}))
    return variants
