"""How many pictures explain one gradient of a network with one output: the k-curve of each loss, and a slider for the number it crosses."""

import plotly.graph_objects as go
import streamlit as st

from leakage.networks.k_curve import LOSSES, TURNS, Loss, curve, roots
from leakage.spec.words import LOSSES as WORDS
from leakage.ui.architecture.editor import key
from leakage.ui.common.figures import bare
from leakage.ui.common.markdown import Markdown, escape

LOOKS: dict[Loss, tuple[str, str]] = {  # Okabe-Ito, readable on white and on black
    "cross-entropy": ("#0072b2", "circle"),
    "exponential": ("#d55e00", "square"),
    "hinge": ("#009e73", "diamond"),
}
LOW, HIGH, STEPS = -1.5, 6.0, 300  # lowest and highest margin that is drawn, and the number of steps between them
STORY = (
    "A network with **one output** answers yes or no. A number, the margin mu, says how clearly the network is right about the picture. "
    "From the gradient the attacker computes a number c: mu times a second number, which says how fast the network's error (loss) changes "
    "if mu becomes a little larger. The attack R-GAP solves this equation for mu, and then finds the picture. The chart shows c as a level "
    "line, and for each of three kinds of loss a curve of c over mu. Where the line crosses a curve **twice**, two different "
    "pictures (twins) have the same gradient."
)
HINGE = (
    "If the model's error is computed by the rule called hinge loss, no two pictures have the same gradient, except pictures about which "
    "the network is clearly right (its margin mu is 1 or more): for these pictures the phone sends nothing but zeros."
)
HELP = "A number, c, that the attacker computes from the received gradient. The number c tells how clearly the network is right."


def describe_margins(loss: Loss, c: float) -> Markdown:
    """Say in a sentence at which margins mu of a network with one output mu times the derivative of this loss is c."""
    solutions, name = roots(loss, c), escape(WORDS[loss].menu)
    margins = " and ".join(f"{mu:.3f}" for mu in solutions)
    if loss == "hinge" and c == 0:
        sentence = "the margin is 0, or it is at least 1 and nothing is sent"
    elif not solutions:
        sentence = f"no margin has this value (the lowest is {curve(loss, TURNS[loss]):.4f}): noise"
    else:
        sentence = f"two margins, {margins}: a twin" if len(solutions) == 2 else f"one margin, {margins}"
    return Markdown(f"**{name}**: {escape(sentence)}")


def figure(c: float) -> go.Figure:
    """Plot mu times the derivative of the loss over the margin mu for three losses, with a line at c and a mark where a curve meets it."""
    chart = go.Figure()
    for loss, (colour, symbol) in LOOKS.items():
        margins = [LOW + (HIGH - LOW) * step / STEPS for step in range(STEPS + 1)]
        margins = sorted({*margins, TURNS[loss]})
        chart.add_scatter(
            x=margins,
            y=[curve(loss, mu) for mu in margins],
            mode="lines",
            name=WORDS[loss].menu,
            line={"color": colour, "width": 2, "simplify": False},
            hovertemplate=f"{WORDS[loss].menu}<br>mu %{{x:.2f}}, c %{{y:.3f}}<extra></extra>",
        )
        visible_roots = [mu for mu in roots(loss, c) if LOW <= mu <= HIGH]
        chart.add_scatter(
            x=visible_roots,
            y=[c] * len(visible_roots),
            mode="markers",
            showlegend=False,
            marker={"symbol": symbol, "size": 11, "color": colour, "line": {"width": 1.5, "color": "#fff"}},
            hovertemplate=f"{WORDS[loss].menu}: mu = %{{x:.3f}}<extra></extra>",
        )
    chart.add_hline(c, line_width=1.5, line_dash="dot", line_color="#888")
    return bare(
        chart,
        height=320,
        legend={"orientation": "h", "y": -0.28},
        x={"title": "margin mu", "range": [LOW, HIGH]},
        y={"title": "c", "range": [-1.2, 1.05]},
    )


def show() -> None:
    """Draw an expander on networks with one output: the plot of `figure`, a slider for c, and the margins that have this c."""
    with st.expander("A network that answers yes or no: how many pictures fit one gradient?"):
        st.markdown(STORY)
        hundredths = st.select_slider("c", range(-120, 101), format_func=lambda part: f"{part / 100:.2f}", key=key("c"), help=HELP)
        c = hundredths / 100
        st.plotly_chart(figure(c), key="k-curve", config={"displayModeBar": False}, alt="c against the margin, for three losses")
        st.markdown("\n".join(f"- {describe_margins(loss, c)}" for loss in LOSSES))
        st.caption(HINGE)
