"""The picker: a grid of thumbnails from which the pictures of a batch are picked, in order."""

import streamlit as st

from leakage.ui.components import ComponentRenderer, component


@st.cache_resource(show_spinner=False)
def _component() -> ComponentRenderer:
    return component("gle_picker", "picker")


def pressed(key: str) -> list[str] | None:
    """Return the ids picked since the picker was drawn last, in their order; None if nothing was picked. Call it before drawing."""
    picked = (st.session_state.get(key) or {}).get("selected") or {"click": 0}
    if picked["click"] <= st.session_state.get(f"{key}-click", 0):
        return None
    st.session_state[f"{key}-click"] = picked["click"]
    return list(picked["ids"])


def picker(items: list[dict[str, str]], selected: list[str], *, key: str, limit: int) -> None:
    """Draw a grid of pictures to pick from.

    Args:
        items: the pictures, each with id, title, class_name, alt, and thumb (a data URI).
        selected: the ids of the selected pictures.
        key: the widget key.
        limit: the most pictures that can be selected.
    """
    data = {"items": items, "selected": selected, "click": st.session_state.get(f"{key}-click", 0), "limit": limit}
    _component()(key=key, data=data, on_selected_change=lambda: None)
