"""The page Architecture: whether the gradient of a network determines the picture, counted layer by layer or measured as a whole."""

import streamlit as st

from leakage.networks.grammar import unroll, write
from leakage.networks.rank import CAVEATS, analyse
from leakage.networks.rank_verdict import layer_phrase, verdict
from leakage.networks.templates import template_of
from leakage.ui.architecture import counts as counts
from leakage.ui.architecture import editor, k_view, rank_view, verify, withheld
from leakage.ui.common.markdown import escape
from leakage.ui.compare import width

RANKS = (
    "The exact rank of a layer says how many of its equations add something new. It holds for almost all weights that "
    "such a network can have. A dash (–) means that no formula for this layer is known."
)
INDEX = (
    "Unknown numbers minus equations, in the layer of the network that has the fewest equations to spare. If the result is below 0, "
    "an attack that solves one layer after the other has enough equations. The result says nothing about other attacks."
)


def answer(given: editor.Given) -> None:
    """Draw the verdict on a network, the bars, what would protect it, the table of its layers and the small print."""
    steps = given.steps
    counted = analyse(unroll(steps, given.shape, given.outputs), batch=given.batch, convention=given.convention)
    view = rank_view.look(given)
    analysis = rank_view.measured(counted, view)
    conclusion = verdict(analysis, steps, given.batch)
    with st.container(border=True, gap="small", key="verdict"):
        st.caption(escape(template_of(write(steps)) or "Your own network"))
        st.markdown(f"#### :material/layers: {escape(conclusion.headline)}")
        st.markdown(counts.reason(conclusion))
        if analysis.critical:
            decided = f"decided by **{escape(layer_phrase(analysis.critical, steps))}**"
            st.markdown(f"**Unknowns minus equations (RA-i): {analysis.index:,}**, {decided} · [The paper]({counts.PAPER})", help=INDEX)
        st.caption(f"Would the attack R-GAP, which solves one layer after the other, succeed? Answer: {escape(conclusion.recursion)}.")
        rank_view.render_gradient(analysis, view)
        verify.render_offer(given, conclusion)
    st.html(counts.legend())
    st.plotly_chart(counts.figure(analysis, steps), key="bars", config={"displayModeBar": False}, alt=conclusion.headline)
    editor.protect(given)
    withheld.render_withheld()
    st.markdown("**Unknowns and equations in each layer of the network**")
    st.html(counts.table(analysis, steps))
    rank_view.render_offer(given, analysis, view)
    st.caption(" ".join((*CAVEATS, RANKS)))
    k_view.show()
    width.show()


def page() -> None:
    """Draw the whole page, from top to bottom."""
    st.markdown("#### How much of the picture does this network's gradient hold?")
    left, right = st.columns([0.3, 0.7], gap="medium")
    with left:
        given = editor.settings()
    with right:
        if given:
            answer(given)
        else:
            st.info("One line in the description of the network is not complete yet. Correct this line, and the counts appear again.")


page()
