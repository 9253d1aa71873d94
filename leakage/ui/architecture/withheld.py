"""What becomes of attacks when a phone keeps tensors to itself, under the counts."""

import streamlit as st

from leakage.runs.service import service
from leakage.spec.catalog import Catalog
from leakage.ui.common.markdown import escape

LABELS = "Labels are read from the last layer's weight and bias"


def sentence(known: Catalog) -> str:
    """Which tensor ends which attack that solves for the picture."""
    ends = [f"{entry.short} needs {entry.ends_without}" for entry in known.attacks if entry.ends_without]
    return f"If the phone keeps tensors to itself, attacks that solve end: {'; '.join(ends)}. {LABELS}. A search goes on with what arrives."


def render_withheld() -> None:
    """The sentence, once the plug-ins are known."""
    if known := service().catalog():
        st.caption(escape(sentence(known)))
