"""What protection costs, below a comparison: leakage against accuracy, and a training of this machine where nobody has measured it."""

from collections.abc import Sequence

import streamlit as st

from leakage.results import accuracy_cost
from leakage.results.comparison import Row
from leakage.results.defense_keys import key_of
from leakage.results.differences import protection, sentence_case
from leakage.runs.service import service
from leakage.runs.store import OPEN
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, Part, SpecError
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import Markdown, escape, link
from leakage.ui.common.session import owner
from leakage.ui.compare import table
from leakage.ui.training import training_view

WORDS = """Nobody has measured yet how good a model gets behind these. Here LeNet learns MNIST with three phones, as for every other number
of that column: minutes with most, hours with what looks at every picture by itself."""
REFUSED = "not-trained"


def show(rows: Sequence[Row], experiments: Sequence[Experiment], known: Catalog) -> None:
    """Leakage against accuracy where accuracies are known, and what can be measured."""
    both = list(zip(experiments, rows, strict=True))
    stacks = {
        key_of(one.defenses, known): one.defenses
        for one, row in both
        if row.accuracy is None and accuracy_cost.same_model(one.model, known)
    }
    unknown = [stack for stack in stacks.values() if accuracy_cost.training(stack, known)]
    drawn = [row for one, row in both if accuracy_cost.same_scene(one, known)]
    figure = table.leakage_against_accuracy(drawn, scene=accuracy_cost.scene_words(known)) if drawn else None
    apart = "" if figure else other_scene(rows, known)
    if figure or unknown or apart:
        st.markdown("**What protection costs**")
    if figure:
        st.plotly_chart(figure, key="compared-leakage-against-accuracy", config={"displayModeBar": False}, alt="Leakage against accuracy")
    if apart:
        st.caption(escape(apart))
    if unknown:
        with st.popover("Measure it here", icon=":material/speed:", type="tertiary"):
            st.caption(escape(training_view.missing("mnist") or WORDS))
            for stack in unknown:
                _offer(stack, known)
        if refused := st.session_state.pop(REFUSED, ""):
            st.error(escape(refused))


def other_scene(rows: Sequence[Row], known: Catalog) -> str:
    """Why leakage is not drawn against accuracies that are known: one plot would show two data sets as one."""
    if len({row.protection for row in rows if row.accuracy is not None}) < 2:
        return ""
    scene = accuracy_cost.scene_words(known)
    return (
        f"Not drawn against each other: the accuracies are of {scene}, what leaked here is of other pictures. Attack {scene} to see both."
    )


def _offer(stack: tuple[Part, ...], known: Catalog) -> None:
    """A button that asks for the training, or where it is; and why it ended, if it ended early."""
    words = sentence_case(protection(stack, stack, known))
    run = accuracy_cost.training_of(service(), stack, known)
    if run and run.status in OPEN:
        where = link(Markdown("being measured"), f"{base()}/training?run={run.id}")
        st.markdown(f"{escape(words)}: {where}")
    else:
        unable = bool(training_view.missing("mnist"))
        st.button(escape(words), on_click=_measure, args=(stack, known), icon=":material/play_arrow:", disabled=unable)
        if run:
            st.caption(escape(run.message or "It was stopped before its end."))


def _measure(stack: tuple[Part, ...], known: Catalog) -> None:
    """Queue the training."""
    asked = accuracy_cost.training(stack, known)
    try:
        if asked:
            service().train(asked, owner())
    except SpecError as error:
        st.session_state[REFUSED] = str(error)


def under_way(experiments: Sequence[Experiment], known: Catalog) -> bool:
    """Whether a training of these still moves."""
    stacks = {key_of(one.defenses, known): one.defenses for one in experiments if accuracy_cost.same_model(one.model, known)}
    runs = [accuracy_cost.training_of(service(), stack, known) for stack in stacks.values()]
    return any(run.status in OPEN for run in runs if run)
