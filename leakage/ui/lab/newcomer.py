"""Who comes to the Lab for the first time, and sees the whole front door; everybody else sees one line of it."""

import streamlit as st

from leakage.runs.service import service
from leakage.spec.experiment import VERSION
from leakage.spec.lab_settings import PICKED, lab_settings
from leakage.ui.common import address, forms
from leakage.ui.common.session import owner
from leakage.ui.components.front import front

KEY = "newcomer"  # in session state: whether this visitor still is one
RUNS = ("run-button", "go")  # in session state: Run was pressed, or a what-if
SETTINGS = ".st-key-step-1"  # where the settings begin
BARE = {"v": str(VERSION), PICKED: ",".join(lab_settings(forms.DEFAULT)[PICKED])}  # what the address says when nothing was asked


def front_door() -> None:
    """The whole door for a newcomer; one line for who has runs, came by a link, or has asked for a run since."""
    front(service().catalog(), settings=SETTINGS, small=not is_newcomer())


def is_newcomer() -> bool:
    """Whether this visitor came without a link and has run nothing; whoever has is none any more."""
    state, asked = st.session_state, st.query_params
    if KEY not in state:
        state[KEY] = all(BARE.get(name) == asked[name] for name in asked) and not service().mine(owner())
    elif "run" in asked or state.get(address.NEXT, {}).get("run") or any(state.get(name) for name in RUNS):
        state[KEY] = False
    return bool(state[KEY])
