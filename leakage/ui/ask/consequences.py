"""Below an answer: what was not tried, what to demand, what other protections would change, and what to take away."""

from collections.abc import Sequence
from urllib.parse import urlencode

import streamlit as st

from leakage.frontend.markup import render
from leakage.results.advice import DEMANDS, RESIDUAL, TITLES
from leakage.results.alternatives import ANOTHER, MARKED, Alternative, alternatives
from leakage.results.answer import Answer
from leakage.results.answer_file import PAPER
from leakage.results.answer_words import not_tried
from leakage.results.differences import sentence_case
from leakage.runs.service import service
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.question import Question, groups, in_words_of
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import Markdown, escape, link
from leakage.ui.compare.compared import find_runs

COLUMNS = ("Protection", "What was seen", "Best attacker", "Accuracy", "Cost")


def consequences(ids: str, told: Answer, question: Question, known: Catalog) -> None:
    """What was not tried, what to demand, what each protection would change, and what to take away."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if told.best:
            st.link_button("Open in the Lab", f"{base()}/?run={told.best.run}", icon=":material/science:", type="tertiary")
        st.link_button("Compare", f"{base()}/compare?runs={ids}", icon=":material/compare_arrows:", type="tertiary")
    st.markdown("**What was not tried**")
    st.markdown("\n".join(f"- {escape(words)}" for words in not_tried(question, told, known)))
    st.markdown("**What to demand of a vendor**")
    advice(DEMANDS, question)
    st.markdown("**What risk remains**")
    advice(RESIDUAL, question)
    change(ids, question, known)
    take_away(ids, question)


def advice(told: Sequence[tuple[str, str]], question: Question) -> None:
    """Sentences as a list, each with the lesson that shows why."""
    lessons = {lesson: link(Markdown(title), f"{base()}/learn/{lesson}") for lesson, title in TITLES.items()}
    st.markdown("\n".join(f"- {escape(in_words_of(question, words))} ({lessons[lesson]})" for words, lesson in told))


def change(ids: str, question: Question, known: Catalog) -> None:
    """What was measured beforehand of the protection that was asked about and of none; and of all others, folded away."""
    st.markdown("**Another experiment: what other protections would change, and cost**")
    own = [picture for run in find_runs(ids) for picture in run.experiment_as(Experiment).pictures if picture.source == "upload"]
    measured = alternatives(groups(question, list(dict.fromkeys(own)))[0], service(), known, lambda text: in_words_of(question, text))
    st.caption(escape(in_words_of(question, f"{ANOTHER} {MARKED}")))
    accuracy = next((one.cost.recipe for one in measured if one.cost.recipe), "")
    heads = [head if head != "Accuracy" else f"Accuracy of {accuracy}" for head in COLUMNS]
    nearest = [cells(one) for one in measured if one.chosen or not one.stack]
    st.html(render("ui/ask/alternatives.html.jinja", heads=heads, rows=nearest))
    with st.expander("Every protection that was measured", key="asked-alternatives"):
        st.html(render("ui/ask/alternatives.html.jinja", heads=heads, rows=[cells(one) for one in measured]))


def cells(one: Alternative) -> tuple[bool, str, str, str, str, str]:
    """A protection as a line of the table: whether it was asked about, then what is said of it."""
    accuracy = "–" if one.cost.accuracy is None else f"{one.cost.accuracy:.1%}"
    return one.chosen, sentence_case(one.title), one.seen, one.attacker, accuracy, one.cost.difference or "–"


def take_away(ids: str, question: Question) -> None:
    """A page to print, a file that repeats it, the link."""
    with st.expander("To print", icon=":material/print:", key="asked-paper"):
        given = {name: st.text_input(escape(name.capitalize()), max_chars=200, key=f"paper-{name}") for name in PAPER}
        st.caption(
            "These words go onto the printed page and into its address, which your browser remembers. This server keeps them nowhere."
        )
        about = urlencode({"ids": ids, "question": question.model_dump_json(), **{name: text for name, text in given.items() if text}})
        with st.container(horizontal=True):
            st.link_button("Open the page to print", f"{base()}/api/ask/answer.html?{about}", icon=":material/print:", type="tertiary")
            st.link_button("File that repeats it", f"{base()}/api/ask/answer.json?{about}", icon=":material/download:", type="tertiary")
            with st.popover("Link to this answer", icon=":material/link:", type="tertiary"):
                st.code((st.context.url or "").split("?")[0] + "?" + urlencode(st.query_params.to_dict()), language=None)
