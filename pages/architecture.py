"""Architecture: can a network's gradient hold the picture at all? Counted layer by layer, measured as a whole, before any attack."""

import streamlit as st

from leakage.networks.grammar import unroll, write
from leakage.networks.rank import CAVEATS, analyse
from leakage.networks.rank_verdict import layer_phrase, verdict
from leakage.networks.templates import template_of
from leakage.ui.architecture import counts as counts
from leakage.ui.architecture import editor, k_view, rank_view, verify, withheld
from leakage.ui.common.markdown import escape
from leakage.ui.compare import width

RANKS = "Exact ranks hold for almost all weights; – where no formula is known to hold."
INDEX = (
    "The index of rank analysis: unknowns minus equations, in the layer that has the fewest equations to spare. Below 0 they suffice for "
    "an attack that goes layer by layer. It says nothing of others."
)


def answer(given: editor.Given) -> None:
    """The verdict, the bars, what would protect, the table and the small print."""
    steps = given.steps
    found = analyse(unroll(steps, given.shape, given.outputs), batch=given.batch, convention=given.convention)
    seen = rank_view.look(given)
    found = rank_view.measured(found, seen)
    said = verdict(found, steps, given.batch)
    with st.container(border=True, gap="small", key="verdict"):
        st.caption(escape(template_of(write(steps)) or "Your own network"))
        st.markdown(f"#### :material/layers: {escape(said.headline)}")
        st.markdown(counts.reason(said))
        if found.critical:
            decided = f"decided by **{escape(layer_phrase(found.critical, steps))}**"
            st.markdown(f"**Unknowns minus equations (RA-i): {found.index:,}**, {decided} · [The paper]({counts.PAPER})", help=INDEX)
        st.caption(f"R-GAP, which works layer by layer: {escape(said.recursion)}.")
        rank_view.render_gradient(found, seen)
        verify.render_offer(given, said)
    st.html(counts.legend())
    st.plotly_chart(counts.figure(found, steps), key="bars", config={"displayModeBar": False}, alt=said.headline)
    editor.protect(given)
    withheld.render_withheld()
    st.markdown("**Layer by layer**")
    st.html(counts.table(found, steps))
    rank_view.render_offer(given, found, seen)
    st.caption(" ".join((*CAVEATS, RANKS)))
    k_view.show()
    width.show()


def page() -> None:
    """The whole page, top to bottom."""
    st.markdown("#### How much of the picture does this network's gradient hold?")
    left, right = st.columns([0.3, 0.7], gap="medium")
    with left:
        given = editor.settings()
    with right:
        if given:
            answer(given)
        else:
            st.info("A line of the network is not a step yet. The counts come back when it is.")


page()
