"""The front door above the Lab: a question, a guess and twelve stories for a newcomer; a single line for a returning visitor."""

import streamlit as st

from leakage.frontend.own_script import own_script_address
from leakage.learn.data_address import data_folder
from leakage.learn.stories import door_data
from leakage.spec.catalog import Catalog
from leakage.ui.common.base_path import base
from leakage.ui.components import ComponentRenderer, component


@st.cache_resource(show_spinner=False)
def _component() -> ComponentRenderer:
    return component("gle_front", "front", styles=("reader/door.css",))


def front(known: Catalog | None, *, settings: str, small: bool) -> None:
    """Draw the introduction at the top of the page Lab: a question, a guess and stories for a newcomer.

    Args:
        known: the plug-ins; None while they are not ready.
        settings: a CSS selector of the place where the visitor begins to choose.
        small: whether to draw a single line, for a visitor that was here before.
    """
    learn = f"{base()}/learn"
    data = door_data(
        known, data=data_folder(base()), learn=learn, lab=f"{base()}/", handouts=f"{learn}/worksheets", own=own_script_address(base())
    )
    with st.container(key="front-line" if small else "front-door"):
        _component()(key="front", data={**data, "settings": settings, "small": small})
