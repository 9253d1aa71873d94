"""Precomputed results over many rounds: what leaks to an attacker that watches longer, epsilon, and how one protection is solved."""

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from leakage.results.differences import sentence_case
from leakage.results.over_rounds import Curve, curves
from leakage.results.precomputed import load_results
from leakage.spec.catalog import Catalog
from leakage.ui.common.figures import bare, grey_line
from leakage.ui.common.markdown import escape

COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7")  # Okabe-Ito
PROMISE = "#666"
SYMBOLS = ("diamond", "circle", "square", "x")
ABOUT = (
    "A server that sends the same model in every round of training receives updates of the same pictures each time, "
    "with new random numbers (noise) added. If the noise is zero on average, the average of the updates comes to the "
    "gradient in the end. The privacy budget (epsilon) takes this averaging into account: the budget grows with every "
    "round, and a larger budget promises less. "
    "Each point stands for {pictures} pictures (CIFAR-10) on an untrained small network (LeNet), by the better of "
    "{attacks} attacks. The numbers beside a point say how many pictures are recognizable. On the axis of rounds, "
    "equal distances multiply the number of rounds equally (logarithmic)."
)
HOOK = (
    "**Why an attacker can undo {short}.** Instead of each number g of the gradient, {short} sends v = g + C / g. The "
    "number C is secret, and the same for the whole gradient. But the size of v is at least 2 √C. Among many numbers "
    "the smallest size of v comes close to 2 √C, so the attacker finds C. Then the size of g is one of two numbers, one "
    "below √C and one above √C. The same g, sent again with another C, shows which of the two numbers is right. The "
    "left chart shows what was sent with one C ({kept} numbers). The right chart shows how close every strategy of the "
    "attacker comes to the gradient."
)
BESIDE = ("ratio", "draws", "best possible")  # columns that are not a strategy


def show(known: Catalog) -> None:
    """Draw one protection of the visitor's choice: its curves, and a sentence for each strategy."""
    recipe, all_curves = (load_results("rounds") or {})["recipe"], curves(known)
    st.markdown(ABOUT.format(pictures=int(recipe["pictures"]), attacks=len(recipe["attacks"])))
    titles = list(dict.fromkeys(curve.title for curve in all_curves))
    chosen = st.selectbox("Protection", titles, key="rounds-stack")
    selected = [curve for curve in all_curves if curve.title == chosen]
    st.plotly_chart(
        over_rounds(selected, known), key=f"rounds-{titles.index(chosen):d}", config={"displayModeBar": False}, alt="PSNR and epsilon"
    )
    for curve in selected:
        st.caption(f"{escape(sentence_case(known.strategy_title(curve.strategy)))}: {escape(curve.sentence())}")
    solved = load_results("glaus")
    if solved and solved["defense"] == selected[0].defense.id:
        st.markdown(HOOK.format(short=escape(known.defenses.get(solved["defense"]).short), kept=int(solved["hook"]["kept"])))
        left, right = st.columns(2)
        left.plotly_chart(
            hook(solved["hook"]),
            key="rounds-hook",
            config={"displayModeBar": False},
            alt="How large the sent number v is for each size of the gradient's number g",
        )
        right.plotly_chart(
            closeness(solved["cifar"]),
            key="rounds-close",
            config={"displayModeBar": False},
            alt="How close the attacker comes to the gradient (cosine), by the number of updates",
        )


