"""The data sets that are missing on this machine, and a popover that says how to get them."""

from collections.abc import Sequence

import streamlit as st

from leakage.data.datasets import BY_HAND, TITLES, datasets
from leakage.ui.common.markdown import Markdown, escape

LEAD = "These data sets are not on this machine, but its administrator can get them:"


def missing_sets(names: Sequence[str]) -> list[str]:
    """Return the names that are data sets and not on this machine; the data sets that ship with the program are always there."""
    known = datasets()
    return [name for name in names if name in known and not known[name].is_available]


def show_missing(names: Sequence[str]) -> None:
    """Draw a popover that says how to get these missing data sets; draw nothing where `names` is empty."""
    if names:
        with st.popover("More data", icon=":material/database:", type="tertiary", key="more-data"):
            st.markdown(LEAD)
            for name in names:
                st.markdown(f"**{escape(TITLES[name])}**: {_way(name)}")


def _way(name: str) -> Markdown:
    """Return how to get a data set, without a path of this machine."""
    return (
        escape(f"{BY_HAND[name]} in the folder LEAKAGE_DATA") if name in BY_HAND else Markdown(f"`python -m leakage fetch {escape(name)}`")
    )
