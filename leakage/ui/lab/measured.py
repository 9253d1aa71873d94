"""Measurements that the Lab asks of a worker, because the web process has no torch: shared, and in nobody's list of runs."""

import streamlit as st

from leakage.runs.run_request import Measurement
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.ui.common.markdown import escape

OWNER = "drawings"  # holds these runs, so that they are in no visitor's list of runs
EVERY = 0.5  # seconds between two looks for a result


def ask(task: Measurement) -> Run | None:
    """Return the run that measured this, or the one under way; queue one where there is none. Raises SpecError."""
    return service().measurement(task, OWNER) or service().look(service().measure(task, OWNER))


@st.fragment(run_every=EVERY)
def wait(run_id: str, sentence: str) -> None:
    """Draw a sentence of this program, and draw the page again once the run has ended."""
    run = service().look(run_id)
    if run is None or run.status not in OPEN:
        st.rerun()
    st.caption(escape(sentence))
