"""Ask: what could be seen of whose pictures? The strongest known attackers try it, and the page says what they found."""

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from leakage.results import answer_file
from leakage.results.answer import plan
from leakage.runs.service import service
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, Picture, SpecError
from leakage.spec.question import Question
from leakage.ui.ask import answer_view, questions
from leakage.ui.common import explain
from leakage.ui.common.markdown import escape
from leakage.ui.common.ready import catalog
from leakage.ui.common.session import delete_all, owner
from leakage.ui.lab.chooser import uploads_of
from leakage.ui.lab.result import duration

QUESTION = "Phones train together and send updates, never pictures. Could somebody at the server see the pictures all the same?"
GROUP = "question"


def start(question: Question, own: list[Picture], known: Catalog) -> None:
    """The button, what will be run, and a file as another way to ask."""
    planned, words = list[Experiment](), ""
    try:
        planned = plan(question, known, service().estimate, slots=service().slots, own=own)
    except SpecError as error:
        words = str(error)
    with st.container(key="run-bar", gap="small"):
        pressed = st.button("Ask", type="primary", icon=":material/help:", width="stretch", disabled=not planned, key="run-button")
        groups = len({one.pictures for one in planned})
        told = (
            f"The strongest attackers first, on {groups} group{'s' * (groups > 1)} of pictures, {duration(60 * question.minutes)} at most"
        )
        st.caption(escape(words or told))
    with st.popover("Load an answer file", icon=":material/upload_file:", type="tertiary"):
        number = st.session_state.setdefault("answer-files", 0)
        file = st.file_uploader("answer.json", ["json"], key=f"answer-{number}")
        st.button("Ask it again", on_click=again, args=(file,), disabled=file is None)
    if pressed:
        submit(planned)
    if refused := st.session_state.pop("refused", ""):
        st.error(escape(refused))


def submit(planned: list[Experiment]) -> None:
    """Queue all, in their order, and put them into the address."""
    uploads = {id: file for one in planned for id, file in uploads_of(one.pictures).items()}
    try:
        st.query_params["runs"] = ",".join(service().submit_all(planned, owner(), uploads=uploads, group=GROUP))
    except SpecError as error:
        st.session_state["refused"] = str(error)


def again(file: UploadedFile) -> None:
    """Ask what a file asks, with its question in the widgets."""
    known = service().catalog()
    try:
        question = answer_file.question(file.getvalue().decode())
        if known is None:
            return
        questions.load(question, known)
        submit(plan(question, known, service().estimate, slots=service().slots))
    except (SpecError, UnicodeDecodeError) as error:
        st.session_state["refused"] = str(error)
    st.session_state["answer-files"] += 1  # an empty uploader


def page() -> None:
    """The whole page, top to bottom."""
    st.markdown(f"#### {QUESTION}")
    known = catalog()
    if known is None:
        return
    if questions.KEYS["who"] not in st.session_state:
        st.session_state["wrong"] = questions.read_url(known)
    for words in st.session_state.pop("wrong", []):
        st.warning(escape(words))
    left, right = st.columns([0.34, 0.66], gap="medium")
    with left:
        question, own = questions.choose(known)
        questions.write_url(question, known)
        start(question, own, known)
    with right:
        answer_view.show(st.query_params.get("runs", ""), question, known)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(explain.promise(), width="content")
        delete_all()


page()
