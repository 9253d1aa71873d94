"""What the pages of model and attacker trainings share: queue a training, watch it until it ends, show its queue position, stop it."""

from collections.abc import Callable

import streamlit as st

from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.experiment import SpecError
from leakage.spec.tasks import InverterTraining, Training
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import owner


def begin(task: Training | InverterTraining) -> None:
    """Queue a training and open it on the page; show why if it is refused."""
    try:
        st.query_params["run"] = service().train(task, owner())
    except SpecError as error:
        st.error(escape(error))


def show(run: Run, render: Callable[[Run], None]) -> None:
    """Draw a training with `render`, again every second while it waits or runs."""
    if run.status in OPEN:
        watch(run.id, render)
    else:
        render(run)


@st.fragment(run_every=1.0)
def watch(run_id: str, render: Callable[[Run], None]) -> None:
    """Draw a training that waits or runs; draw the whole page again when it has ended."""
    run = service().look(run_id)
    if run is None or run.status not in OPEN:
        st.rerun()
    render(run)


def waiting(run: Run, begun: str) -> str:
    """Return the training's position in the queue, or the sentence `begun` if it runs."""
    place = service().place(run.id)
    return f"Waiting: {place.position} in the queue" if place.position else begun


def stop_button(run: Run, tooltip: str | None = None) -> None:
    """Draw a button that stops the training, if it waits or runs and this visitor may stop it.

    Args:
        run: the training.
        tooltip: a text for the pointer, for example what is kept of a stopped training.
    """
    if run.status in OPEN and service().may_cancel(run.id, owner()):
        st.button(
            "Stop", on_click=service().cancel, args=(run.id, owner()), icon=":material/stop:", help=escape(tooltip) if tooltip else None
        )
