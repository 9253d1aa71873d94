"""What the figures of the pages share: a bare frame, the line of a grey picture, leakage against accuracy."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

import plotly.graph_objects as go

from leakage.results.intervals import FEWEST, mean_interval

LEAK = "#d55e00"  # Okabe-Ito: readable on white and on black


def bare(figure: go.Figure, *, height: int, x: dict[str, Any], y: dict[str, Any], top: int = 16, **more: Any) -> go.Figure:
    """The figure without a background of its own, its axes as given and at rest."""
    return figure.update_layout(
        height=height,
        margin={"l": 4, "r": 12, "t": top, "b": 4},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        xaxis={"fixedrange": True, **x},
        yaxis={"fixedrange": True, **y},
        **more,
    )


def grey_line(figure: go.Figure, value: float | None, *, words: str = "top right") -> None:
    """What a grey picture scores, where that is known."""
    if value is not None:
        figure.add_hline(
            value, line_dash="dot", line_width=1.5, line_color="#888", annotation_text="a grey picture", annotation_position=words
        )


def band(figure: go.Figure, ends: Sequence[tuple[float, float, float]], colour: str) -> None:
    """What lies between (x, low, high) of each, in order of x."""
    x, low, high = (list(column) for column in zip(*ends, strict=True))
    figure.add_scatter(
        x=[*x, *reversed(x)],
        y=[*high, *reversed(low)],
        mode="lines",
        fill="toself",
        fillcolor=colour,
        opacity=0.15,
        line_width=0,
        hoverinfo="skip",
        showlegend=False,
    )


def against_accuracy(
    points: Sequence[tuple[Sequence[float], float, str]],
    grey: float | None,
    *,
    x: str,
    y: str,
    shares: Sequence[float] | None = None,
) -> go.Figure:
    """(accuracies from 0 to 1, one for each seed; PSNR; words) of each: up leaks more, to the right is cheaper.

    Of several seeds the mean, and from three on the interval that holds it with 95 % confidence. `shares` from 0 to 1 fill the marks.
    """
    accuracies, leaked, words = (
        [100 * mean(each) for each, _, _ in points],
        [psnr for _, psnr, _ in points],
        [told for _, _, told in points],
    )
    halves = [100 * (mean_interval(each)[1] - mean(each)) if len(each) >= FEWEST else 0.0 for each, _, _ in points]
    filled = {"color": list(shares), "colorscale": [[0, "#ffffff"], [1, LEAK]], "cmin": 0, "cmax": 1} if shares else {"color": LEAK}
    middle = (min(accuracies) + max(accuracies)) / 2  # labels go inwards: a narrow page cuts nothing off
    order = sorted(range(len(points)), key=lambda place: accuracies[place])
    lows = [order.index(place) % 2 == 1 for place in range(len(points))]  # and neighbours' up and down: they do not cover each other
    figure = go.Figure()
    figure.add_scatter(
        x=accuracies,
        y=leaked,
        text=words,
        mode="markers+text",
        textposition=[
            f"{'bottom' if low else 'top'} {'right' if one < middle else 'left'}" for one, low in zip(accuracies, lows, strict=True)
        ],
        cliponaxis=False,
        error_x={"type": "data", "array": halves, "color": LEAK, "thickness": 1},
        marker={"size": 11, "line": {"width": 1.5, "color": LEAK}, **filled},
        hovertemplate="%{text}<br>accuracy %{x:.1f} %, PSNR %{y:.1f} dB<extra></extra>",
    )
    grey_line(figure, grey)
    return bare(figure, height=340, top=24, x={"title": x}, y={"title": y})
