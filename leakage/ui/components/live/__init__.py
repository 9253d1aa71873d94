"""The stage: one component that plays runs live and again, fed by the event stream; Python only says which runs."""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Shown:
    """One run on the stage: what stands above it, the batch size the page expects, and what its phones send."""

    id: str
    title: str = ""
    pictures: int = 1  # the space is reserved before the first event, so that nothing jumps
    sent: str = "the gradient"
    phones: int = 1
    plain: bool = True  # nothing but the average of the pictures' gradients is sent


@st.cache_resource(show_spinner=False)
def _component() -> ComponentRenderer:
    """Register once per process: a second registration of the same name would log a warning on every rerun."""
    read = partial(Path.read_text, encoding="utf-8")
    # A component is one script without imports, so the parts share one scope; live.js exports and comes last.
    script = "\n".join(read(path) for path in sorted(HERE.glob("*.js"), key=lambda path: path.name == "live.js"))
    style = "\n".join(read(path) for path in sorted(HERE.glob("*.css"), key=lambda path: path.name != "live.css"))
    # isolate_styles=False: inside a shadow root Plotly's own styles would be lost.
    return st.components.v2.component("gle_stage", html=read(HERE / "live.html"), css=style, js=script, isolate_styles=False)


def stage(
    runs: list[Shown],
    *,
    key: str,
    together: bool = False,
    autoplay: bool = True,
    base: str = "",
    offline_after: float = 3.0,
) -> bool:
    """Show these runs, live or as a time lapse; True while the browser hears no events, then the page shows a fallback.

    Several stand side by side where there is room, each in a compact form. `together`: more compact still, the private pictures once for
    all, and one play head and scrubber for all. `base` is the prefix of our routes.
    A rerun with the same arguments changes nothing in the browser.
    """
    data = {"runs": [asdict(run) for run in runs], "base": base.rstrip("/"), "autoplay": autoplay, "together": together}
    state = _component()(key=key, data={**data, "offline_after": offline_after}, on_offline_change=lambda: None)
    return bool(state.get("offline"))
