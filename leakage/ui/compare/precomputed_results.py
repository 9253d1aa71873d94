"""Precomputed results, folded away below a comparison: every protection and attacker, DLG's thresholds, and what protection costs."""

from collections.abc import Callable, Sequence
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from leakage.data.datasets import TITLES
from leakage.results.differences import sentence_case
from leakage.results.markup import render
from leakage.results.over_rounds import curves
from leakage.results.precomputed import (
    AccuracyCost,
    Cell,
    Duel,
    Line,
    accuracy_costs,
    both,
    leaking,
    load_results,
    matrix,
    one_scene,
    seen_words,
)
from leakage.results.utility import Cost, epsilon_words, heading, in_full, recipe_words, scene_words, seeds_words, table
from leakage.spec.catalog import Catalog
from leakage.spec.prepared import prepared
from leakage.spec.threat_model import format_value
from leakage.ui.common.figures import against_accuracy, band, bare, grey_line
from leakage.ui.common.markdown import escape
from leakage.ui.compare import proof_view, rounds_view
from leakage.ui.compare.sweep import LOOKS, mark_published
from leakage.ui.compare.table import TableCell, heat

OPEN = "measured"  # the key of what is folded away
AVERAGE = "average the rounds"  # the answer to noise that was measured, by its name
NAIVE, KNOWING = "naive", "adaptive"
DASH = "–"
MATRIX = """Each cell: PSNR in decibels, the mean of {tries} runs ({pictures} CIFAR-10 pictures, {seeds} seeds of an untrained LeNet),
coloured by how many are recognizable or singled out; a grey picture scores {grey:.1f} dB. Adaptive: the strongest of those who know the
protection; below, what they do. {settings} For R-GAP the phone computes and sends numbers of 64 bits. Who puts rounds together
watches {watched} of a server that stands still; nowhere else more than one. **Framed: the naive attacker shows none of
them, who knows the protection does.**"""
COSTS = """{scene}: it learns by federated averaging with {clients} phones, behind each protection, {seeds}. What leaves nothing to learn
from ends at 10 to 11 %, which is guessing. Accuracy drop: in percentage
points, against the training without protection that is as long, with 95 % confidence.
Privacy budget (epsilon): of one picture in that training, at delta 1e-5; not sampled: as it was trained, every picture once in each pass;
if sampled: were every
batch drawn by chance, which here nobody does; ∞: it bounds nothing."""
APART = """Leakage is not drawn against accuracy here: “Every attacker” was measured with pictures of {leaks}, the accuracies are of
{scene}. One plot of both would be of two data sets. In a comparison of {scene} above it is drawn."""


@st.fragment
def show(known: Catalog) -> None:
    """All that there is, worked out only while it is open."""
    with st.expander(
        "Precomputed results: what stops an attacker, and what it costs", icon=":material/grid_on:", key=OPEN, on_change="rerun"
    ) as folded:
        if folded.open:
            content(known)


def content(known: Catalog) -> None:
    """A tab for everything that was measured."""
    shown: dict[str, Callable[[Catalog], None]] = {
        "Every attacker": attackers,
        "From which strength on": lambda known: thresholds((load_results("thresholds") or {"rows": []})["rows"], known),
        "What it costs": render_cost,
        "Over many rounds": rounds_view.show,
        "A proof, computed": proof_view.show,
    }
    measured = (load_results("matrix"), load_results("thresholds"), accuracy_costs(known), curves(known))
    there = dict(zip(shown, (*measured, any(measured)), strict=True))
    names = [name for name, found in there.items() if found]
    if not names:
        st.caption("The files of measurements are not here: expected matrix.json, thresholds.json, price.json or rounds.json in assets/.")
        return
    tabs = st.tabs([escape(name) for name in names], key="measured-tab", on_change="rerun")
    for name, tab in zip(names, tabs, strict=True):
        with tab:
            if tab.open:
                shown[name](known)


# ---------------------------------------------------------------- every attacker


def attackers(known: Catalog) -> None:
    """The matrix of protections and attacks."""
    lines = matrix(known)
    recipe = (load_results("matrix") or {})["recipe"]
    played = [cell for line in lines for duel in line.duels.values() for cell in (duel.naive,) if cell and "psnr" in cell]
    runs = [cell["runs"] for cell in played]
    tries = " to ".join(map(str, sorted({min(runs), max(runs)})))
    settings = "; ".join(f"{known.get('attack', id).short}: {_settings(fields)}" for id, fields in recipe["attacks"].items() if fields)
    st.markdown(
        MATRIX.format(
            tries=escape(tries),
            pictures=int(recipe["pictures"]),
            seeds=int(recipe["seeds"]),
            watched=int(recipe.get("watched", 16)),
            grey=float(played[0]["grey_psnr"]),
            settings=escape(f"{settings}."),
        )
    )
    st.html(matrix_table(lines, known))
    for words in puzzles(lines, known):
        st.caption(escape(words))
    titles = {line.title: line for line in lines if not line.refused}
    chosen = st.selectbox("Every attacker of one protection, in words", titles, key="measured-stack")
    st.markdown("\n".join(f"- {escape(sentence)}" for sentence in in_words(titles[chosen], known)))


