"""Which data sets a menu offers: those that are on this machine; and, folded away, how those that are not get there."""

from collections.abc import Sequence

import streamlit as st

from leakage.data.datasets import BY_HAND, TITLES, datasets
from leakage.ui.common.markdown import Markdown, escape

LEAD = "These are not on this machine. Whoever runs it can get them:"


def missing_sets(names: Sequence[str]) -> list[str]:
    """Those of these names that are data sets and not here; what ships is always here."""
    known = datasets()
    return [name for name in names if name in known and not known[name].is_available]


def show_missing(names: Sequence[str]) -> None:
    """What would be offered too, and how it gets here; nothing where all is here."""
    if names:
        with st.popover("More data", icon=":material/database:", type="tertiary", key="more-data"):
            st.markdown(LEAD)
            for name in names:
                st.markdown(f"**{escape(TITLES[name])}**: {_way(name)}")


def _way(name: str) -> Markdown:
    """How to get a data set, without a path of this machine."""
    return (
        escape(f"{BY_HAND[name]} in the folder LEAKAGE_DATA") if name in BY_HAND else Markdown(f"`python -m leakage fetch {escape(name)}`")
    )
