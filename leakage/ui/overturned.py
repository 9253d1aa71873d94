"""A published result, overturned: one click, two runs of the same pictures and seed, side by side."""

import streamlit as st

from leakage.catalog import Catalog
from leakage.runs.service import service
from leakage.spec import Assumptions, Experiment, Part, SpecError
from leakage.ui import explain, forms
from leakage.ui.session import owner

NAME = "overturned"  # ?preset=overturned, and the group of the two runs
TITLE = "A published result, overturned"
NAIVE, ADAPTIVE = "Naive: as reported", "Adaptive: same data, same seed"
STORY = f"""
**{TITLE}.** FedADMM phones keep correction terms (*duals*) to themselves and send only a mixture. A reproduction report attacked
them with DLG, got noise, and concluded that ADMM does not leak. Its attack made two mistakes: its imitation of the phone never started
afresh, so the goal moved while it searched; and it compared what is sent with a gradient, though that is half as large. Repair both, and
the same data give the picture away: a failed attack is no protection. To repair one alone: Naive, and the fine settings of the attack.
"""
PAIR = tuple(
    Experiment(protocol=Part(id="fedadmm"), attack=Part(id="dlg_admm"), assume=Assumptions(adaptive=adaptive)) for adaptive in (False, True)
)


def offer() -> None:
    """The button."""
    st.button(
        TITLE,
        on_click=start,
        icon=":material/compare:",
        type="tertiary",
        key=NAME,
        help="Two attacks on the same phone, live: as reported, and repaired.",
    )


def start() -> None:
    """Submit both and show them; the widgets show the adaptive one."""
    st.query_params.pop("preset", None)
    try:
        runs = [service().submit(experiment, owner(), group=NAME) for experiment in PAIR]
    except SpecError as error:
        st.session_state["refused"] = str(error)
        return
    known = service().catalog()
    if known:
        forms.reset(known)
        forms.load(PAIR[-1].resolve(known))
    st.query_params["run"] = ",".join(runs)


def titles(experiments: list[Experiment], known: Catalog) -> list[str]:
    """What stands above each of the runs shown."""
    if [shape(experiment, known) for experiment in experiments] == [shape(experiment, known) for experiment in PAIR]:
        return [NAIVE, ADAPTIVE]
    return [explain.title(experiment, known) for experiment in experiments]


def is_shown(experiments: list[Experiment], known: Catalog) -> bool:
    """Whether these are the two runs of the preset."""
    return titles(experiments, known) == [NAIVE, ADAPTIVE]


def shape(experiment: Experiment, known: Catalog) -> Experiment:
    """The experiment with every field spelled out; as it is where a plug-in of it is gone."""
    try:
        return experiment.resolve(known)
    except SpecError:
        return experiment
