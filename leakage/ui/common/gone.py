"""Sentences about runs that were deleted, or of which only the result is kept."""

from collections.abc import Iterable
from datetime import date

from leakage.runs.service import service
from leakage.ui.common.markdown import Markdown, escape

THINNED = (
    "Only the result of this run is kept: the pictures of its earlier steps made room for newer runs. Press **Run** to compute it again."
)


def why(ids: Iterable[str]) -> Markdown:
    """Return why no run with these ids is here, as the end of a sentence; the first id with a known reason decides."""
    removed = next((record for id in ids if (record := service().removed(id))), None)
    if removed is None:
        return Markdown("it was deleted, or the link is incomplete")
    return escape(f"{removed.why}, on {date.fromtimestamp(removed.at):%d %B %Y}")
