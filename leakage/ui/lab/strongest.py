"""The button beside a result that runs the strongest known attackers on the same update, on the page Compare."""

from contextlib import suppress

import streamlit as st

from leakage.results import worst_case
from leakage.runs.endings import why_refused
from leakage.runs.events import AttackEnd
from leakage.runs.service import service
from leakage.runs.store import Run
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError
from leakage.spec.words import RECOGNIZABLE
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import owner
from leakage.ui.lab.chooser import uploads_of

MAX_ATTACKERS = 6
ABOUT = (
    "All attacks that fit these pictures and this model, the strongest known attacks first. Each attack is tried with "
    "every known strategy against the protection. The attacks run side by side on the page Compare, and what counts is "
    "the result that shows most of the pictures."
)


def button(run: Run, experiment: Experiment, known: Catalog) -> None:
    """Draw the button that runs the strongest known attackers on the pictures of a run and opens the page Compare with them.

    There is no button if the run has shown the picture recognizably already, if the phone sent nothing, or if fewer than two attackers fit
    its experiment.
    """
    end = run.outcome(AttackEnd)
    strongest: list[Experiment] = []
    with suppress(SpecError):  # the trained model of the run may have been deleted
        strongest = worst_case.strongest_attacks(experiment, known)[:MAX_ATTACKERS]
    if len(strongest) < 2 or (end and (why_refused(end.ending) or (end.verdict and end.verdict.word == RECOGNIZABLE))):
        return
    label = f"… the strongest known attackers try ({len(strongest)} runs)?"
    if st.button(label, help=ABOUT, icon=":material/bolt:", key=f"strongest-{run.id}"):
        try:
            ids = service().submit_all(strongest, owner(), uploads=uploads_of(experiment.pictures))
        except SpecError as error:
            st.error(escape(error))
            return
        st.switch_page("pages/compare.py", query_params={"runs": ",".join(ids)})
