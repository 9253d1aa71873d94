"""What the trainings of models and of attackers share on the page: how they begin, are watched while they move, wait and are stopped."""

from collections.abc import Callable

import streamlit as st

from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.experiment import SpecError
from leakage.spec.tasks import InverterTraining, Training
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import owner


def begin(task: Training | InverterTraining) -> None:
    """Ask for a training, and look at it; what speaks against it is said."""
    try:
        st.query_params["run"] = service().train(task, owner())
    except SpecError as error:
        st.error(escape(error))


def show(run: Run, picture: Callable[[Run], None]) -> None:
    """A training as `picture` draws it; once a second while it moves."""
    if run.status in OPEN:
        watch(run.id, picture)
    else:
        picture(run)


@st.fragment(run_every=1.0)
def watch(run_id: str, picture: Callable[[Run], None]) -> None:
    """One that moves; once it has ended the whole page is drawn again."""
    run = service().look(run_id)
    if run is None or run.status not in OPEN:
        st.rerun()
    picture(run)


def waiting(run: Run, begun: str) -> str:
    """Its place in the queue, or these words once it has begun."""
    place = service().place(run.id)
    return f"Waiting: {place.position} in the queue" if place.position else begun


def stop_button(run: Run, words: str | None = None) -> None:
    """The button that ends it, for those who may; `words` say what is kept."""
    if run.status in OPEN and service().may_cancel(run.id, owner()):
        st.button("Stop", on_click=service().cancel, args=(run.id, owner()), icon=":material/stop:", help=words)
