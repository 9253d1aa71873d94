"""The front door of the Lab: large for newcomers, one line for all other visitors."""

import streamlit as st

from leakage.runs.service import service
from leakage.spec.experiment import VERSION
from leakage.spec.lab_settings import PICKED, lab_settings
from leakage.ui.common import address, forms
from leakage.ui.common.session import owner
from leakage.ui.components.front import front

KEY = "newcomer"  # in session state: whether this visitor is still a newcomer
RUNS = ("run-button", "go")  # in session state: set when Run or a what-if was pressed
SETTINGS = ".st-key-step-1"  # where the settings begin
BARE = {"v": str(VERSION), PICKED: ",".join(lab_settings(forms.DEFAULT)[PICKED])}  # such an address asks for nothing


def front_door() -> None:
    """Draw the introduction at the top of the page: whole for a newcomer, one line for any other visitor."""
    front(service().catalog(), settings=SETTINGS, small=not is_newcomer())


def is_newcomer() -> bool:
    """Return whether this visitor came without a link, has no runs, and has asked for none since."""
    state, asked = st.session_state, st.query_params
    if KEY not in state:
        state[KEY] = all(BARE.get(name) == asked[name] for name in asked) and not service().mine(owner())
    elif "run" in asked or state.get(address.NEXT, {}).get("run") or any(state.get(name) for name in RUNS):
        state[KEY] = False
    return bool(state[KEY])
