"""The page Ask: what could somebody see of the private pictures? The strongest known attackers try, and the page says what they found."""

import time

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from leakage.results import answer_file
from leakage.results.asking import plan
from leakage.results.durations import duration
from leakage.runs.estimates import load_now
from leakage.runs.service import service
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, Picture, SpecError
from leakage.spec.question import Question, in_words_of
from leakage.spec.words import counted
from leakage.ui.ask import answer_view, questions
from leakage.ui.common.markdown import escape
from leakage.ui.common.ready import catalog
from leakage.ui.common.session import draw_foot, owner
from leakage.ui.compare.compared import find_attacks
from leakage.ui.lab.chooser import uploads_of

QUESTION = "Phones send updates, never pictures. Could somebody see the pictures anyway?"
GROUP = "question"


def start(question: Question, uploads: list[Picture], known: Catalog) -> None:
    """Draw the Ask button with what it will run, and the upload of an answer file; queue the runs when the button is pressed.

    Args:
        question: the question.
        uploads: the pictures that the visitor uploaded for it.
        known: the plug-ins.
    """
    planned, problem = list[Experiment](), ""
    try:
        planned = plan(question, known, seconds_now, slots=service().slots, uploads=uploads)
    except SpecError as error:
        problem = str(error)
    with st.container(key="run-bar", gap="small"):
        pressed = st.button("Ask", type="primary", icon=":material/help:", width="stretch", disabled=not planned, key="run-button")
        groups = counted(len({experiment.pictures for experiment in planned}), "group")
        summary = f"The strongest attackers try first, on {groups} of pictures, for {duration(60 * question.minutes)} at most"
        summary += ", and also on the same pictures without protection" if question.defenses or question.checked else ""
        st.caption(escape(problem or summary))
    with st.popover("Load a saved answer", icon=":material/upload_file:", type="tertiary"):
        number = st.session_state.setdefault("answer-files", 0)
        file = st.file_uploader("answer.json", ["json"], key=f"answer-{number}")
        st.button("Ask it again", on_click=again, args=(file,), disabled=file is None)
    if pressed:
        submit(planned)
    if refused := st.session_state.pop("refused", ""):
        st.error(escape(refused))


def seconds_now(experiment: Experiment) -> float | None:
    """Return how many seconds an experiment will take at the present load of this machine; None where there is no estimate."""
    idle = service().estimate(experiment)
    return None if idle is None else idle * load_now()


def submit(planned: list[Experiment]) -> None:
    """Queue all experiments in their order, and write the ids of the runs into the page's address (URL)."""
    pressed = time.time()
    uploads = {id: file for experiment in planned for id, file in uploads_of(experiment.pictures).items()}
    try:
        ids = service().submit_all(planned, owner(), uploads=uploads, group=GROUP)
        st.query_params["runs"] = ",".join(ids)
        st.session_state[answer_view.STORED] = [run.id for run in find_attacks(",".join(ids)) if run.created < pressed]
    except SpecError as error:
        st.session_state["refused"] = str(error)


def again(file: UploadedFile) -> None:
    """Set the widgets to the question of an answer file, which this page exported before, and run its experiments again."""
    known = service().catalog()
    try:
        question = answer_file.question(file.getvalue().decode())
        if known is None:
            return
        questions.load(question, known)
        repeated = answer_file.parse_experiments(file.getvalue().decode(), known)
        submit(repeated or plan(question, known, seconds_now, slots=service().slots))
    except (SpecError, UnicodeDecodeError) as error:
        st.session_state["refused"] = str(error)
    st.session_state["answer-files"] += 1  # an empty uploader


def page() -> None:
    """Draw the whole page, from top to bottom."""
    title = st.empty()
    title.markdown(f"#### {QUESTION}")
    known = catalog()
    if known is None:
        return
    if questions.KEYS["who"] not in st.session_state:
        st.session_state["wrong"] = questions.read_url(known)
    title.markdown(f"#### {escape(in_words_of(Question(called=st.session_state[questions.KEYS['called']]), QUESTION))}")
    for sentence in st.session_state.pop("wrong", []):
        st.warning(escape(sentence))
    left, right = st.columns([0.34, 0.66], gap="medium")
    with left:
        question, uploads = questions.choose(known)
        questions.write_url(question, known)
        start(question, uploads, known)
    with right:
        answer_view.show(st.query_params.get("runs", ""), question, known)
    draw_foot()


page()
