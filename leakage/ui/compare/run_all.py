"""The Run button of the page Compare, with its estimate, and the upload of a saved comparison."""

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from leakage.results import comparison_file
from leakage.results.comparison_plan import queue_order
from leakage.runs.service import service
from leakage.spec.experiment import Experiment, SpecError
from leakage.ui.common import address
from leakage.ui.common.markdown import escape
from leakage.ui.common.pace import about
from leakage.ui.common.session import owner
from leakage.ui.compare import compared, variants_address
from leakage.ui.lab.chooser import uploads_of

GROUP = "comparison"


def draw(experiments: list[Experiment], problems: list[str]) -> None:
    """Draw the problems, the Run button with its estimate, and the upload of a comparison file; queue the runs when pressed."""
    for problem in problems:
        st.warning(escape(problem))
    enough = len(experiments) > 1
    with st.container(key="run-bar", gap="small"):
        if st.button("Run all", type="primary", icon=":material/play_arrow:", width="stretch", disabled=not enough, key="run-button"):
            submit(experiments, anew=bool(st.session_state.get("anew")))
        st.caption(escape(estimate(experiments) if enough else "Choose at least two variants."))
        if enough and compared.are_there(st.query_params.get("runs", ""), experiments):
            st.toggle("Compute again", key="anew", help="If this is off, an earlier run with the same settings and the same seed is shown.")
    with st.popover("Load a saved comparison", icon=":material/upload_file:", type="tertiary"):
        number = st.session_state.setdefault("comparison-files", 0)
        file = st.file_uploader("Open a saved comparison: comparison.json, or its report", ["json", "html"], key=f"comparison-{number}")
        st.button("Run it again", on_click=again, args=(file,), disabled=file is None)
    if refused := st.session_state.pop("refused", ""):
        st.error(escape(refused))


def estimate(experiments: list[Experiment]) -> str:
    """Return in words how many runs there are, and about how long they take."""
    seconds = [service().estimate(experiment) for experiment in experiments]
    runs = f"{len(experiments)} runs"
    known = [estimate for estimate in seconds if estimate is not None]
    if len(known) < len(seconds):
        return f"{runs}; how long they take is not known yet"
    slots = service().slots
    return f"{runs}, {about(max(sum(known) / slots, *known))}, {slots} at a time"


def submit(experiments: list[Experiment], *, anew: bool = False) -> None:
    """Queue all experiments, and write the ids of the runs into the page's address (URL), in the order of the variants."""
    order = queue_order(experiments)
    uploads = {id: file for experiment in experiments for id, file in uploads_of(experiment.pictures).items()}
    try:
        ids = service().submit_all([experiments[index] for index in order], owner(), uploads=uploads, group=GROUP, anew=anew)
        st.session_state[address.NEXT] = {"runs": ",".join(id for _, id in sorted(zip(order, ids, strict=True)))}
    except SpecError as error:
        st.session_state["refused"] = str(error)


def again(file: UploadedFile) -> None:
    """Set the widgets to an exported comparison, and run it again."""
    try:
        experiments = comparison_file.experiments(file.getvalue().decode(), service().catalog())
    except (SpecError, UnicodeDecodeError) as error:
        st.session_state["refused"] = str(error)
        return
    st.session_state["comparison-files"] += 1  # an empty uploader
    if known := service().catalog():
        variants_address.load(experiments, known)
    submit(experiments)
