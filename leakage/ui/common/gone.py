"""What pages say of runs that are not here any more, or not whole."""

from collections.abc import Iterable
from datetime import date

from leakage.runs.service import service
from leakage.ui.common.markdown import Markdown, escape

THINNED = "Only the answer of this run is kept: its pictures on the way made room for newer runs. Press **Run** to compute it again."


def why(ids: Iterable[str]) -> Markdown:
    """Why a run with one of these ids is not here, as the end of a sentence."""
    removed = next((found for id in ids if (found := service().removed(id))), None)
    if removed is None:
        return Markdown("it was deleted, or the link is incomplete")
    return escape(f"{removed.why}, on {date.fromtimestamp(removed.at):%d %B %Y}")
