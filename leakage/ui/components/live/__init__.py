"""The live view: a component that plays runs live or again from the event stream; Python only names the runs."""

from dataclasses import asdict, dataclass

import streamlit as st

from leakage.spec.declarations import Travels
from leakage.ui.common.base_path import base
from leakage.ui.components import ComponentRenderer, component


@dataclass(frozen=True)
class Shown:
    """A run in the live view."""

    id: str
    title: str = ""
    """The title above the run."""
    pictures: int = 1
    """The batch size; space for so many pictures is reserved before the first event, so that the page does not jump."""
    sent: str = "the gradient"
    """What arrives at the receiver, as a noun."""
    phones: int = 1
    """The number of clients in what arrives."""
    plain: bool = True
    """Whether only the average of the pictures' gradients is sent."""
    receiver: str = Travels.receiver
    """The receiver of what is sent."""


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
    """Play runs, live or as a time lapse; return whether the browser receives no events, so that the page shows a fallback.

    Several runs stand side by side if there is room. A rerun with the same arguments changes nothing in the browser.

    Args:
        runs: the runs to play.
        key: the widget key.
        together: draw the runs in a compact form, with the private pictures once for all, and one play head for all.
        apart: if together, draw the private pictures of each run above its reconstructions, because they differ.
        autoplay: whether a finished run starts to play by itself.
        offline_after: after how many seconds without events the browser counts as offline.
    """
    data = {"runs": [asdict(run) for run in runs], "base": base(), "autoplay": autoplay, "together": together, "apart": apart}
    state = _component()(key=key, data={**data, "offline_after": offline_after}, on_offline_change=lambda: None)
    return bool(state.get("offline"))
