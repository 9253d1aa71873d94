"""Precomputed results in an expander below a comparison: every protection and attacker, DLG's thresholds, and what protection costs."""

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

OPEN = "measured"  # the key of the expander
AVERAGE = "average the rounds"  # the name of the adaptive strategy against noise
DASH = "–"
COSTS = (
    "Behind each protection, {clients} phones together trained {scene} (federated averaging), with {seeds} "
    "(random starts). A model that learns nothing ends at an accuracy of 10 to 11 %, which is guessing. The accuracy "
    "drop, with the range in which it lies with 95 % confidence, is in percentage points, against a training of the same length "
    "without protection. The privacy budget (epsilon) limits how much the training can show about one picture (differential "
    "privacy; delta, the small slack of this limit, is 0.00001). The models were trained in passes that take every picture once; "
    "the last column is for the same training with pictures drawn at random for every step. The sign ∞ "
    "means that the privacy budget bounds nothing."
)
APART = (
    "There is no chart of leakage and accuracy together here. The attacks were measured with pictures of {leaks}, the "
    "accuracies are of {scene}. A chart of both would mix two sets of pictures. Above, a comparison made with {scene} has such "
    "a chart."
)


@st.fragment
def show(known: Catalog) -> None:
    """Draw the precomputed results in an expander; nothing is computed while it is closed."""
    with st.expander(
        "Precomputed results: what stops an attacker, and what it costs", icon=":material/grid_on:", key=OPEN, on_change="rerun"
    ) as folded:
        if folded.open:
            content(known)


def content(known: Catalog) -> None:
    """Draw a tab for each kind of precomputed result."""
    tabs_by_name: dict[str, Callable[[Catalog], None]] = {
        "Every attacker": attackers_view.show,
        "How strong a protection must be": lambda known: thresholds((load_results("thresholds") or {"rows": []})["rows"], known),
        "What it costs": render_cost,
        "Over many rounds": rounds_view.show,
        "A proof, computed": proof_view.show,
    }
    measured = (load_results("matrix"), load_results("thresholds"), accuracy_costs(known), curves(known))
    results_by_name = dict(zip(tabs_by_name, (*measured, any(measured)), strict=True))
    names = [name for name, found in results_by_name.items() if found]
    if not names:
        st.caption(
            "The files with precomputed results are missing: expected matrix.json, thresholds.json, accuracy_cost.json "
            "or rounds.json in the folder assets/."
        )
        return
    tabs = st.tabs([escape(name) for name in names], key="measured-tab", on_change="rerun")
    for name, tab in zip(names, tabs, strict=True):
        with tab:
            if tab.open:
                tabs_by_name[name](known)


# ---------------------------------------------------------------- from which strength on


def thresholds(rows: Sequence[Cell], known: Catalog) -> None:
    """Draw the precomputed PSNR of DLG (Deep Leakage from Gradients) against the strength of a protection that the visitor chooses."""
    titles = list(dict.fromkeys(row["sweep"] for row in rows))
    chosen = st.segmented_control("Protection", titles, default=titles[0], required=True, format_func=escape, key="threshold")
    rows_of_sweep = [row for row in rows if row["sweep"] == chosen]
    entry = known.defenses.get(rows_of_sweep[0]["id"])
    st.plotly_chart(
        threshold(rows_of_sweep, known), key=f"threshold-{chosen}", config={"displayModeBar": False}, alt="PSNR against strength"
    )
    if entry.backfires:
        st.caption(escape(entry.backfires))
    runs = rows_of_sweep[0]["runs"]
    averages = entry.default_strategy.idle and AVERAGE in entry.strategies
    knowledge = (
        ("watches 16 rounds of training in which the server sends the same model, and averages the updates")
        if averages
        else "knows what the phone does"
    )
    reported = f"{escape(entry.published.words)} " if entry.published else ""
    st.caption(
        f"{reported}Measured here: an attack that guesses and compares (DLG) on an untrained small network (LeNet), with {runs:d} "
        "pictures (CIFAR-10) at each strength and up to 2 tries. The coloured band goes from the least close guess to the closest. The "
        f"number beside each point says how many pictures are recognizable. The adaptive attacker {knowledge}."
    )


def threshold(rows: Sequence[Cell], known: Catalog) -> go.Figure:
    """Plot PSNR over strength, a line and a band for each attacker, beside a grey picture and the published threshold."""
    chart, values = go.Figure(), [next(iter(row["fields"].values())) for row in rows]
    is_text = any(isinstance(value, str) for value in values)
    logarithmic = not is_text and min(values) > 0
    for attacker, (colour, symbol) in list(LOOKS.items())[:2]:
        pairs = [(row, value) for row, value in zip(rows, values, strict=True) if row["who"] == attacker]
        x = [value for _, value in pairs]
        if not is_text:
            band(chart, [(value, min(row["psnr_each"]), max(row["psnr_each"])) for row, value in pairs], colour)
        chart.add_scatter(
            x=x,
            y=[row["psnr"] for row, _ in pairs],
            name=attacker,
            mode="markers+text" if is_text else "lines+markers+text",
            text=[f"{row['recognizable']}/{row['runs']}" for row, _ in pairs],
            textposition="top center" if attacker == "adaptive" else "bottom center",
            textfont={"size": 10, "color": colour},
            line_color=colour,
            marker={"symbol": symbol, "size": 9},
            hovertemplate=f"{attacker}, strength %{{x}}<br>PSNR %{{y:.1f}} dB, recognizable %{{text}}<extra></extra>",
        )
    grey_line(chart, rows[0]["grey_psnr"], position="top left")
    mark_published(chart, known.defenses.find(rows[0]["id"]), next(iter(rows[0]["fields"])))
    return bare(
        chart,
        height=360,
        top=24,
        legend={"orientation": "h", "y": -0.25},
        x={
            "title": "strength",
            "type": "category" if is_text else "log" if logarithmic else "linear",
            "tickvals": list(dict.fromkeys(values)),
            "tickformat": "~g",
        },
        y={"title": "closeness (PSNR, dB): higher leaks more"},
    )


# ---------------------------------------------------------------- what it costs


def render_cost(known: Catalog) -> None:
    """Draw leakage against accuracy, and a table of the accuracy with every protection."""
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
            "Privacy budget (epsilon) if each pass of the training takes every picture once": [_epsilon(row, "unsampled") for row in rows],
            "Privacy budget (epsilon) if each step of the training draws its pictures at random": [
                _epsilon(row, "sampled") for row in rows
            ],
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
    """Return the epsilon of a training as text.

    Args:
        row: the training.
        which: "unsampled" as it was trained, "sampled" as if every batch were drawn at random.
    """
    return epsilon_words(epsilon_of_json(getattr(row.privacy, which)) if row.privacy else None)


def leakage_against_accuracy(points: Sequence[tuple[AccuracyCost, Cell]], *, scene: str, recipe: str) -> go.Figure:
    """Plot what leaks to the stronger attacker over accuracy: higher leaks more, further right costs less.

    Args:
        points: a protection's accuracies, and the cell of its stronger attacker.
        scene: the model and data of both axes.
        recipe: how the models were trained.
    """
    return against_accuracy(
        [(row.accuracies, cell["psnr"], f"{row.title} ({cell['who']} attacker: {seen_words(cell)})") for row, cell in points],
        points[0][1]["grey_psnr"],
        x=f"{heading([Cost(recipe, accuracies=row.accuracies) for row, _ in points])} (%)",
        y=f"what leaks of {scene} (dB)",
        fractions=[leak_count(cell) / cell["runs"] for _, cell in points],
    )
