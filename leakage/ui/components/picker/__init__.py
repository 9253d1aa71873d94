"""The picker: a grid of thumbnails from which the pictures of a batch are picked, in order."""

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from leakage.ui.components import component


@st.cache_resource(show_spinner=False)
def _component() -> ComponentRenderer:
    return component("gle_picker", "picker")


def pressed(key: str) -> list[str] | None:
    """The ids picked since the picker was drawn last, in their order; None where nobody pressed anything. Call it before drawing."""
    heard = (st.session_state.get(key) or {}).get("selected") or {"click": 0}
    if heard["click"] <= st.session_state.get(f"{key}-click", 0):
        return None
    st.session_state[f"{key}-click"] = heard["click"]
    return list(heard["ids"])


def picker(items: list[dict[str, str]], selected: list[str], *, key: str, limit: int) -> None:
    """Draw `items` (id, title, class_name, alt, thumb: a data-URI) with those `selected`, whose ids are among them."""
    data = {"items": items, "selected": selected, "click": st.session_state.get(f"{key}-click", 0), "limit": limit}
    _component()(key=key, data=data, on_selected_change=lambda: None)
