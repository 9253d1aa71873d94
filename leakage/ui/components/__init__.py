"""Components that run in the browser: each folder has the Python, HTML, CSS and JavaScript of a component."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import streamlit as st

from leakage.frontend.scripts import stub
from leakage.ui.common.base_path import base

HERE = Path(__file__).parent


class ComponentRenderer(Protocol):
    """Draws a component with its data, and returns its state."""

    def __call__(self, *, key: str, data: dict[str, Any], **callbacks: Any) -> Any: ...


def component(name: str, folder: str, styles: Sequence[str] = ()) -> ComponentRenderer:
    """Register the component of a folder, and return the function that draws it.

    The component has the page `<folder>.html`, all styles of the folder, and a stub that imports `<folder>.js` from the server.
    Register a name once per process: a second registration would log a warning on every rerun.

    Args:
        name: the name of the component, unique in the program.
        folder: its folder below this one.
        styles: paths of styles in other folders, which come before the folder's own styles.
    """
    read = partial(Path.read_text, encoding="utf-8")
    first = f"{folder}.css"
    own_styles = sorted((HERE / folder).glob("*.css"), key=lambda path: (path.name != first, path.name))
    style = "\n".join(read(path) for path in (*(HERE / name for name in styles), *own_styles))
    page = read(HERE / folder / f"{folder}.html")
    # isolate_styles=False: inside a shadow root Plotly's own styles would be lost.
    mount = st.components.v2.component(name, html=page, css=style, js=stub(base(), f"{folder}/{folder}.js"), isolate_styles=False)

    def render(*, key: str, data: dict[str, Any], **callbacks: Any) -> Any:
        # Streamlit searches a dict for data frames, and imports pandas for it: 45 MB. It passes a list on as it is.
        return mount(key=key, data=[data], **callbacks)

    return render
