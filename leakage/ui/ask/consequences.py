"""Below an answer: what was not tried, what to demand, what other protections would change, and what to take away."""

from collections.abc import Sequence
from urllib.parse import urlencode

import streamlit as st

from leakage.frontend.markup import render
from leakage.results.advice import DEMANDS, RESIDUAL, TITLES
from leakage.results.alternatives import Alternative, about_rows, alternatives
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
from leakage.ui.compare.compared import find_attacks

COLUMNS = ("Protection", "What was seen", "Best attacker", "Accuracy", "Cost")


def consequences(ids: str, answer: Answer, question: Question, known: Catalog) -> None:
    """Draw what was not tried, what to demand, what risk remains, what other protections change, and what to take away."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if answer.best:
            st.link_button("Open this run on the page Lab", f"{base()}/?run={answer.best.run}", icon=":material/science:", type="tertiary")
        st.link_button("Compare", f"{base()}/compare?runs={ids}", icon=":material/compare_arrows:", type="tertiary")
    st.markdown("**What was not tried**")
    st.markdown("\n".join(f"- {escape(words)}" for words in not_tried(question, answer, known)))
    st.markdown("**What to demand of a vendor**")
    advice(DEMANDS, question)
    st.markdown("**What risk remains**")
    advice(RESIDUAL, question)
    change(ids, question, known)
    take_away(ids, question)


def advice(sentences: Sequence[tuple[str, str]], question: Question) -> None:
    """List sentences of advice, each with a link to the lesson that explains it.

    Args:
        sentences: pairs of a sentence and the id of its lesson.
        question: the question; its word for the clients (phones, clinics, sites) is used in the sentences.
    """
    lessons = {lesson: link(Markdown(title), f"{base()}/learn/{lesson}") for lesson, title in TITLES.items()}
    st.markdown("\n".join(f"- {escape(in_words_of(question, sentence))} ({lessons[lesson]})" for sentence, lesson in sentences))


def change(ids: str, question: Question, known: Catalog) -> None:
    """Draw a table of the precomputed results of the protection in question and of none; an expander has the table of all."""
    st.markdown("**What other protections would change, and what they cost**")
    uploads = [picture for run in find_attacks(ids) for picture in run.experiment_as(Experiment).pictures if picture.source == "upload"]
    measured = alternatives(groups(question, list(dict.fromkeys(uploads)))[0], service(), known, lambda text: in_words_of(question, text))
    st.caption(escape(about_rows(question)))
    accuracy = next((row.cost.recipe for row in measured if row.cost.recipe), "")
    heads = [head if head != "Accuracy" else f"Accuracy of {accuracy}" for head in COLUMNS]
    nearest = [cells(row) for row in measured if row.chosen or not row.stack]
    st.html(render("ui/ask/alternatives.html.jinja", heads=heads, rows=nearest))
    with st.expander("All protections that were measured", key="asked-alternatives"):
        st.html(render("ui/ask/alternatives.html.jinja", heads=heads, rows=[cells(row) for row in measured]))


def cells(row: Alternative) -> tuple[bool, str, str, str, str, str]:
    """Return a protection as a row of the table: whether the question is about it, then title, what was seen, attack, accuracy and cost."""
    accuracy = "–" if row.cost.accuracy is None else f"{row.cost.accuracy:.1%}"
    return row.chosen, sentence_case(row.title), row.seen, row.attacker, accuracy, row.cost.difference or "–"


def take_away(ids: str, question: Question) -> None:
    """Draw buttons for a page to print and for a file from which the runs can be repeated, and the link to this answer."""
    with st.expander("To print", icon=":material/print:", key="asked-paper"):
        entries = {name: st.text_input(escape(name.capitalize()), max_chars=200, key=f"paper-{name}") for name in PAPER}
        st.caption(
            "Your entries go onto the page to print and into the address of that page, which your browser remembers. This server "
            "does not store them."
        )
        query = urlencode({"ids": ids, "question": question.model_dump_json(), **{name: text for name, text in entries.items() if text}})
        with st.container(horizontal=True):
            st.link_button("Open the page to print", f"{base()}/api/ask/answer.html?{query}", icon=":material/print:", type="tertiary")
            st.link_button(
                "Save this question as a file, to ask it again later",
                f"{base()}/api/ask/answer.json?{query}",
                icon=":material/download:",
                type="tertiary",
            )
            with st.popover("Link to this answer", icon=":material/link:", type="tertiary"):
                st.code((st.context.url or "").split("?")[0] + "?" + urlencode(st.query_params.to_dict()), language=None)
