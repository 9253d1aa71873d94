"""The sender: chooses the files of a recorded update, and sends each to our own route, which writes it to disk."""

import streamlit as st

from leakage.runs.update_sets import FILE_MB
from leakage.ui.common.base_path import base
from leakage.ui.components import ComponentRenderer, component

ROUTE = "/api/updates"  # leakage/web/update_routes.py


@st.cache_resource(show_spinner=False)
def _component() -> ComponentRenderer:
    return component("gle_sender", "sender")


def sender(name: str, files: dict[str, int], *, key: str, closed: bool) -> None:
    """Draw the chooser of files; the page is drawn again after a file has arrived or was deleted.

    Args:
        name: the set that the files go to.
        files: the files that have arrived, with their sizes in bytes.
        key: the widget key.
        closed: whether a run uses the files, so that they stay as they are.
    """
    data = {"address": f"{base()}{ROUTE}/{name}", "files": files, "closed": closed, "most": FILE_MB}
    _component()(key=key, data=data, on_changed_change=lambda: None)