def _settings(fields: dict[str, Any]) -> str:
    """What of an attack is not as usual.

    >>> _settings({"steps": 1500, "polish": 20})
    'steps 1500, polish 20'
    """
    return ", ".join(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in fields.items())


def puzzles(lines: Sequence[Line], known: Catalog) -> list[str]:
    """Why knowing of a protection does worse, wherever it does."""
    ids = [part.id for line in lines if any(duel.backfires for duel in line.duels.values()) for part in line.stack]
    found = [known.find("defense", id) for id in dict.fromkeys(ids)]
    return [entry.backfires for entry in found if entry and entry.backfires]


def in_words(line: Line, known: Catalog) -> list[str]:
    """A sentence for every attacker of a protection."""
    return [
        f"{known.get('attack', attack).title}. {describe(cell, known)}"
        for attack, duel in line.duels.items()
        for cell in (duel.naive, *duel.knowing.values())
        if cell
    ]


def matrix_table(lines: Sequence[Line], known: Catalog) -> str:
    """As HTML: a line for every protection, for each attack the naive attacker and the one who knows."""
    attacks = list(dict.fromkeys(attack for line in lines for attack in line.duels))
    return render(
        "ui/compare/matrix.html.jinja",
        attackers=(NAIVE, KNOWING),
        attacks=[known.get("attack", id).short for id in attacks],
        lines=[{"title": line.title, "refused": line.refused, "cells": _cells(line, attacks, known)} for line in lines],
    )


def _cells(line: Line, attacks: Sequence[str], known: Catalog) -> list[TableCell]:
    return [] if line.refused else [it for attack in attacks for it in _duel(line.duels.get(attack), known)]


def _duel(duel: Duel | None, known: Catalog) -> list[TableCell]:
    """The naive attacker's cell and that of who knows the protection."""
    if duel is None or duel.naive is None:
        return [TableCell(text=DASH)] * 2
    if not duel.knowing:  # no protection: there is nothing to know
        return [_cell(duel.naive, known, span=2)]
    others = " ".join(describe(cell, known) for cell in duel.knowing.values())
    if duel.best is None:
        return [_cell(duel.naive, known), TableCell(text="same", title=others)]
    return [_cell(duel.naive, known), _cell(duel.best, known, framed=duel.only_naive, words=others)]


def _cell(cell: Cell, known: Catalog, *, words: str = "", framed: bool = False, span: int = 1) -> TableCell:
    return heat(cell["psnr"], leaking(cell) / cell["runs"], title=words or describe(cell, known), framed=framed, span=span)


def describe(cell: Cell, known: Catalog) -> str:
    """One attacker's result in a sentence."""
    who = sentence_case(known.strategy_title(cell["who"]))
    if "psnr" not in cell:
        return f"{who}: {cell.get('same') or cell.get('refused')}."
    low, high = cell["interval"]
    below = f" Less than who does not know of it: {cell['below']}." if "below" in cell else ""
    return (
        f"{who}: {cell['psnr']:.1f} dB, SSIM {cell['ssim']:.2f}, {seen_words(cell)} ({100 * low:.0f} to {100 * high:.0f} % with 95 % "
        f"confidence), first of the line-up {100 * cell['identified']:.0f} %, labels found out {100 * cell['labels']:.0f} %.{below}"
    )


# ---------------------------------------------------------------- from which strength on


def thresholds(rows: Sequence[Cell], known: Catalog) -> None:
    """DLG against one protection at growing strength."""
    names = list(dict.fromkeys(row["sweep"] for row in rows))
    chosen = st.segmented_control("Protection", names, default=names[0], required=True, format_func=escape, key="threshold")
    mine = [row for row in rows if row["sweep"] == chosen]
    entry = known.get("defense", mine[0]["id"])
    st.plotly_chart(threshold(mine, known), key=f"threshold-{chosen}", config={"displayModeBar": False}, alt="PSNR against strength")
    if entry.backfires:
        st.caption(escape(entry.backfires))
    runs = mine[0]["runs"]
    averages = entry.idle and AVERAGE in entry.strategies
    knows = "watches 16 rounds of a server that stands still, and averages them" if averages else "knows what the phone does"
    reported = f"{escape(entry.published.words)} " if entry.published else ""
    st.caption(
        f"{reported}Here: DLG on an untrained LeNet, {runs:d} CIFAR-10 pictures each, up to 2 starts; the band goes from the "
        f"worst to the best picture, beside each point how many are recognizable. Adaptive: the attacker {knows}."
    )


