"""The answer on the page: a word, what could be seen, by whom and how soon, what was not tried, what each protection would change."""

import time

import streamlit as st

from leakage.frontend.markup import render
from leakage.results.answer import ASKING, GONE, LEAK, NOT_SAFE, Answer, answer
from leakage.results.answer_words import lines, scenario_words
from leakage.results.asking import is_about, is_control
from leakage.results.comparison import rows
from leakage.results.durations import duration
from leakage.results.worst_case import reach_of
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.question import Question, in_words_of
from leakage.ui.ask.consequences import consequences
from leakage.ui.common import gone
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import owner
from leakage.ui.compare.compared import find_runs, missing, stop
from leakage.ui.components.live import stage
from leakage.ui.lab import fallback
from leakage.ui.lab.result import EVERY, staged

LOOKS = {LEAK: "leaks", NOT_SAFE: "open", ASKING: "asking", GONE: "open"}
STORED = "ask-stored"  # ids of runs that were computed before Ask was pressed last


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
    if stored := [run for run in runs if run.id in st.session_state.get(STORED, ())]:
        st.caption(
            f"{len(stored)} of {len(runs)} runs were computed before, and are shown as they were stored: also those that time ended then."
        )
    with st.container(key="comparison"):
        if moving:
            st.fragment(watch, run_every=EVERY)(ids, question if asked else None, known)
            playing(runs, question, known)
            return
        told = found_so_far(runs, len(lacking), question if asked else None, known)
        playing(runs, question, known)
        if asked:
            consequences(ids, told, question, known)


def playing(runs: list[Run], question: Question, known: Catalog) -> None:
    """Of every group of people the run that shows most so far, and beside the first its control."""
    row_of = {row.run: row for row in rows(service(), runs, known)}
    asked = {run.id: run.experiment_as(Experiment) for run in runs}
    best: dict[str, Run] = {}
    for run in runs:
        group = f"{_role(asked[run.id], list(asked.values()))} {asked[run.id].pictures}"
        if group not in best or reach_of(row_of[run.id]) > reach_of(row_of[best[group].id]):
            best[group] = run
    main = [run for group, run in best.items() if group.startswith("Group")]
    controls = [run for group, run in best.items() if group.startswith("Control")]
    shown = [*main[:1], *controls[:1], *main[1:]]
    names = {run.id: f"Group {number}" for number, run in enumerate(main, 1)} | {run.id: "Control, protection off" for run in controls}
    staged_runs = [staged(run.id, f"{names[run.id]}: {row_of[run.id].attack}", asked[run.id], known) for run in shown][:4]
    if stage(staged_runs, key="asked", together=True, apart=True):
        for one in staged_runs:
            fallback.show(one.id)


def _role(one: Experiment, every: list[Experiment]) -> str:
    return "Control" if is_control(one, every) else "Group"


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
    return max(run.created for run in still) + max(run.experiment_as(Experiment).max_seconds for run in still)


def found_so_far(runs: list[Run], gone: int, question: Question | None, known: Catalog) -> Answer:
    """The answer in a word and a sentence, and what stands behind it; `question`: what they answer, where that is known."""
    told = answer(service(), runs, known, gone=gone)
    asked = [("Asked", "; ".join(words.rstrip(".") for _, words in scenario_words(question, known)))] if question else []
    about = question or Question()
    found = [*asked, *lines(told, about, known)] if question else lines(told, about, known)
    headline = in_words_of(about, told.headline)
    st.html(render("ui/ask/answer.html.jinja", look=LOOKS[told.word], word=told.word, headline=headline, lines=found))
    return told
