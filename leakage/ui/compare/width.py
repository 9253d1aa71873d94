"""A measured answer to: does a wider network leak more? R-GAP's error on noisy gradients over the index of rank analysis."""

import json
from functools import cache
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from leakage.settings import ROOT
from leakage.ui.common.figures import bare, grey_line

FILE = ROOT / "assets" / "width_noise.json"
NOISE, MUCH = "0.0001", "0.01"
LOOKS = {  # widened part -> colour and marker; Okabe-Ito, readable on white and on black
    "every layer": ("#d55e00", "circle"),
    "the first layer": ("#0072b2", "square"),
    "the second layer": ("#009e73", "diamond"),
    "the third layer": ("#cc79a7", "triangle-up"),
}
STORY = (
    "A network works in layers, one after the other; in a wider network each layer computes more numbers. A wider network sends more "
    "numbers in its gradient, but it also gives the attacker more unknown numbers to find: those that pass from layer to layer. One small "
    "network, with too few equations in its second layer, was made 2 and 4 times as wide, in every layer or in one layer. An attack that "
    "solves one layer after the other (R-GAP) was run on its gradient, with small random numbers (noise) added. The error of the attack "
    "falls below that of a grey picture only if **every** layer is 4 times as wide. Then unknowns minus equations (the index) are far "
    "below 0. If a single layer is made wider, too few equations are left somewhere: unknowns minus equations stay above 0, and the error "
    "above that of a grey picture. If unknowns minus equations do not change, a wider network just means that the noise disturbs the "
    "attack less. With a hundred times this noise, making the third layer 4 times as wide lowers the error from {narrow:.2f} to "
    "{wide:.2f}; without noise the error stays at {without:.2f}."
)


@cache
def measured() -> dict[str, Any]:
    """Return how well R-GAP reconstructs from noisy gradients of wider networks, as `benchmarks/published/width_noise.py` measured it."""
    return dict(json.loads(FILE.read_text()))


def figure() -> go.Figure:
    """Plot R-GAP's error (MSE) over the network's index (unknowns minus equations), a line for each layer that was widened 1 to 4 times."""
    chart = go.Figure()
    rows = measured()["rows"]
    for part, (colour, symbol) in LOOKS.items():
        points = [row for row in rows if row["wider"] == part]
        chart.add_scatter(
            x=[row["index"] for row in points],
            y=[row["mse"][NOISE] for row in points],
            mode="lines+markers",
            name=part,
            line={"color": colour, "width": 2},
            marker={"symbol": symbol, "size": 10},
            text=[f"{part}, {row['times']} times as wide<br>{row['network']}" for row in points],
            hovertemplate="%{text}<br>index %{x:,}, error %{y:.3f}<extra></extra>",
        )
    grey_line(chart, rows[0]["grey"])
    chart.add_vline(0, line_width=1, line_color="#888")
    return bare(
        chart,
        height=320,
        legend={"orientation": "h", "y": -0.28, "title": "widened: "},
        x={"title": "unknowns minus equations (below 0: enough equations)"},
        y={"title": "R-GAP's mean squared error", "rangemode": "tozero"},
    )


def show() -> None:
    """Draw an expander that says whether a wider network leaks more, with the plot of `figure`."""
    with st.expander("Does a wider network (more numbers in each layer) give away more of its pictures?"):
        results = measured()
        first, third = results["rows"][0], results["rows"][-1]["mse"]
        st.markdown(STORY.format(narrow=float(first["mse"][MUCH]), wide=float(third[MUCH]), without=float(third["0.0"])))
        st.plotly_chart(figure(), key="width", config={"displayModeBar": False}, alt="Error against index")
        runs = results["pictures"] * results["draws"]
        st.caption(
            f"The added random numbers (noise) are {float(NOISE):g} of the usual size of the numbers that are sent (root mean square). "
            f"Each point is the middle result of {runs:d} runs. The network answers yes or no, and "
            "the label of the picture is the opposite of its answer (flipped label)."
        )
