"""The proof of AdaDefense, computed: three curves beside the paper's lines, for the round and the past that a visitor chooses."""

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from leakage.spec.catalog import Catalog
from leakage.ui.common.figures import bare
from leakage.ui.compare.stand_in_proof import PRINTED, GradientEntry, constant_ratio, corrected_twice

OURS, PAPER, SENT = "#0072b2", "#d55e00", "#009e73"  # Okabe-Ito
REACH, POINTS, STEEP = 2.0, 200, 4.0  # of the gradient, to either side; places on each side; derivatives beyond are not drawn
ROUNDS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
ABOUT = r"""AdaDefense (Hu et al. 2024) sends $\hat m / (V + \varepsilon)$, Adam's step, in place of the gradient $g$. Its paper argues
in equations 6 to 17 against finding $g$ from it: it puts $V = \alpha g$, and obtains a derivative that depends on $m$, which only the
phone knows. Here each claim is computed for one entry of a gradient, by the formula itself. The proof bounds nothing: **the attacker who
“reads it off” solves the same formula for $g$** (Lab, AdaDefense)."""
FIRST = r"""**a. $V / |g|$ is 1 in every round** where the gradient stays as it is: bias correction is made for just that. The appendix
prints $\alpha = 1$ in rounds 1 and 2, and $1.258 = 1/\sqrt{1 - 0.999^{1000}}$ in round 1000: there it takes $v$ for $g^2$ already, and
corrects it once more. That rule would give 31.6 in round 1."""
SECOND = r"""**b. $V$ has no sign.** $\sqrt{g^2}$ is $|g|$, never $\alpha g$. With $|g|$ in its place, equation 17 changes its sign wherever
$g$ is negative."""
THIRD = r"""**c. The derivative is a different one.** Equation 17 says $-\beta_1 m / (\alpha (1 - \beta_1^r) g^2)$. But of an unchanged
gradient
$V$ changes by $\alpha$ in round 1 alone, by half of that in round 2, and in round 1000 hardly at all. And in round 1, where $m$ is 0, both
derivatives are 0 (up to $\varepsilon$) and what is sent is the sign of $g$: a derivative of 0 hides the size and shows the sign."""


def show(_known: Catalog) -> None:
    """What the proof says, and the three curves."""
    st.markdown(ABOUT)
    left, right = st.columns(2, vertical_alignment="bottom")
    number = left.segmented_control(
        "Round (those of which the paper speaks)", list(PRINTED), default=2, required=True, key="proof-round", width="stretch"
    )
    before = right.slider("The gradient in all rounds before", -REACH, REACH, 1.0, 0.1, key="proof-before", disabled=number == 1)
    entry = GradientEntry(number, before)
    st.markdown(FIRST)
    st.plotly_chart(ratio(), key="proof-ratio", config={"displayModeBar": False}, alt="V over |g| against the round")
    st.markdown(SECOND)
    st.plotly_chart(root(entry), key="proof-root", config={"displayModeBar": False}, alt="V against the gradient")
    st.markdown(THIRD)
    st.plotly_chart(derivative(entry), key="proof-derivative", config={"displayModeBar": False}, alt="Derivative against the gradient")


def ratio() -> go.Figure:
    """V / |g| of a constant gradient in every round: as it is, as the appendix's rule would have it, and as it prints it."""
    made = go.Figure()
    made.add_scatter(x=ROUNDS, y=[constant_ratio(number) for number in ROUNDS], name="V / |g|", line_color=OURS, mode="lines+markers")
    claimed = [corrected_twice(number) for number in ROUNDS]
    made.add_scatter(x=ROUNDS, y=claimed, name="corrected twice", line={"color": PAPER, "dash": "dash"}, mode="lines")
    marks = {"symbol": "diamond-open", "size": 12, "color": PAPER, "line": {"width": 2}}
    made.add_scatter(x=list(PRINTED), y=list(PRINTED.values()), name="the paper's alpha", mode="markers", marker=marks)
    return bare(
        made,
        height=280,
        legend={"orientation": "h", "y": -0.3},
        x={"title": "round", "type": "log", "tickvals": [1, 2, 5, 10, 100, 1000], "tickformat": "d"},
        y={"title": "V / |g|", "type": "log", "tickvals": [1, 2, 5, 10, 30], "tickformat": "d"},
    )


def root(entry: GradientEntry) -> go.Figure:
    """V against the gradient, and the paper's line alpha g."""
    made, alpha = go.Figure(), PRINTED[entry.number]
    made.add_scatter(**_curve(entry.root), name="V", line_color=OURS)
    made.add_scatter(**_curve(lambda g: alpha * g), name="the paper's alpha g", line={"color": PAPER, "dash": "dash"})
    return _over_gradients(made, "V")


def derivative(entry: GradientEntry) -> go.Figure:
    """How what is sent changes with the gradient, equation 17 beside it, and what is sent."""
    made = go.Figure()
    made.add_scatter(**_curve(entry.derivative), name="derivative of what is sent", line_color=OURS)
    made.add_scatter(**_curve(entry.claimed_derivative), name="equation 17", line={"color": PAPER, "dash": "dash"})
    made.add_scatter(**_curve(entry.sent), name="what is sent", line={"color": SENT, "dash": "dot"})
    return _over_gradients(made, "derivative, and what is sent")


def _curve(value: Callable[[float], float]) -> dict[str, object]:
    """Its values on both sides of 0 and there, cut where they are too steep to be drawn."""
    x = [REACH * place / POINTS for place in range(-POINTS, POINTS + 1)]
    drawn = [value(g) for g in x]
    return {"x": x, "y": [one if abs(one) <= STEEP else None for one in drawn], "mode": "lines"}


def _over_gradients(made: go.Figure, what: str) -> go.Figure:
    return bare(
        made,
        height=280,
        legend={"orientation": "h", "y": -0.3},
        x={"title": "g, the gradient of this round", "range": [-REACH, REACH]},
        y={"title": what},
    )
