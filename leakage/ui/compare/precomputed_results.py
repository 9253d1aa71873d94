"""Precomputed results, folded away below a comparison: every protection and attacker, DLG's thresholds, and what protection costs."""

from collections.abc import Callable, Sequence

import plotly.graph_objects as go
import streamlit as st

from leakage.data.datasets import TITLES
from leakage.results.accuracy_cost import Cost, epsilon_of_json, epsilon_words, heading, recipe_words, scene_words, seeds_words, table
from leakage.results.over_rounds import curves
from leakage.results.precomputed import (
    AccuracyCost,
    Cell,
    accuracy_costs,
    costs_with_leakage,
    leak_count,
    load_results,
    one_scene,
    seen_words,
)
from leakage.spec.catalog import Catalog
from leakage.spec.prepared import prepared
from leakage.ui.common.figures import against_accuracy, band, bare, grey_line
from leakage.ui.common.markdown import escape
from leakage.ui.compare import attackers_view, proof_view, rounds_view
from leakage.ui.compare.sweep import LOOKS, mark_published

OPEN = "measured"  # the key of what is folded away
AVERAGE = "average the rounds"  # the answer to noise that was measured, by its name
DASH = "–"
COSTS = """{scene}: it learns by federated averaging with {clients} phones, behind each protection, {seeds}. What leaves nothing to learn
from ends at 10 to 11 %, which is guessing. Accuracy drop: in percentage
points, against the training without protection that is as long, with 95 % confidence.
Privacy budget (epsilon): of one picture in that training, at delta 1e-5; not sampled: as it was trained, every picture once in each pass;
if sampled: were every
batch drawn at random, which here nobody does; ∞: it bounds nothing."""
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
        "Every attacker": attackers_view.show,
        "From which strength on": lambda known: thresholds((load_results("thresholds") or {"rows": []})["rows"], known),
        "What it costs": render_cost,
        "Over many rounds": rounds_view.show,
        "A proof, computed": proof_view.show,
    }
    measured = (load_results("matrix"), load_results("thresholds"), accuracy_costs(known), curves(known))
    there = dict(zip(shown, (*measured, any(measured)), strict=True))
    names = [name for name, found in there.items() if found]
    if not names:
        st.caption("Measurements are missing: expected matrix.json, thresholds.json, accuracy_cost.json or rounds.json in assets/.")
        return
    tabs = st.tabs([escape(name) for name in names], key="measured-tab", on_change="rerun")
    for name, tab in zip(names, tabs, strict=True):
        with tab:
            if tab.open:
                shown[name](known)


# ---------------------------------------------------------------- from which strength on


def thresholds(rows: Sequence[Cell], known: Catalog) -> None:
    """DLG against one protection at growing strength."""
    names = list(dict.fromkeys(row["sweep"] for row in rows))
    chosen = st.segmented_control("Protection", names, default=names[0], required=True, format_func=escape, key="threshold")
    mine = [row for row in rows if row["sweep"] == chosen]
    entry = known.defenses.get(mine[0]["id"])
    st.plotly_chart(threshold(mine, known), key=f"threshold-{chosen}", config={"displayModeBar": False}, alt="PSNR against strength")
    if entry.backfires:
        st.caption(escape(entry.backfires))
    runs = mine[0]["runs"]
    averages = entry.default_strategy.idle and AVERAGE in entry.strategies
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
    grey_line(made, rows[0]["grey_psnr"], position="top left")
    mark_published(made, known.defenses.find(rows[0]["id"]), next(iter(rows[0]["fields"])))
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
    points = list(costs_with_leakage(known, prepared().compare.accuracy_cost_attack)) if one_scene(known) else []
    if len(points) > 1:
        figure = leakage_against_accuracy(points, scene=scene, recipe=recipe_words(known))
        st.plotly_chart(figure, key="leakage-against-accuracy", config={"displayModeBar": False}, alt="Leakage against accuracy")
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
    return epsilon_words(epsilon_of_json(getattr(row.privacy, which)) if row.privacy else None)


def leakage_against_accuracy(points: Sequence[tuple[AccuracyCost, Cell]], *, scene: str, recipe: str) -> go.Figure:
    """What leaks to the stronger attacker, against accuracy: up leaks more, right is cheaper. `scene`: the model and data of both."""
    return against_accuracy(
        [(row.accuracies, cell["psnr"], f"{row.title} ({cell['who']} attacker: {seen_words(cell)})") for row, cell in points],
        points[0][1]["grey_psnr"],
        x=f"{heading([Cost(recipe, accuracies=row.accuracies) for row, _ in points])} (%)",
        y=f"what leaks of {scene} (dB)",
        fractions=[leak_count(cell) / cell["runs"] for _, cell in points],
    )
