"""The proof of AdaDefense on the page: three curves beside the paper's, for a round and an earlier gradient that the visitor chooses."""

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from leakage.spec.catalog import Catalog
from leakage.ui.common.figures import bare
from leakage.ui.compare.stand_in_proof import PRINTED, GradientEntry, constant_ratio, corrected_twice

OURS, PAPER, SENT = "#0072b2", "#d55e00", "#009e73"  # Okabe-Ito
REACH, POINTS, STEEP = 2.0, 200, 4.0  # range of the gradient to either side; points on each side; values beyond it are not drawn
ROUNDS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
ABOUT = (
    "The protection AdaDefense (of Hu and others, 2024) makes a phone send other numbers in place of its gradient. For each number $g$ "
    r"of the gradient the phone sends $\hat m / (V + \varepsilon)$, a training step of the method Adam. Here $\hat m$ is an "
    r"average of $g$ over the rounds, $V$ is the root of an average of $g^2$, and $\varepsilon$ is tiny. The authors of AdaDefense argue "
    r"in equations 6 to 17 that $g$ cannot be computed from this step. They put a multiple of $g$ in place of $V$ ($V = "
    r"\alpha g$), and obtain a derivative (how fast the sent number changes with $g$). It depends on $m$, a number that only the phone "
    "knows. Below, three claims of the authors are "
    "checked for one number of a gradient, with the formula for the sent number. Their proof does not stop an attack: **in "
    "the Lab, the attacker that knows AdaDefense solves the formula of the sent number for $g$**."
)
FIRST = (
    "**a. $V / |g|$ is 1 in every round** if the gradient does not change: a part of Adam (bias correction) is made for this case. For "
    r"this ratio the appendix of the paper prints $\alpha = 1$ in rounds 1 and 2, and $1.258 = 1/\sqrt{1 - 0.999^{1000}}$ in round 1000. "
    r"In Adam, the average $v$ of $g^2$ begins too small, and bias correction brings it up to $g^2$. For round 1000 the appendix "
    r"begins with $g^2$ itself, as if it were corrected already, and corrects it again. In round 1 such a second correction would give "
    r"$\alpha = 31.6$."
)
SECOND = (
    r"**b. $V$ is never negative.** $\sqrt{g^2}$ is $|g|$, not $\alpha g$. With $|g|$ in place of $\alpha g$, the derivative in equation "
    "17 gets the opposite sign wherever $g$ is negative, because $|g|$ falls there while $g$ rises."
)
THIRD = (
    r"**c. The paper is wrong about how fast the sent number changes with $g$ (its derivative).** Equation 17 of the paper says "
    r"$-\beta_1 m / (\alpha (1 - \beta_1^r) g^2)$ ($r$ is the round, $\beta_1$ a constant of Adam). It assumes that $V$ "
    r"changes $\alpha$ times as fast as $g$. But $V$ averages over all rounds: if the gradient was the same in all rounds, this is true in "
    r"round 1 alone. In round 2, $V$ changes half as fast, and in round 1000 hardly at all. In round 1, $m$ (kept from earlier rounds) is "
    r"still 0, so the paper's derivative is 0. The phone sends $g / (|g| + \varepsilon)$ ($\varepsilon$ is tiny), about 1 or -1: the "
    "sign of $g$. So the true derivative is almost 0 too: the sent number does not change with the size of $g$; the size is hidden, and "
    "the sign is sent."
)


