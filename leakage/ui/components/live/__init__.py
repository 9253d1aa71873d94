"""The stage: one component that plays runs live and again, fed by the event stream; Python only says which runs."""

from dataclasses import asdict, dataclass

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from leakage.spec.declarations import Travels
from leakage.ui.common.base_path import base
from leakage.ui.components import component


@dataclass(frozen=True)
class Shown:
    """One run on the stage: what stands above it, the batch size the page expects, what its phones send, and who receives it."""

    id: str
    title: str = ""
    pictures: int = 1  # the space is reserved before the first event, so that nothing jumps
    sent: str = "the gradient"
    phones: int = 1
    plain: bool = True  # nothing but the average of the pictures' gradients is sent
    receiver: str = Travels.receiver


@st.cache_resource(show_spinner=False)
def _component() -> ComponentRenderer:
    return component("gle_stage", "live")


def stage(
    runs: list[Shown],
    *,
    key: str,
    together: bool = False,
    apart: bool = False,
    autoplay: bool = True,
    offline_after: float = 3.0,
) -> bool:
    """Show these runs, live or as a time lapse; True while the browser hears no events, then the page shows a fallback.

    Several stand side by side where there is room, each in a compact form. `together`: more compact still, the private pictures once for
    all, and one play head and scrubber for all. `apart`: each of these has private pictures of its own, which stand above its guesses.
    A rerun with the same arguments changes nothing in the browser.
    """
    data = {"runs": [asdict(run) for run in runs], "base": base(), "autoplay": autoplay, "together": together, "apart": apart}
    state = _component()(key=key, data={**data, "offline_after": offline_after}, on_offline_change=lambda: None)
    return bool(state.get("offline"))
