"""Parts that the figures of several pages share: a plain layout, the line of a grey picture, leakage against accuracy."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

import plotly.graph_objects as go

from leakage.results.intervals import FEWEST, mean_interval

LEAK = "#d55e00"  # Okabe-Ito: readable on white and on black


def bare(figure: go.Figure, *, height: int, x: dict[str, Any], y: dict[str, Any], top: int = 16, **more: Any) -> go.Figure:
    """Return the figure with a transparent background and axes that cannot be zoomed.

    Args:
        figure: It is changed in place.
        height: In pixels.
        x: Settings of the horizontal axis, as Plotly names them.
        y: Settings of the vertical axis.
        top: Margin above the plot, in pixels.
        more: Further settings of the layout.
    """
    return figure.update_layout(
        height=height,
        margin={"l": 4, "r": 12, "t": top, "b": 4},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        xaxis={"fixedrange": True, **x},
        yaxis={"fixedrange": True, **y},
        **more,
    )


def grey_line(figure: go.Figure, value: float | None, *, position: str = "top right") -> None:
    """Add a horizontal line at the score of a grey picture, the baseline of an attacker without a gradient, unless it is None.

    Args:
        figure: It is changed in place.
        value: The score of the grey picture, or None if it is not known.
        position: Where the line's annotation stands, as Plotly names it.
    """
    if value is not None:
        figure.add_hline(
            value, line_dash="dot", line_width=1.5, line_color="#888", annotation_text="a grey picture", annotation_position=position
        )


def band(figure: go.Figure, ends: Sequence[tuple[float, float, float]], colour: str) -> None:
    """Fill the area between the low and the high value at each x. `ends` holds (x, low, high), sorted by x."""
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
    fractions: Sequence[float] | None = None,
) -> go.Figure:
    """Return a scatter plot of leakage against accuracy: higher points leak more, points further right keep more accuracy.

    Args:
        points: For each point its accuracies from 0 to 1, one for each seed; its PSNR in dB; and its label. The point stands at the mean
            accuracy; from three seeds on a bar shows the 95 % confidence interval of the mean.
        grey: The PSNR of a grey picture, or None where it is unknown.
        x: The title of the horizontal axis.
        y: The title of the vertical axis.
        fractions: A number from 0 to 1 for each point, by which the marker is filled; None fills all markers.
    """
    accuracies, leaked, labels = (
        [100 * mean(each) for each, _, _ in points],
        [psnr for _, psnr, _ in points],
        [label for _, _, label in points],
    )
    halves = [100 * (mean_interval(each)[1] - mean(each)) if len(each) >= FEWEST else 0.0 for each, _, _ in points]
    filled = {"color": list(fractions), "colorscale": [[0, "#ffffff"], [1, LEAK]], "cmin": 0, "cmax": 1} if fractions else {"color": LEAK}
    middle = (min(accuracies) + max(accuracies)) / 2  # labels point inwards, so that a narrow page cuts none off
    order = sorted(range(len(points)), key=lambda index: accuracies[index])
    below = [order.index(index) % 2 == 1 for index in range(len(points))]  # neighbors alternate, so that labels do not cover each other
    figure = go.Figure()
    figure.add_scatter(
        x=accuracies,
        y=leaked,
        text=labels,
        mode="markers+text",
        textposition=[
            f"{'bottom' if low else 'top'} {'right' if accuracy < middle else 'left'}"
            for accuracy, low in zip(accuracies, below, strict=True)
        ],
        cliponaxis=False,
        error_x={"type": "data", "array": halves, "color": LEAK, "thickness": 1},
        marker={"size": 11, "line": {"width": 1.5, "color": LEAK}, **filled},
        hovertemplate="%{text}<br>accuracy %{x:.1f} %, PSNR %{y:.1f} dB<extra></extra>",
    )
    grey_line(figure, grey)
    return bare(figure, height=340, top=24, x={"title": x}, y={"title": y})
