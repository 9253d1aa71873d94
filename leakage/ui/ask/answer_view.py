"""The answer on the page: a word, what could be seen, which attacker saw it, what was not tried, what each protection changes."""

import time

import streamlit as st

from leakage.frontend.markup import render
from leakage.results.answer import ASKING, GONE, NOT_SAFE, Answer, answer
from leakage.results.answer_words import lines, scenario_words
from leakage.results.asking import is_about, is_control
from leakage.results.best_of_each import best_of_each
from leakage.results.comparison import rows
from leakage.results.durations import duration
from leakage.results.worst_case import reach_of
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.catalog import Catalog
from leakage.spec.conclusion import LEAK
from leakage.spec.experiment import Experiment
from leakage.spec.question import Question, in_words_of
from leakage.spec.words import REFUSED
from leakage.ui.ask.consequences import consequences
from leakage.ui.common import gone
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import owner
from leakage.ui.compare.compared import find_attacks, missing, stop
from leakage.ui.components.live import stage
from leakage.ui.lab import fallback
from leakage.ui.lab.result import EVERY, staged

LOOKS = {LEAK: "leaks", NOT_SAFE: "open", ASKING: "asking", GONE: "open", REFUSED: "open"}
STORED = "ask-stored"  # session key: the ids of the runs that had been computed before the visitor pressed Ask


def show(ids: str, question: Question, known: Catalog) -> None:
    """Draw the answer to the runs of an address, or say that they are missing.

    Args:
        ids: run ids, joined by commas.
        question: what the widgets ask now; the answer's consequences are drawn only where the runs answer this question.
        known: the plug-ins.
    """
    runs = find_attacks(ids)
    if not runs:
        if ids:
            st.warning(f"This answer is not here: {gone.why(ids.split(','))}.")
        st.info(
            "Answer the five questions, then press **Ask**. The strongest known attackers then try to see the pictures, "
            "the most dangerous attacker first."
        )
        return
    moving, asked = any(run.status in OPEN for run in runs), is_about(question, runs, known)
    if lacking := missing(ids):
        st.warning(f"{len(lacking)} of the attacks of this answer are not here any more: {gone.why(lacking)}.")
    if not asked:
        st.warning("The settings have changed since this answer was computed. Press **Ask** to compute a new answer.")
    if stored := [run for run in runs if run.id in st.session_state.get(STORED, ())]:
        st.caption(
            f"{len(stored)} of {len(runs)} runs were computed before, and are shown as they were stored. "
            "Some of these runs may have ended at their time limit."
        )
    with st.container(key="comparison"):
        if moving:
            st.fragment(watch, run_every=EVERY)(ids, question if asked else None, known)
            playing(runs, question, known)
            return
        answer_so_far = found_so_far(runs, len(lacking), question if asked else None, known)
        playing(runs, question, known)
        if asked:
            consequences(ids, answer_so_far, question, known)


def playing(runs: list[Run], question: Question, known: Catalog) -> None:
    """Play up to four runs: for each group of people the run that leaks most so far; the second is the first group without protection."""
    row_of = {row.run: row for row in rows(service(), runs, known)}
    asked = {run.id: run.experiment_as(Experiment) for run in runs}
    groups = (((is_control(asked[run.id], list(asked.values())), asked[run.id].pictures), run) for run in runs)
    best = best_of_each(groups, lambda run: reach_of(row_of[run.id]))
    main = [run for (control, _), run in best.items() if not control]
    controls = [run for (control, _), run in best.items() if control]
    shown = [*main[:1], *controls[:1], *main[1:]]
    names = {run.id: f"Group {number}" for number, run in enumerate(main, 1)} | {run.id: "Control, protection off" for run in controls}
    staged_runs = [staged(run.id, f"{names[run.id]}: {row_of[run.id].attack}", asked[run.id], known) for run in shown][:4]
    if stage(staged_runs, key="asked", together=True, apart=True):
        for staged_run in staged_runs:
            fallback.show(staged_run.id)


def watch(ids: str, question: Question | None, known: Catalog) -> None:
    """Draw the answer while attacks still run.

    Cancel the attacks when the time is over. Draw the whole page again when all have ended.
    """
    runs = find_attacks(ids)
    open_runs = [run for run in runs if run.status in OPEN]
    if not open_runs:
        st.rerun()
    end = deadline(open_runs)
    if time.time() > end:
        for run in open_runs:
            service().cancel(run.id, owner(), how="over")
    found_so_far(runs, len(missing(ids)), question, known)
    seconds_left = max(0, round(end - time.time()))
    st.progress(sum(run.status not in OPEN for run in runs) / len(runs), text=f"{escape(duration(seconds_left))} left at most")
    stop(runs)


def deadline(open_runs: list[Run]) -> float:
    """Return when the open runs are cancelled, in seconds since 1970.

    The time limit starts with the newest open run: an older open run may belong to another question as well.
    """
    return max(run.created for run in open_runs) + max(run.experiment_as(Experiment).max_seconds for run in open_runs)


def found_so_far(runs: list[Run], gone: int, question: Question | None, known: Catalog) -> Answer:
    """Draw the answer as a word, a headline and a table of facts, and return it.

    Args:
        runs: the attacks of the answer.
        gone: how many attacks of the answer are not in the store any more.
        question: the question that the runs answer; None if the widgets ask another question.
        known: the plug-ins.
    """
    found_answer = answer(service(), runs, known, gone=gone)
    asked = [("Asked", "; ".join(words.rstrip(".") for _, words in scenario_words(question, known)))] if question else []
    about = question or Question()
    facts = [*asked, *lines(found_answer, about, known)] if question else lines(found_answer, about, known)
    headline = in_words_of(about, found_answer.headline)
    st.html(render("ui/ask/answer.html.jinja", look=LOOKS[found_answer.word], word=found_answer.word, headline=headline, lines=facts))
    return found_answer