def over_rounds(selected: Sequence[Curve], known: Catalog) -> go.Figure:
    """Plot PSNR over the number of rounds, a line for each strategy, and epsilon on a second axis.

    Args:
        selected: the curves of one protection.
        known: the plug-ins.
    """
    chart = go.Figure()
    for curve, colour, symbol in zip(selected, COLOURS, SYMBOLS, strict=False):
        name = sentence_case(known.strategy_title(curve.strategy))
        chart.add_scatter(
            x=[cell["rounds"] for cell in curve.cells],
            y=[cell["psnr"] for cell in curve.cells],
            name=name,
            mode="lines+markers+text",
            text=[f"{cell['recognizable']}/{cell['runs']}" for cell in curve.cells],
            textposition="top center",
            textfont={"size": 10, "color": colour},
            line_color=colour,
            marker={"symbol": symbol, "size": 9},
            hovertemplate=f"{name}, %{{x}} rounds<br>PSNR %{{y:.1f}} dB, recognizable %{{text}}<extra></extra>",
        )
    epsilons = [(cell["rounds"], bound) for cell, bound in zip(selected[0].cells, selected[0].epsilons, strict=True) if bound is not None]
    finite = [(rounds, bound) for rounds, bound in epsilons if math.isfinite(bound)]
    if finite:
        chart.add_scatter(
            x=[rounds for rounds, _ in finite],
            y=[bound for _, bound in finite],
            name="epsilon" if len(finite) == len(epsilons) else "epsilon (a privacy budget above 200 bounds nothing, and is not drawn)",
            yaxis="y2",
            mode="lines+markers",
            line={"color": PROMISE, "dash": "dash"},
            hovertemplate="%{x} rounds<br>epsilon %{y:.1f}<extra></extra>",
        )
    grey_line(chart, selected[0].cells[0]["grey_psnr"], position="top left")
    second: dict[str, Any] = {"title": "epsilon", "overlaying": "y", "side": "right", "fixedrange": True, "rangemode": "tozero"}
    return bare(
        chart,
        height=360,
        top=24,
        legend={"orientation": "h", "y": -0.25},
        x={"title": "rounds watched", "type": "log", "tickvals": [cell["rounds"] for cell in selected[0].cells], "tickformat": "d"},
        y={"title": "closeness (PSNR, dB): higher leaks more"},
        **({"yaxis2": {**second, "showgrid": False}} if finite else {}),
    )


def hook(draw: dict[str, Any]) -> go.Figure:
    """Plot the sizes of the entries that a client sends over the sizes of the gradient's entries, with a line at the smallest sent size.

    Args:
        draw: one random draw of the protection's noise as stored: `g` the sizes of the gradient's entries, `v` the sizes that are sent,
            `smallest` the least of these.
    """
    chart = go.Figure()
    chart.add_scatter(x=draw["g"], y=draw["v"], mode="markers", marker={"size": 4, "color": COLOURS[1]}, name="sent")
    chart.add_scatter(
        x=[draw["g"][0], draw["g"][-1]],
        y=[draw["smallest"]] * 2,
        mode="lines+text",
        text=["the smallest: 2 √C", ""],
        textposition="top right",
        line={"dash": "dot", "color": COLOURS[0]},
    )
    return bare(
        chart,
        height=300,
        x={"title": "|g|, size of a number of the gradient", "type": "log"},
        y={"title": "|v|, size of the number that is sent", "type": "log"},
        showlegend=False,
    )


def closeness(rows: Sequence[dict[str, Any]]) -> go.Figure:
    """Plot how similar (cosine) each adaptive strategy's estimate is to the unprotected gradient, over the number of updates it combines.

    Args:
        rows: the stored results. Only those with the smallest `ratio`, the fraction of entries that is sent, are plotted.
    """
    selected = [row for row in rows if row["ratio"] == min(row["ratio"] for row in rows)]
    chart = go.Figure()
    names = [name for name in selected[0] if name not in BESIDE]
    for name, colour, symbol in zip(names, COLOURS, SYMBOLS, strict=False):
        chart.add_scatter(
            x=[row["draws"] for row in selected],
            y=[row[name] for row in selected],
            name=sentence_case(name.partition(":")[0]),
            mode="lines+markers",
            line_color=colour,
            marker={"symbol": symbol, "size": 8},
        )
    return bare(
        chart,
        height=300,
        legend={"orientation": "h", "y": -0.35},
        x={
            "title": "times that the same gradient was sent",
            "type": "log",
            "tickvals": [row["draws"] for row in selected],
            "tickformat": "d",
        },
        y={"title": "likeness to the gradient (cosine)", "range": [0, 1.02]},
    )