def show(_known: Catalog) -> None:
    """Draw three claims of the proof in the AdaDefense paper, each with a plot of what the paper's own formula gives."""
    st.markdown(ABOUT)
    left, right = st.columns(2, vertical_alignment="bottom")
    number = left.segmented_control(
        "Round of training: one of the three for which the paper on AdaDefense prints numbers",
        list(PRINTED),
        default=2,
        required=True,
        key="proof-round",
        width="stretch",
    )
    before = right.slider("The number g in all earlier rounds", -REACH, REACH, 1.0, 0.1, key="proof-before", disabled=number == 1)
    entry = GradientEntry(number, before)
    st.markdown(FIRST)
    st.plotly_chart(
        ratio(),
        key="proof-ratio",
        config={"displayModeBar": False},
        alt="V (the root of an average of the squared gradient) divided by the size of the gradient, in each round",
    )
    st.markdown(SECOND)
    st.plotly_chart(root(entry), key="proof-root", config={"displayModeBar": False}, alt="How the number V depends on the gradient")
    st.markdown(THIRD)
    st.plotly_chart(
        derivative(entry),
        key="proof-derivative",
        config={"displayModeBar": False},
        alt="How fast the sent number changes with the gradient (derivative)",
    )


def ratio() -> go.Figure:
    """Plot V / |g| of a constant gradient g over the rounds: computed, by the rule of the paper's appendix, and as the paper prints it.

    V is the root of Adam's corrected second moment.
    """
    chart = go.Figure()
    chart.add_scatter(x=ROUNDS, y=[constant_ratio(number) for number in ROUNDS], name="V / |g|", line_color=OURS, mode="lines+markers")
    claimed = [corrected_twice(number) for number in ROUNDS]
    chart.add_scatter(x=ROUNDS, y=claimed, name="corrected twice", line={"color": PAPER, "dash": "dash"}, mode="lines")
    marker_style = {"symbol": "diamond-open", "size": 12, "color": PAPER, "line": {"width": 2}}
    chart.add_scatter(x=list(PRINTED), y=list(PRINTED.values()), name="the paper's alpha", mode="markers", marker=marker_style)
    return bare(
        chart,
        height=280,
        legend={"orientation": "h", "y": -0.3},
        x={"title": "round", "type": "log", "tickvals": [1, 2, 5, 10, 100, 1000], "tickformat": "d"},
        y={"title": "V / |g|", "type": "log", "tickvals": [1, 2, 5, 10, 30], "tickformat": "d"},
    )


def root(entry: GradientEntry) -> go.Figure:
    """Plot V, the root of Adam's corrected second moment, over the gradient g of this round, and the paper's claim V = alpha g."""
    chart, alpha = go.Figure(), PRINTED[entry.number]
    chart.add_scatter(**_curve(entry.root), name="V", line_color=OURS)
    chart.add_scatter(**_curve(lambda g: alpha * g), name="the paper's alpha g", line={"color": PAPER, "dash": "dash"})
    return _over_gradients(chart, "V")


def derivative(entry: GradientEntry) -> go.Figure:
    """Plot three curves over the gradient of this round: what the client sends, its derivative, and the derivative by equation 17."""
    chart = go.Figure()
    chart.add_scatter(**_curve(entry.derivative), name="derivative of what is sent", line_color=OURS)
    chart.add_scatter(**_curve(entry.claimed_derivative), name="equation 17", line={"color": PAPER, "dash": "dash"})
    chart.add_scatter(**_curve(entry.sent), name="what is sent", line={"color": SENT, "dash": "dot"})
    return _over_gradients(chart, "derivative, and what is sent")


def _curve(value: Callable[[float], float]) -> dict[str, object]:
    """Return the points of a function on [-REACH, REACH] as arguments of Plotly's `add_scatter`; values beyond STEEP are left out."""
    x = [REACH * index / POINTS for index in range(-POINTS, POINTS + 1)]
    values = [value(g) for g in x]
    return {"x": x, "y": [y if abs(y) <= STEEP else None for y in values], "mode": "lines"}


def _over_gradients(chart: go.Figure, y_title: str) -> go.Figure:
    return bare(
        chart,
        height=280,
        legend={"orientation": "h", "y": -0.3},
        x={"title": "g, the gradient of this round", "range": [-REACH, REACH]},
        y={"title": y_title},
    )
