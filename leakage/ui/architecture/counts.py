"""Rank analysis in words, as bars and as a table: does a network's gradient hold the picture? Only counts, nothing is run."""

from dataclasses import dataclass, replace

import plotly.graph_objects as go

from leakage.frontend.markup import render
from leakage.networks.grammar import Block, Conv, NetworkError, Pool, Step, parse, write
from leakage.networks.rank import Analysis, LayerCount
from leakage.networks.templates import TEMPLATES
from leakage.ui.common.markdown import Markdown, escape

PAPER = "https://arxiv.org/abs/2010.07733"
WHOLE = "It says nothing of attacks that match the whole gradient at once."
MOST = 200.0  # per cent of the unknowns at which a bar is cut off
PARTS = {  # what a bar is made of -> its colour, on white and on black; the last is the page's warning colour
    "from the gradient": "#2a79be",
    "from the weights": "#7db8e3",
    "handed on by layers before": "#8c99a8",
    "missing": "#e69f00",
}


@dataclass(frozen=True)
class Verdict:
    """What the counts say of attacks that go layer by layer: one sentence, why, and whether R-GAP could do it."""

    headline: str
    reason: Markdown
    recursion: str


def missing(row: LayerCount) -> int:
    """Unknowns that the layer's own equations leave open: by the rank where it is known, else by counting; a linear layer leaves none."""
    if not row.counted:
        return 0
    return max(row.local, 0) if row.deficiency is None else row.deficiency


def short(row: LayerCount) -> int:
    """The same after what layers before it handed on; above 0 the picture cannot come back in full."""
    return missing(row) - row.v


def lacking(found: Analysis) -> bool:
    """Whether some layer has too few equations, those that are handed on to it included."""
    return any(missing(row) and short(row) > 0 for row in found.rows)


def label(row: LayerCount, steps: tuple[Step, ...]) -> str:
    """How a layer is called on the page: blocks are counted among blocks, as in the paper."""
    if row.step >= len(steps) or not isinstance(steps[row.step], Block):
        return row.name.rstrip("0123456789") if row.kind in ("mean", "max") else row.name
    number = sum(isinstance(step, Block) for step in steps[: row.step + 1])
    return " ".join([f"block {number}", *row.name.split(".")[1:]])


def layer(row: LayerCount, steps: tuple[Step, ...]) -> str:
    """The same inside a sentence."""
    name = label(row, steps)
    return name if name.startswith("block") else f"layer {name}"


def verdict(found: Analysis, steps: tuple[Step, ...], batch: int) -> Verdict:
    """The answer in plain words."""
    counted = [row for row in found.rows if row.counted]
    recursion = _recursion(found, steps, batch)
    if not counted:
        why = "Every layer is fully connected, and the gradient of such a layer holds its whole input."
        return Verdict("Layer by layer, the gradient holds the picture", escape(why), recursion)
    worst, tight = max(counted, key=short), found.critical
    partly = [row for row in counted if missing(row) and row.kind not in ("mean", "max")]
    if lacking(found):
        told = f"**{short(worst):,}** equations are missing: an attack that solves one layer after the other has to guess the rest. {WHOLE}"
        if short(worst) != found.index:
            told += " The index says less: it also counts equations that follow from others."
        headline = f"Layer by layer, not enough equations in {layer(worst, steps)}: {_determined(worst)}"
        return Verdict(headline, Markdown(told), recursion)
    if partly:
        row = max(partly, key=missing)
        why = (
            f"Alone it leaves {missing(row):,} open; layers before it hand on {row.v:,} equations. An attack that solves all layers "
            "at once can use them, one that goes layer by layer cannot."
        )
        headline = f"Layer by layer, enough equations in all, but not in {layer(row, steps)} alone: {_determined(row)}"
        return Verdict(headline, escape(why), recursion)
    assert tight is not None
    why = f"Even {layer(tight, steps)}, the tightest, has {-tight.index:,} equations more than unknowns."
    why = why if tight.index else f"The tightest, {layer(tight, steps)}, has exactly as many equations as unknowns."
    return Verdict("Layer by layer, the equations suffice", escape(why), recursion)


