"""What the phone checks of the received model before it trains, as widgets below the server: the checks, their fields, and the refusal."""

from typing import Any

import streamlit as st

from leakage.spec.catalog import Catalog
from leakage.spec.experiment import MAX_CHECKS, Part
from leakage.spec.lab_settings import CHECKS
from leakage.spec.plugin_menu import menu_entries
from leakage.ui.common import forms
from leakage.ui.common.markdown import escape, ours

NOTHING = "Nothing: it trains the model that it receives"
ABOUT = (
    "A check compares the received model with the model on which the phones agreed, or looks at its weights, or at what the phone would "
    "send. It gives one number, and trips above a threshold. A check is not a proof: another change of the model may pass it."
)
REFUSES = (
    "If this is on, the phone keeps its update to itself as soon as a check trips. In a sum over several phones, the round is then lost. "
    "If this is off, the phone sends its update, and what the checks found is shown beside the run."
)


def choose_checks(known: Catalog) -> tuple[tuple[Part, ...], bool]:
    """Draw the menu of checks, their fields behind a small button, and the switch; return the checks, and whether the phone refuses."""
    entries = {entry.id: entry for entry in menu_entries(known, "check")}
    state = st.session_state
    state[CHECKS] = [id for id in state.get(CHECKS, ()) if id in entries][:MAX_CHECKS]
    if not entries:
        return (), True
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        picked = st.multiselect(
            "What the phone checks first",
            list(entries),
            format_func=lambda id: escape(entries[id].short),
            key=CHECKS,
            max_selections=MAX_CHECKS,
            placeholder=NOTHING,
            help=ABOUT,
        )
        fields = dict[str, dict[str, Any]]()
        if picked:
            with st.popover("", icon=":material/tune:", help="What each check does, and its threshold", key="fine-check"):
                for id in picked:
                    st.markdown(f"**{escape(entries[id].title)}**")
                    st.caption(ours(entries[id].plain), help=f"{ours(entries[id].hint)}\n\n[The paper]({ours(entries[id].source)})")
                    fields[id] = {field.name: forms.widget(entries[id], field) for field in entries[id].fields}
    if not picked:
        state.pop("refuse", None)  # without a check there is nothing to refuse
        return (), True
    state.setdefault("refuse", True)
    refuse = st.toggle("If a check trips, send nothing", key="refuse", help=REFUSES)
    return tuple(Part(id=id, fields=fields[id]) for id in picked), refuse
