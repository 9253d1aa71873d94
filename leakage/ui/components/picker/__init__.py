"""The picker: a grid of thumbnails from which the pictures of a batch are picked, in order."""

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from leakage.ui.components import component


@st.cache_resource(show_spinner=False)
def _component() -> ComponentRenderer:
    return component("gle_picker", "picker")


def picker(items: list[dict[str, str]], selected: list[str], *, key: str, limit: int | None = None) -> list[str]:
    """Let the visitor pick from `items` (id, title, class_name, alt, thumb: a data-URI); the ids in the order of picking.

    A new click wins over `selected`; a `selected` other than on the last rerun ("reset") wins over older clicks. So the page may
    pass the same default for ever, or hand back what it got.
    """
    memory = st.session_state.setdefault(f"{key}-memory", {"asked": None, "click": 0, "ids": list(selected)})
    heard = (st.session_state.get(key) or {}).get("selected") or {"click": 0}
    if heard["click"] > memory["click"]:
        memory.update(click=heard["click"], ids=heard["ids"])
    elif memory["asked"] != list(selected):
        memory.update(ids=list(selected))
    memory.update(asked=list(selected))
    known = {item["id"] for item in items}
    picked = [name for name in memory["ids"] if name in known][:limit]
    data = {"items": items, "selected": picked, "click": memory["click"], "limit": limit}
    _component()(key=key, data=data, on_selected_change=lambda: None)
    return picked
