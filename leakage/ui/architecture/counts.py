"""Rank analysis in words, as bars and as a table: does a network's gradient hold the picture? Only counts, nothing is run."""

import plotly.graph_objects as go

from leakage.frontend.markup import render
from leakage.networks.grammar import Step
from leakage.networks.rank import Analysis, LayerCount
from leakage.networks.rank_verdict import Verdict, layer_label, missing_equations, open_unknowns
from leakage.ui.common.markdown import Markdown, escape

PAPER = "https://arxiv.org/abs/2010.07733"
MOST = 200.0  # per cent of the unknowns at which a bar is cut off
PARTS = {  # what a bar is made of -> its colour, on white and on black; the last is the page's warning colour
    "from the gradient": "#2a79be",
    "from the weights": "#7db8e3",
    "handed on by layers before": "#8c99a8",
    "missing": "#e69f00",
}


def reason(said: Verdict) -> Markdown:
    """Return why the verdict is what it is, with the number of missing equations in bold."""
    number, _, rest = said.reason.partition(" ")
    return Markdown(f"**{escape(number)}** {escape(rest)}") if said.missing else escape(said.reason)


def shares(row: LayerCount) -> list[float]:
    """Gradient, weights, handed on, missing: in per cent of the layer's unknowns, together at most MOST.

    Equations that follow from others are left out where the exact rank shows them.
    """
    own = row.known if row.deficiency and row.known is not None else row.w + row.z
    counts = [min(row.w, own), max(own - row.w, 0), max(row.v, 0), max(missing_equations(row), 0) if open_unknowns(row) else 0]
    left, made = MOST, []
    for count in counts:
        made.append(min(100 * count / row.x, left))
        left -= made[-1]
    return made


def sentences(row: LayerCount, name: str) -> str:
    """What the pointer is told about a layer, in the markup of Plotly, which is not HTML."""
    what = "pixel values enter it" if row.step == 0 else "features enter it"
    lines = [f"<b>{name}</b>: {row.x:,} {what}.", f"{row.w:,} equations come from the gradient,", f"{row.z:,} from the weights"]
    if row.v < 0:
        lines[-1] += f"; layers before lack {-row.v:,}."
    else:
        lines[-1] += f", and {row.v:,} are handed on." if row.v else "."
    if not row.counted:
        lines.append("Fully connected: its gradient holds its whole input.")
    elif row.deficiency:
        lines.append(f"Alone they determine {row.known:,}: {row.deficiency:,} stay open.")
    elif open_unknowns(row):
        lines.append(f"By counting, they leave {open_unknowns(row):,} open.")
    return "<br>".join(lines)


def legend() -> str:
    """The colours of the bars, as HTML: it wraps on a phone."""
    return render("ui/architecture/legend.html.jinja", parts=PARTS)


def figure(found: Analysis, steps: tuple[Step, ...]) -> go.Figure:
    """One bar per layer, from the picture down: its equations in per cent of its unknowns, and in the warning colour what is missing."""
    rows = found.rows
    names = [layer_label(row, steps) for row in rows]
    places = list(range(len(rows)))
    texts = [sentences(row, name) for row, name in zip(rows, names, strict=True)]
    parts = [shares(row) for row in rows]
    made = go.Figure()
    for number, (part, colour) in enumerate(PARTS.items()):
        made.add_bar(
            orientation="h",
            y=places,
            x=[part_of[number] for part_of in parts],
            name=part,
            marker={"color": colour, "line": {"width": 0}},
            customdata=texts,
            hovertemplate="%{customdata}<extra></extra>",
        )
    for place, row in enumerate(rows):
        if open_ := open_unknowns(row):
            words = f"{missing_equations(row):,} missing" if missing_equations(row) > 0 else f"{open_:,} filled"
            end = sum(parts[place])
            inside = {"xanchor": "right", "xshift": -6, "font": {"color": "#10161d"}}
            beside = inside if end > MOST * 0.6 else {"xanchor": "left", "xshift": 4}
            made.add_annotation(x=end, y=place, text=words, showarrow=False, **beside)
    made.add_vline(100, line_width=1.5, line_dash="dot", line_color="#888")
    made.update_layout(
        barmode="stack",
        bargap=0.28,
        height=70 + 26 * max(len(rows), 3),
        margin={"l": 4, "r": 24, "t": 4, "b": 4},
        showlegend=False,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        xaxis={"range": [0, MOST + 4], "tickvals": [0, 50, 100, 150, MOST], "ticktext": ["0", "50", "100 %", "150", "≥ 200"]},
        yaxis={"tickvals": places, "ticktext": names, "range": [len(rows) - 0.5, -0.5], "showgrid": False, "fixedrange": True},
        hoverlabel={"align": "left"},
    )
    made.update_xaxes(fixedrange=True, title="equations for every 100 unknowns")
    return made


def table(found: Analysis, steps: tuple[Step, ...]) -> str:
    """The same numbers, and the exact rank where a formula is known to hold or it was measured, as an HTML table."""
    heads = ("Layer", "Unknowns", "From the gradient", "From the weights", "Handed on", "Index", "Exact rank", "Left open")
    lines = []
    for row in found.rows:
        how = "exact" if row.rank is not None else "by counting" if row.measured is None else "measured"
        left = f"{open_unknowns(row):,}, {how}" if row.counted else "none"
        cells = [f"{row.x:,}", f"{row.w:,}", f"{row.z:,}", f"{row.v:,}"]
        cells.append(f"{row.index:,}" if row.counted else "–")
        rank, differs = _rank(row)
        decides = row is found.critical
        lines.append({"name": layer_label(row, steps), "decides": decides, "cells": cells, "rank": rank, "differs": differs, "left": left})
    return render("ui/architecture/counts.html.jinja", heads=heads, lines=lines)


def _rank(row: LayerCount) -> tuple[str, str]:
    """The rank by the formula or as measured; and what was measured, where the two differ."""
    if row.measured is None:
        return "–" if row.rank is None else f"{row.rank:,}", ""
    if row.rank in (None, row.measured):
        return f"{row.measured:,}, measured", ""
    return f"{row.rank:,}", f"measured {row.measured:,}"


def lines(text: str) -> str:
    """One step per line, as the editor shows it."""
    return text.replace(" - ", "\n")
