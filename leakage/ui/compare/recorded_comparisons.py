"""Stories on the page Compare: recorded runs that show a claim of a paper, with a strip of their pictures and the published numbers."""

import streamlit as st

from leakage.frontend.markup import render
from leakage.spec.prepared import RecordedComparison, prepared
from leakage.ui.common import published
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import ours


def render_link(story: RecordedComparison) -> None:
    """Draw a link that opens the recorded runs of a story on the page Compare."""
    address = f"{base()}/compare?runs={','.join(story.recorded)}"
    st.link_button(ours(story.title), address, icon=":material/compare:", type="tertiary", help=ours(story.help))


def find_story(ids: str) -> RecordedComparison | None:
    """Return the story with exactly these runs, given their ids joined by commas; None if there is none."""
    return next((story for story in prepared().compare.stories if list(story.recorded) == ids.split(",")), None)


def show(story: RecordedComparison) -> None:
    """Draw what a story says, the strip of its pictures, and what the papers print beside what came out here."""
    st.markdown(ours(story.story))
    address = f"{base()}/api/compare/strip.png?ids={','.join(story.recorded)}"
    st.html(render("ui/compare/strip.html.jinja", address=address, alt=story.help))
    published.show(story)