def threshold(rows: Sequence[Cell], known: Catalog) -> go.Figure:
    """PSNR against strength, a line and a band for each attacker, beside a grey picture and the published threshold."""
    made, values = go.Figure(), [next(iter(row["fields"].values())) for row in rows]
    words = any(isinstance(value, str) for value in values)
    wide = not words and min(values) > 0
    for attacker, (colour, symbol) in list(LOOKS.items())[:2]:
        line = [(row, value) for row, value in zip(rows, values, strict=True) if row["who"] == attacker]
        x = [value for _, value in line]
        if not words:
            band(made, [(value, min(row["psnr_each"]), max(row["psnr_each"])) for row, value in line], colour)
        made.add_scatter(
            x=x,
            y=[row["psnr"] for row, _ in line],
            name=attacker,
            mode="markers+text" if words else "lines+markers+text",
            text=[f"{row['recognizable']}/{row['runs']}" for row, _ in line],
            textposition="top center" if attacker == "adaptive" else "bottom center",
            textfont={"size": 10, "color": colour},
            line_color=colour,
            marker={"symbol": symbol, "size": 9},
            hovertemplate=f"{attacker}, strength %{{x}}<br>PSNR %{{y:.1f}} dB, recognizable %{{text}}<extra></extra>",
        )
    grey_line(made, rows[0]["grey_psnr"], words="top left")
    mark_published(made, known.find("defense", rows[0]["id"]), next(iter(rows[0]["fields"])))
    return bare(
        made,
        height=360,
        top=24,
        legend={"orientation": "h", "y": -0.25},
        x={
            "title": "strength",
            "type": "category" if words else "log" if wide else "linear",
            "tickvals": list(dict.fromkeys(values)),
            "tickformat": "~g",
        },
        y={"title": "PSNR (dB): higher leaks more"},
    )


# ---------------------------------------------------------------- what it costs


def render_cost(known: Catalog) -> None:
    """Accuracy behind every protection, and beside what leaks."""
    rows = accuracy_costs(known)
    scene, clients = scene_words(known), (table() or {})["recipe"]["clients"]
    seeds = seeds_words([len(row.accuracies) for row in rows])
    st.markdown(COSTS.format(scene=escape(scene), clients=int(clients), seeds=escape(seeds)))
    points = list(both(known, prepared().compare.utility_attack)) if one_scene(known) else []
    if len(points) > 1:
        figure = privacy_utility(points, scene=scene, recipe=recipe_words(known))
        st.plotly_chart(figure, key="utility", config={"displayModeBar": False}, alt="Leakage against accuracy")
    elif leaks := load_results("matrix"):
        st.caption(APART.format(scene=escape(scene), leaks=TITLES[leaks["recipe"]["data"]]))
    st.dataframe(
        {
            "Protection": [row.title for row in rows],
            "Accuracy (%)": [round(100 * row.accuracy, 2) for row in rows],
            "Seeds": [len(row.accuracies) for row in rows],
            "Accuracy drop (percentage points)": [row.difference or DASH for row in rows],
            "Privacy budget (epsilon), not sampled": [_epsilon(row, "unsampled") for row in rows],
            "Privacy budget (epsilon), if sampled": [_epsilon(row, "sampled") for row in rows],
            "Model with": [row.model or "its usual settings" for row in rows],
            "Rounds": [row.rounds for row in rows],
            "Training pictures": [row.pictures for row in rows],
            "Server's step": [row.server_rate for row in rows],
        },
        column_config={"Protection": st.column_config.TextColumn(width="medium")},
        hide_index=True,
        key="prices",
    )


def _epsilon(row: AccuracyCost, which: str) -> str:
    """Of the training, as it was trained or were it sampled."""
    return epsilon_words(in_full(getattr(row.privacy, which)) if row.privacy else None)


def privacy_utility(points: Sequence[tuple[AccuracyCost, Cell]], *, scene: str, recipe: str) -> go.Figure:
    """What leaks to the stronger attacker, against accuracy: up leaks more, right is cheaper. `scene`: the model and data of both."""
    return against_accuracy(
        [(row.accuracies, cell["psnr"], f"{row.title} ({cell['who']} attacker: {seen_words(cell)})") for row, cell in points],
        points[0][1]["grey_psnr"],
        x=f"{heading([Cost(recipe, accuracies=row.accuracies) for row, _ in points])} (%)",
        y=f"what leaks of {scene} (dB)",
        shares=[leaking(cell) / cell["runs"] for _, cell in points],
    )
