"""A strength sweep on the page: what leaks over the strength of one protection, for each attacker."""

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
WIDE = 20.0  # if the largest strength is more than this many times the smallest, the axis is logarithmic


def figure(rows: Sequence[Row], experiments: Sequence[Experiment], known: Catalog) -> go.Figure | None:
    """Plot PSNR over the strength of a protection for each attacker; None if not exactly one number differs, or if no run has a PSNR.

    A line marks the PSNR of a grey picture. A grey band begins at the strength at which the attack DLG began to fail, as published, and
    ends where it always failed.

    If all runs of an attacker reached their answer and each strength has at least three seeds, a line joins the means, in a band of their
    95 % confidence intervals. Else there are points, each the mean of the runs so far: a line would show differences that come from the
    seeds alone.
    """
    sweep = find_sweep(experiments)
    if not sweep:
        return None
    id, name, values = sweep
    figure = go.Figure()
    for attacker, (colour, shape) in LOOKS.items():
        reached: dict[float, list[float]] = {}
        for value, row in zip(values, rows, strict=True):
            if row.attacker == attacker and row.psnr is not None:
                reached.setdefault(value, []).append(row.psnr)
        points = sorted(reached.items())
        if not points:
            continue
        joined = _whole(rows, attacker, [scores for _, scores in points])
        if joined:
            band(figure, [(value, *mean_interval(scores)) for value, scores in points], colour)
        figure.add_scatter(
            x=[value for value, _ in points],
            y=[mean(scores) for _, scores in points],
            name=attacker,
            mode="lines+markers" if joined else "markers",
            line_color=colour,
            marker={"symbol": shape, "size": 9, "color": colour},
            customdata=[f", mean of {len(scores)} seeds" if len(scores) > 1 else "" for _, scores in points],
            hovertemplate="%{x}: %{y:.1f} dB%{customdata}",
        )
    if not figure.data:
        return None
    logarithmic = min(values) > 0 and max(values) / min(values) > WIDE
    grey_line(figure, rows[0].grey.get("psnr"))
    mark_published(figure, known.defenses.find(id), name)
    return bare(
        figure,
        height=340,
        top=24,
        legend={"orientation": "h", "y": -0.25},
        x={"title": f"strength ({name.replace('_', ' ')})", "type": "log" if logarithmic else "linear"},
        y={"title": "what leaks (PSNR, dB)"},
    )


def _whole(rows: Sequence[Row], attacker: str, reached: Sequence[Sequence[float]]) -> bool:
    """Return whether a line may join the strengths: all runs of the attacker reached their answer, and each strength has enough seeds."""
    return all(row.answered for row in rows if row.attacker == attacker) and all(len(scores) >= FEWEST for scores in reached)


def why_points(experiments: Sequence[Experiment]) -> str:
    """Return why a sweep with few seeds has points and no line; empty if there are enough seeds."""
    seeds = len({experiment.seed for experiment in experiments})
    if seeds >= FEWEST:
        return ""
    reason = f"The chart has points of {seeds_words([seeds])}, without a line: another random start (seed) may move each point by decibels."
    return f"{reason} From {FEWEST} random starts (seeds) on, the chart has a line with its range of error."


def mark_published(figure: go.Figure, protection: DefenseEntry | None, name: str) -> None:
    """Draw a band over the strengths that were published to stop DLG, if there are any, with a label above the axis."""
    published = protection and protection.published
    if published and published.field == name:
        figure.add_vrect(*published.ends, fillcolor="#888", opacity=0.15, line_width=0)
        label, paper = "grey band: strengths at which the attack DLG fails, as published (Zhu 2019)", {"xref": "paper", "yref": "paper"}
        figure.add_annotation(x=0, y=1, xanchor="left", yanchor="bottom", text=label, showarrow=False, **paper)
