"""A sweep on the page: what leaks against the strength of one protection, for each attacker."""

from collections.abc import Sequence
from statistics import mean

import plotly.graph_objects as go

from leakage.results.accuracy_cost import seeds_words
from leakage.results.comparison import Row
from leakage.results.intervals import FEWEST, mean_interval
from leakage.results.strength_sweep import find_sweep
from leakage.spec.catalog import Catalog, DefenseEntry
from leakage.spec.experiment import Experiment
from leakage.ui.common.figures import band, bare, grey_line

LOOKS = {"naive": ("#0072b2", "circle"), "adaptive": ("#d55e00", "diamond"), "both": ("#d55e00", "diamond")}  # Okabe-Ito
WIDE = 20.0  # from the smallest strength to so many times it the axis is linear, beyond logarithmic


def figure(rows: Sequence[Row], experiments: Sequence[Experiment], known: Catalog) -> go.Figure | None:
    """PSNR against strength for each attacker, beside a grey picture and the published threshold; None where nothing was swept.

    Once all have ended and every strength has at least three seeds: a line through the means, in a band that holds each with 95 %
    confidence. Else points, each the mean of what is there: a line would show differences that seeds alone make.
    """
    found = find_sweep(experiments)
    if not found:
        return None
    id, name, values = found
    figure = go.Figure()
    for attacker, (colour, shape) in LOOKS.items():
        reached: dict[float, list[float]] = {}
        for value, row in zip(values, rows, strict=True):
            if row.attacker == attacker and row.psnr is not None:
                reached.setdefault(value, []).append(row.psnr)
        points = sorted(reached.items())
        if not points:
            continue
        whole = _whole(rows, attacker, [over for _, over in points])
        if whole:
            band(figure, [(value, *mean_interval(over)) for value, over in points], colour)
        figure.add_scatter(
            x=[value for value, _ in points],
            y=[mean(over) for _, over in points],
            name=attacker,
            mode="lines+markers" if whole else "markers",
            line_color=colour,
            marker={"symbol": shape, "size": 9, "color": colour},
            customdata=[f", mean of {len(over)} seeds" if len(over) > 1 else "" for _, over in points],
            hovertemplate="%{x}: %{y:.1f} dB%{customdata}",
        )
    if not figure.data:
        return None
    wide = min(values) > 0 and max(values) / min(values) > WIDE
    grey_line(figure, rows[0].grey.get("psnr"))
    mark_published(figure, known.defenses.find(id), name)
    return bare(
        figure,
        height=340,
        top=24,
        legend={"orientation": "h", "y": -0.25},
        x={"title": f"strength ({name.replace('_', ' ')})", "type": "log" if wide else "linear"},
        y={"title": "what leaks (PSNR, dB)"},
    )


def _whole(rows: Sequence[Row], attacker: str, reached: Sequence[Sequence[float]]) -> bool:
    """Whether these strengths may be joined: every run of the attacker came to its answer, with seeds enough to tell the spread."""
    return all(row.answered for row in rows if row.attacker == attacker) and all(len(over) >= FEWEST for over in reached)


def why_points(experiments: Sequence[Experiment]) -> str:
    """Why a sweep with few seeds is drawn without a line; empty where there are enough."""
    seeds = len({one.seed for one in experiments})
    if seeds >= FEWEST:
        return ""
    words = f"Points without a line, of {seeds_words([seeds])}: another seed may move each by decibels."
    return f"{words} From {FEWEST} seeds on there is a line with its spread."


def mark_published(figure: go.Figure, protection: DefenseEntry | None, name: str) -> None:
    """A band where a protection was published to stop DLG, if that was; the words above it take no room from the axis."""
    published = protection and protection.published
    if published and published.field == name:
        figure.add_vrect(*published.ends, fillcolor="#888", opacity=0.15, line_width=0)
        words, paper = "grey: DLG fails, published (Zhu 2019)", {"xref": "paper", "yref": "paper"}
        figure.add_annotation(x=0, y=1, xanchor="left", yanchor="bottom", text=words, showarrow=False, **paper)
