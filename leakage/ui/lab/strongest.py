"""Beside a result: try the strongest known attackers on the same update, all at once, on the page Compare."""

from contextlib import suppress

import streamlit as st

from leakage.results import worst_case
from leakage.runs.events import AttackEnd
from leakage.runs.service import service
from leakage.runs.store import Run
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError
from leakage.spec.words import RECOGNIZABLE
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import owner
from leakage.ui.lab.chooser import uploads_of

MOST = 6  # of them
ABOUT = """The attacks that fit these pictures and this model, the strongest known first, each with everything that can be done about the
protection. They run side by side on the page Compare; the best of them is the answer."""


def button(run: Run, experiment: Experiment, known: Catalog) -> None:
    """The button, unless the picture was recognizable already, or no other attacker fits; pressed, it goes to the comparison."""
    end = run.outcome(AttackEnd)
    tries: list[Experiment] = []
    with suppress(SpecError):  # the run's trained model may be gone since
        tries = worst_case.strongest_attacks(experiment, known)[:MOST]
    if len(tries) < 2 or (end and end.verdict and end.verdict.word == RECOGNIZABLE):
        return
    label = f"… the strongest known attackers: {len(tries)} runs?"
    if st.button(label, help=ABOUT, icon=":material/bolt:", key=f"strongest-{run.id}"):
        try:
            ids = service().submit_all(tries, owner(), uploads=uploads_of(experiment.pictures))
        except SpecError as error:
            st.error(escape(error))
            return
        st.switch_page("pages/compare.py", query_params={"runs": ",".join(ids)})
