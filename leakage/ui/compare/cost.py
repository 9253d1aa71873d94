"""What protection costs, below a comparison: leakage against accuracy, and a button that measures an accuracy that is not known yet."""

from collections.abc import Sequence
from statistics import mean

import plotly.graph_objects as go
import streamlit as st

from leakage.results import accuracy_cost
from leakage.results.accuracy_cost import heading
from leakage.results.comparison import Row
from leakage.results.defense_keys import key_of
from leakage.results.differences import protection, sentence_case
from leakage.runs.service import service
from leakage.runs.store import OPEN
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, Part, SpecError
from leakage.ui.common.base_path import base
from leakage.ui.common.figures import against_accuracy
from leakage.ui.common.markdown import Markdown, escape, link
from leakage.ui.common.session import owner
from leakage.ui.training import training_view

WORDS = (
    "How accurate a model becomes with these protections was not measured yet. A press on a button trains a small "
    "network (LeNet) on handwritten digits (MNIST) with three phones. All other accuracies of this table were measured "
    "in the same way. The training takes minutes with most protections, and hours with protections that process every "
    "picture by itself."
)
REFUSED = "not-trained"


def show(rows: Sequence[Row], experiments: Sequence[Experiment], known: Catalog) -> None:
    """Draw leakage against accuracy for the protections with a known accuracy, and a button for each that can be measured.

    Args:
        rows: the results of the comparison.
        experiments: the experiment of each row.
        known: the plug-ins.
    """
    pairs = list(zip(experiments, rows, strict=True))
    stacks = {
        key_of(experiment.defenses, known): experiment.defenses
        for experiment, row in pairs
        if row.accuracy is None and experiment.server is None and accuracy_cost.same_model(experiment.model, known)
    }
    unknown = [stack for stack in stacks.values() if accuracy_cost.training(stack, known)]
    same_scene_rows = [row for experiment, row in pairs if accuracy_cost.same_scene(experiment, known)]
    figure = leakage_against_accuracy(same_scene_rows, scene=accuracy_cost.scene_words(known)) if same_scene_rows else None
    apart = "" if figure else other_scene(rows, known)
    if figure or unknown or apart:
        st.markdown("**What protection costs in accuracy**")
    if figure:
        st.plotly_chart(figure, key="compared-leakage-against-accuracy", config={"displayModeBar": False}, alt="Leakage against accuracy")
    if apart:
        st.caption(escape(apart))
    if unknown:
        with st.popover("Measure the accuracy here", icon=":material/speed:", type="tertiary"):
            st.caption(escape(training_view.missing("mnist") or WORDS))
            for stack in unknown:
                _offer(stack, known)
        if refused := st.session_state.pop(REFUSED, ""):
            st.error(escape(refused))


def leakage_against_accuracy(rows: Sequence[Row], *, scene: str) -> go.Figure | None:
    """Plot leakage over accuracy for every protection with a known accuracy; None if there are fewer than two.

    Leakage is the PSNR of the strongest attacker, averaged over its runs, for example over seeds.

    Args:
        rows: the results of a comparison.
        scene: the model and the data of both axes.
    """
    costs = {row.protection: row.cost for row in rows if row.accuracy is not None}
    points = []
    for stack, known_cost in costs.items():
        attackers: dict[tuple[str, str, str, str], list[float]] = {}
        for row in rows:
            if row.protection == stack and row.psnr is not None and (row.answered or row.shows):
                attackers.setdefault((row.attacker, row.server, row.attack, row.answer), []).append(row.psnr)
        if attackers:
            points.append((known_cost.accuracies, max(map(mean, attackers.values())), stack))
    if len(points) < 2:
        return None
    axis_title = heading(list(costs.values()))
    return against_accuracy(points, rows[0].grey.get("psnr"), x=f"{axis_title} (%)", y=f"what leaks of {scene} (dB)")


def other_scene(rows: Sequence[Row], known: Catalog) -> str:
    """Return why leakage is not plotted against accuracies of another data set; empty if fewer than two accuracies are known."""
    if len({row.protection for row in rows if row.accuracy is not None}) < 2:
        return ""
    scene = accuracy_cost.scene_words(known)
    return (
        f"A chart of leakage and accuracy together is missing: the accuracies were measured with {scene}, but other pictures are "
        f"attacked here. Attack {scene} to see a chart."
    )


def _offer(stack: tuple[Part, ...], known: Catalog) -> None:
    """Draw a button that measures a protection's accuracy, or a link to that training; and why it ended, if it ended early."""
    title = sentence_case(protection(stack, stack, known))
    run = accuracy_cost.training_of(service(), stack, known)
    if run and run.status in OPEN:
        status = link(Markdown("being measured"), f"{base()}/training?run={run.id}")
        st.markdown(f"{escape(title)}: {status}")
    else:
        unable = bool(training_view.missing("mnist"))
        st.button(escape(title), on_click=_measure, args=(stack, known), icon=":material/play_arrow:", disabled=unable)
        if run:
            st.caption(escape(run.message or "The training was stopped before its end."))


def _measure(stack: tuple[Part, ...], known: Catalog) -> None:
    """Queue the training."""
    task = accuracy_cost.training(stack, known)
    try:
        if task:
            service().train(task, owner())
    except SpecError as error:
        st.session_state[REFUSED] = str(error)


def under_way(experiments: Sequence[Experiment], known: Catalog) -> bool:
    """Return whether the accuracy of a protection among these is being measured."""
    stacks = {
        key_of(experiment.defenses, known): experiment.defenses
        for experiment in experiments
        if accuracy_cost.same_model(experiment.model, known)
    }
    runs = [accuracy_cost.training_of(service(), stack, known) for stack in stacks.values()]
    return any(run.status in OPEN for run in runs if run)
