"""The answer on the page: a word, what could be seen, by whom and how soon, what was not tried, what each protection would change."""

import time
from urllib.parse import urlencode

import streamlit as st

from leakage.results.answer import (
    ANOTHER,
    ASKING,
    GONE,
    LEAK,
    NOT_SAFE,
    Alternative,
    Answer,
    alternatives,
    answer,
    is_about,
    not_tried,
    scenario_words,
    who,
)
from leakage.results.answer_file import PAPER
from leakage.results.comparison import rows
from leakage.results.differences import sentence_case
from leakage.results.markup import render
from leakage.results.worst_case import reach_of
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.catalog import Catalog
from leakage.spec.question import Question
from leakage.spec.words import CUT_SHORT, INAPPLICABLE, NOT_SHOWN
from leakage.ui.common import gone
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import owner
from leakage.ui.compare.compared import experiment_of, find_runs, missing, stop
from leakage.ui.components.live import stage
from leakage.ui.lab import fallback
from leakage.ui.lab.result import EVERY, duration, staged

LOOKS = {LEAK: "leaks", NOT_SAFE: "open", ASKING: "asking", GONE: "open"}
PEOPLE = {
    NOT_SHOWN: "not shown by these attacks",
    CUT_SHORT: "not attacked to an end",
    INAPPLICABLE: "attacked by none, as none of these attacks applies",
}
COLUMNS = ("Protection", "What was seen", "Best attacker", "Accuracy", "Cost")


def show(ids: str, question: Question, known: Catalog) -> None:
    """The runs of an address and what they answer."""
    runs = find_runs(ids)
    if not runs:
        if ids:
            st.warning(f"This answer is not here: {gone.why(ids.split(','))}.")
        st.info("Answer the five questions, then press **Ask**. The strongest known attackers try it, the worst first.")
        return
    moving, asked = any(run.status in OPEN for run in runs), is_about(question, runs, known)
    if lacking := missing(ids):
        st.warning(f"{len(lacking)} of the attacks of this answer are not here any more: {gone.why(lacking)}.")
    if not asked:
        st.warning("The settings ask something else than what is answered here. Press **Ask** to have that answered.")
    with st.container(key="comparison"):
        if moving:
            st.fragment(watch, run_every=EVERY)(ids, question if asked else None, known)
            playing(runs, known)
            return
        told = found_so_far(runs, len(lacking), question if asked else None, known)
        playing(runs, known)
        if asked:
            consequences(ids, told, question, known)


def playing(runs: list[Run], known: Catalog) -> None:
    """Of every group of people the run that shows most so far."""
    row_of = {row.run: row for row in rows(service(), runs, known)}
    best: dict[str, Run] = {}
    for run in runs:
        group = str(experiment_of(run).pictures)
        if group not in best or reach_of(row_of[run.id]) > reach_of(row_of[best[group].id]):
            best[group] = run
    staged_runs = [
        staged(run.id, f"Group {place}: {row_of[run.id].attack}", experiment_of(run), known) for place, run in enumerate(best.values(), 1)
    ]
    if stage(staged_runs[:3], key="asked", together=True, apart=True):
        for one in staged_runs[:3]:
            fallback.show(one.id)


def watch(ids: str, question: Question | None, known: Catalog) -> None:
    """The answer while attacks still run; they are stopped when the time is over, and at the end the whole page is drawn again."""
    runs = find_runs(ids)
    still = [run for run in runs if run.status in OPEN]
    if not still:
        st.rerun()
    over = deadline(still)
    if time.time() > over:
        for run in still:
            service().cancel(run.id, owner(), how="over")
    found_so_far(runs, len(missing(ids)), question, known)
    left = max(0, round(over - time.time()))
    st.progress(sum(run.status not in OPEN for run in runs) / len(runs), text=f"{escape(duration(left))} left at most")
    stop(runs)


def deadline(still: list[Run]) -> float:
    """When the time is over, in seconds since 1970: it begins with the newest of those that are still open, as older ones may be shared."""
    return max(run.created for run in still) + max(experiment_of(run).max_seconds for run in still)


def found_so_far(runs: list[Run], gone: int, question: Question | None, known: Catalog) -> Answer:
    """The answer in a word and a sentence, and what stands behind it; `question`: what they answer, where that is known."""
    told, asked = answer(service(), runs, known, gone=gone), scenario_words(question, known) if question else []
    st.html(render("ui/ask/answer.html.jinja", look=LOOKS[told.word], word=told.word, headline=told.headline, lines=lines(told, asked)))
    return told


def consequences(ids: str, told: Answer, question: Question, known: Catalog) -> None:
    """What each protection would change, what was not tried, and what to take away."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if told.best:
            st.link_button("Open in the Lab", f"{base()}/?run={told.best.run}", icon=":material/science:", type="tertiary")
        st.link_button("Compare", f"{base()}/compare?runs={ids}", icon=":material/compare_arrows:", type="tertiary")
    change(question, known)
    st.markdown("**What was not tried**")
    st.markdown("\n".join(f"- {escape(words)}" for words in not_tried(question, told, known)))
    take_away(ids, question, known)


def change(question: Question, known: Catalog) -> None:
    """What was measured beforehand of the protection that was asked about and of none; and of all others, folded away."""
    st.markdown("**Another experiment: what other protections would change, and cost**")
    measured = alternatives(question, service(), known)
    marked = any(one.chosen for one in measured)
    nearest = "The row nearest to your question is marked." if marked else "Your protection was not measured with as many phones."
    st.caption(f"{ANOTHER} {nearest}")
    accuracy = next((one.cost.recipe for one in measured if one.cost.recipe), "")
    heads = [head if head != "Accuracy" else f"Accuracy of {accuracy}" for head in COLUMNS]
    st.html(render("ui/ask/alternatives.html.jinja", heads=heads, rows=[cells(one) for one in measured if one.chosen or not one.stack]))
    with st.expander("Every protection that was measured", key="asked-alternatives"):
        st.html(render("ui/ask/alternatives.html.jinja", heads=heads, rows=[cells(one) for one in measured]))


def cells(one: Alternative) -> tuple[bool, str, str, str, str, str]:
    """A protection as a line of the table: whether it was asked about, then what is said of it."""
    accuracy = "–" if one.cost.accuracy is None else f"{one.cost.accuracy:.1%}"
    return one.chosen, sentence_case(one.title), one.seen, one.attacker, accuracy, one.cost.difference or "–"


def lines(told: Answer, asked: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What was asked, what could be seen, by whom, with how much effort."""
    people = ", ".join(f"{count} {PEOPLE.get(word, word)}" for word, count in told.people.items())
    shown = told.best if told.best and told.best.shows else None
    found = [
        ("Asked", "; ".join(words[0].lower() + words[1:] for _, words in asked)),
        ("Could be seen", f"{people}, of {told.total} pictures"),
        ("What that means", told.meaning),
        ("To decide", told.decision),
        ("Shown most by", who(shown) if shown else ""),
        ("How that is known", (shown and shown.words) or ""),
    ]
    answered = sum(row.answered for row in told.rows)
    applying = sum(not row.inapplicable for row in told.rows)
    effort = f"{answered} of {applying} attacks came to their own answer, {duration(told.seconds)} of computing, several at once"
    if applying < len(told.rows):
        effort += f"; {len(told.rows) - applying} more do not apply here"
    return [line for line in [*found, ("With how much effort", effort)] if line[1]]


def take_away(ids: str, question: Question, known: Catalog) -> None:
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
