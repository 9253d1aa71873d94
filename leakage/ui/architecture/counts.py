"""Rank analysis on the page: the verdict's reason, bars and a table of the counts of every layer. Nothing is run."""

import plotly.graph_objects as go

from leakage.frontend.markup import render
from leakage.networks.grammar import Step
from leakage.networks.rank import Analysis, LayerCount
from leakage.networks.rank_verdict import Verdict, layer_label, missing_equations, open_unknowns
from leakage.ui.common.markdown import Markdown, escape

PAPER = "https://arxiv.org/abs/2010.07733"
MOST = 200.0  # a bar is cut off at this percentage of the unknowns
PARTS = {  # part of a bar -> its colour, readable on white and on black; the last is the page's warning colour
    "from the gradient": "#2a79be",
    "from the weights": "#7db8e3",
    "handed on by layers before": "#8c99a8",
    "missing": "#e69f00",
}


def reason(verdict: Verdict) -> Markdown:
    """Return the reason of a verdict, with the number of missing equations in bold."""
    number, _, rest = verdict.reason.partition(" ")
    return Markdown(f"**{escape(number)}** {escape(rest)}") if verdict.missing else escape(verdict.reason)


def shares(row: LayerCount) -> list[float]:
    """Return the four parts of a layer's bar, in per cent of its unknowns; together at most MOST.

    The parts are the equations from the gradient, those from the weights, those that earlier layers hand on, and the missing equations.
    Equations that follow from other equations are left out if the exact rank is known.
    """
    equations = row.known if row.deficiency and row.known is not None else row.w + row.z
    counts = [min(row.w, equations), max(equations - row.w, 0), max(row.v, 0), max(missing_equations(row), 0) if open_unknowns(row) else 0]
    room, parts = MOST, []
    for count in counts:
        parts.append(min(100 * count / row.x, room))
        room -= parts[-1]
    return parts


def sentences(row: LayerCount, name: str) -> str:
    """Describe a layer's counts for the tooltip of its bar, in the markup of Plotly, which is not HTML.

    Args:
        row: the counts of the layer.
        name: the layer's name on the page.
    """
    input_of_layer = "pixel values enter it" if row.step == 0 else "features enter it"
    lines = [f"<b>{name}</b>: {row.x:,} {input_of_layer}.", f"{row.w:,} equations come from the gradient,", f"{row.z:,} from the weights"]
    if row.v < 0:
        lines[-1] += f"; earlier layers lack {-row.v:,}."
    else:
        lines[-1] += f", and {row.v:,} are handed on." if row.v else "."
    if not row.counted:
        lines.append("The gradient of a layer of this kind (fully connected) holds everything that enters the layer.")
    elif row.deficiency:
        lines.append(f"By themselves the equations of this layer determine {row.known:,} unknowns: {row.deficiency:,} unknowns stay open.")
    elif open_unknowns(row):
        lines.append(f"Going by the number of this layer's equations, {open_unknowns(row):,} unknowns stay open.")
    return "<br>".join(lines)


def legend() -> str:
    """Return the colours of the bars as HTML, which wraps on a narrow screen."""
    return render("ui/architecture/legend.html.jinja", parts=PARTS)


def figure(analysis: Analysis, steps: tuple[Step, ...]) -> go.Figure:
    """Plot a bar for each layer, from the picture down.

    A bar shows the layer's equations in per cent of its unknowns, and the missing equations in the warning colour.
    """
    rows = analysis.rows
    names = [layer_label(row, steps) for row in rows]
    indices = list(range(len(rows)))
    texts = [sentences(row, name) for row, name in zip(rows, names, strict=True)]
    parts = [shares(row) for row in rows]
    chart = go.Figure()
    for number, (part, colour) in enumerate(PARTS.items()):
        chart.add_bar(
            orientation="h",
            y=indices,
            x=[part_of[number] for part_of in parts],
            name=part,
            marker={"color": colour, "line": {"width": 0}},
            customdata=texts,
            hovertemplate="%{customdata}<extra></extra>",
        )
    for index, row in enumerate(rows):
        if open_ := open_unknowns(row):
            label = f"{missing_equations(row):,} missing" if missing_equations(row) > 0 else f"{open_:,} filled"
            end = sum(parts[index])
            inside_bar = {"xanchor": "right", "xshift": -6, "font": {"color": "#10161d"}}
            anchor = inside_bar if end > MOST * 0.6 else {"xanchor": "left", "xshift": 4}
            chart.add_annotation(x=end, y=index, text=label, showarrow=False, **anchor)
    chart.add_vline(100, line_width=1.5, line_dash="dot", line_color="#888")
    chart.update_layout(
        barmode="stack",
        bargap=0.28,
        height=70 + 26 * max(len(rows), 3),
        margin={"l": 4, "r": 24, "t": 4, "b": 4},
        showlegend=False,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        xaxis={"range": [0, MOST + 4], "tickvals": [0, 50, 100, 150, MOST], "ticktext": ["0", "50", "100 %", "150", "≥ 200"]},
        yaxis={"tickvals": indices, "ticktext": names, "range": [len(rows) - 0.5, -0.5], "showgrid": False, "fixedrange": True},
        hoverlabel={"align": "left"},
    )
    chart.update_xaxes(fixedrange=True, title="equations for every 100 unknowns")
    return chart


def table(analysis: Analysis, steps: tuple[Step, ...]) -> str:
    """Return the counts as an HTML table, with the exact rank of each layer that a formula gives or that was measured."""
    heads = ("Layer", "Unknowns", "From the gradient", "From the weights", "Handed on", "Index", "Exact rank", "Left open")
    rows = []
    for row in analysis.rows:
        source = "exact" if row.rank is not None else "by counting" if row.measured is None else "measured"
        left = f"{open_unknowns(row):,}, {source}" if row.counted else "none"
        cells = [f"{row.x:,}", f"{row.w:,}", f"{row.z:,}", f"{row.v:,}"]
        cells.append(f"{row.index:,}" if row.counted else "–")
        rank, differs = _rank(row)
        decides = row is analysis.critical
        rows.append({"name": layer_label(row, steps), "decides": decides, "cells": cells, "rank": rank, "differs": differs, "left": left})
    return render("ui/architecture/counts.html.jinja", heads=heads, lines=rows)


def _rank(row: LayerCount) -> tuple[str, str]:
    """Return two table cells on the rank of a layer's equations: by the formula or as measured, and as measured if that differs."""
    if row.measured is None:
        return "–" if row.rank is None else f"{row.rank:,}", ""
    if row.rank in (None, row.measured):
        return f"{row.measured:,}, measured", ""
    return f"{row.rank:,}", f"measured {row.measured:,}"


def lines(text: str) -> str:
    """Return a network with one step per line, as the editor shows it."""
    return text.replace(" - ", "\n")
