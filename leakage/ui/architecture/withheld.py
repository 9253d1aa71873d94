"""Which attacks end if a phone does not send all tensors, as a caption under the counts."""

import streamlit as st

from leakage.runs.service import service
from leakage.spec.catalog import Catalog
from leakage.ui.common.markdown import escape

LABELS = "Attackers read the classes of the pictures (labels) from the numbers of the network's last layer"


def sentence(known: Catalog) -> str:
    """Say for each attack that solves equations without which tensors of an update it does not work."""
    ends = [f"the attack {entry.short} needs {entry.ends_without}" for entry in known.attacks if entry.ends_without]
    ended = f"If the phone keeps a part of its numbers back, attacks that solve equations stop: {'; '.join(ends)}."
    return f"{ended} {LABELS}. An attack that guesses and compares continues with the numbers that arrive."


def render_withheld() -> None:
    """Draw the caption on attacks that stop if a client keeps tensors back; draw nothing if the catalog of plug-ins is not ready."""
    if known := service().catalog():
        st.caption(escape(sentence(known)))
