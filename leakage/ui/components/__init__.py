"""What runs in the browser: a folder each, with Python, HTML, CSS and JavaScript together."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from leakage.frontend.scripts import stub
from leakage.ui.common.base_path import base

HERE = Path(__file__).parent


def component(name: str, folder: str, styles: Sequence[str] = ()) -> ComponentRenderer:
    """Register the component in a folder: its page `<folder>.html`, all its styles, and a stub that imports `<folder>.js` from our route.

    `styles`: those of other folders that it needs, before its own.
    Register once per process: a second registration of the same name would log a warning on every rerun.
    """
    read = partial(Path.read_text, encoding="utf-8")
    first = f"{folder}.css"
    own = sorted((HERE / folder).glob("*.css"), key=lambda path: (path.name != first, path.name))
    style = "\n".join(read(path) for path in (*(HERE / name for name in styles), *own))
    page = read(HERE / folder / f"{folder}.html")
    # isolate_styles=False: inside a shadow root Plotly's own styles would be lost.
    return st.components.v2.component(name, html=page, css=style, js=stub(base(), f"{folder}/{folder}.js"), isolate_styles=False)