def _determined(row: LayerCount) -> str:
    most = "at most " if row.known is None else ""
    return f"{most}{row.x - missing(row):,} of {row.x:,} unknowns determined"


def _recursion(found: Analysis, steps: tuple[Step, ...], batch: int) -> str:
    stuck = [row for row in found.rows if missing(row)]
    if batch > 1:
        return "no, it is made for one picture"
    if any(isinstance(step, Pool) and step.kind == "max" for step in steps):
        return "no, it cannot tell what lies behind the largest of several numbers"
    if stuck:
        guess = f"only in part, it has to guess in {layer(stuck[-1], steps)}"  # it starts at the output
        return guess if lacking(found) else f"{guess}, unless it is small enough to be solved together with the layers before it"
    return "yes"


# ---------------------------------------------------------------- bars and table


def shares(row: LayerCount) -> list[float]:
    """Gradient, weights, handed on, missing: in per cent of the layer's unknowns, together at most MOST.

    Equations that follow from others are left out where the exact rank shows them.
    """
    own = row.known if row.deficiency and row.known is not None else row.w + row.z
    counts = [min(row.w, own), max(own - row.w, 0), max(row.v, 0), max(short(row), 0) if missing(row) else 0]
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
    elif missing(row):
        lines.append(f"By counting, they leave {missing(row):,} open.")
    return "<br>".join(lines)


def legend() -> str:
    """The colours of the bars, as HTML: it wraps on a phone."""
    return render("ui/architecture/legend.html.jinja", parts=PARTS)


def figure(found: Analysis, steps: tuple[Step, ...]) -> go.Figure:
    """One bar per layer, from the picture down: its equations in per cent of its unknowns, and in the warning colour what is missing."""
    rows = found.rows
    names = [label(row, steps) for row in rows]
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
        if open_ := missing(row):
            words = f"{short(row):,} missing" if short(row) > 0 else f"{open_:,} filled"
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
        left = f"{missing(row):,}, {how}" if row.counted else "none"
        cells = [f"{row.x:,}", f"{row.w:,}", f"{row.z:,}", f"{row.v:,}"]
        cells.append(f"{row.index:,}" if row.counted else "–")
        rank, differs = _rank(row)
        decides = row is found.critical
        lines.append({"name": label(row, steps), "decides": decides, "cells": cells, "rank": rank, "differs": differs, "left": left})
    return render("ui/architecture/counts.html.jinja", heads=heads, lines=lines)


def _rank(row: LayerCount) -> tuple[str, str]:
    """The rank by the formula or as measured; and what was measured, where the two differ."""
    if row.measured is None:
        return "–" if row.rank is None else f"{row.rank:,}", ""
    if row.rank in (None, row.measured):
        return f"{row.measured:,}, measured", ""
    return f"{row.rank:,}", f"measured {row.measured:,}"


# ---------------------------------------------------------------- texts


def template_of(text: str) -> str | None:
    """The template with the same steps, however they are written."""
    try:
        same = write(parse(text))
    except NetworkError:
        return None
    return next((name for name, steps in TEMPLATES.items() if write(parse(steps)) == same), None)


def with_skip(steps: tuple[Step, ...], place: int, skip: bool) -> str:
    """The network with the skip of one block there, or cut."""
    step = steps[place]
    return write((*steps[:place], replace(step, skip=skip), *steps[place + 1 :])) if isinstance(step, Block) else write(steps)


def with_filters(steps: tuple[Step, ...], place: int, filters: int) -> str:
    """The network with another number of filters in one convolution."""
    step = steps[place]
    return write((*steps[:place], replace(step, filters=filters), *steps[place + 1 :])) if isinstance(step, Conv) else write(steps)


def lines(text: str) -> str:
    """One step per line, as the editor shows it."""
    return text.replace(" - ", "\n")
