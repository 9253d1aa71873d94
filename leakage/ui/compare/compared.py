"""A comparison on the page: what differs, the runs of one attacker side by side, and below them the table of all results."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from leakage.frontend.markup import render
from leakage.results import check_table
from leakage.results.comparison import EXPORTS, MAX_RUNS, Row, crossed, crossed_with_servers, only_naive, rows, same_answers, scenario
from leakage.results.differences import attacker, differs, sentence_case, titles
from leakage.results.worst_case import are_strongest_attacks, attacked_in_several_ways, worst_runs
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.prepared import prepared
from leakage.ui.common import gone
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import owner
from leakage.ui.compare import cost, recorded_comparisons, server_axis, sweep, table, watched
from leakage.ui.components.live import stage
from leakage.ui.lab import fallback
from leakage.ui.lab.result import EVERY, staged

QUESTION = "One picture, several protections: what leaks, and at what cost?"
SERVERS = "The same pictures, several servers: what leaks if a server changes the model?"
CHECKS = "The same pictures, several servers: which check notices a changed model?"
APART = "Several attacks side by side: not all on the same pictures."
IN_SHORT = {
    "The pictures": "",
    "The protection": "",
    "The server": "",
    "The attack": "",
    "The model": "",
    "Its weights": "",
    "The seed": "seed ",
}  # a setting that all runs share -> the word before its value in the caption


def show(ids: str, planned: list[Experiment], known: Catalog) -> None:
    """Draw a comparison: its runs side by side, and the table of its results.

    Args:
        ids: run ids from the address, joined by commas; empty for a comparison that was not started.
        planned: the experiments that the settings ask for.
        known: the plug-ins.
    """
    runs = find_attacks(ids)
    if not runs:
        if ids:
            st.warning(f"This comparison is not here: {gone.why(ids.split(','))}.")
        elif (recorded := find_attacks(",".join(prepared().compare.recorded))) and _ask_the_same(planned, recorded):
            runs, ids = recorded, ",".join(run.id for run in recorded)
            st.markdown("**Recorded runs, played again.** Press **Run all** to compute them here.")
    if not runs:
        if len(planned) > 1:
            sentence(planned, known)
        st.info("A comparison is prepared. Press **Run all** to watch every variant at once.")
        return
    experiments = [run.experiment_as(Experiment) for run in runs]
    if lacking := missing(ids):
        st.warning(f"{len(lacking)} of the runs of this comparison are not here any more: {gone.why(lacking)}.")
    sentence(experiments, known)
    if {experiment.digest() for experiment in planned} - {experiment.digest() for experiment in experiments}:
        st.caption(
            ":material/info: The results below belong to other settings. Press **Run all** to compute the runs that you have chosen."
        )
    playing = watched.choose(runs, experiments, known)
    short_names = titles([scenario(experiment) for _, experiment in playing], known)  # the page names the attacker below
    names = short_names if len(set(short_names)) == len(short_names) else titles([experiment for _, experiment in playing], known)
    staged_runs = [staged(run.id, sentence_case(name), experiment, known) for name, (run, experiment) in zip(names, playing, strict=True)]
    apart = pictures_differ([experiment for _, experiment in playing])  # another key, because the private pictures stand elsewhere
    if stage(staged_runs, key="compared-apart" if apart else "compared", together=True, apart=apart):
        for staged_run in staged_runs:
            fallback.show(staged_run.id)
    if story := recorded_comparisons.find_story(ids):
        recorded_comparisons.show(story)
    with st.container(key="comparison"):
        if movement := moving(runs, known):
            st.fragment(watch, run_every=EVERY if movement == "attack" else 10.0)(ids, movement, known)
        else:
            details(runs, known)


def title(ids: str) -> str:
    """Return the headline of the page: whether the runs have the same pictures and server, or before a run what is chosen to differ."""
    experiments = [run.experiment_as(Experiment) for run in find_attacks(ids)]
    if not experiments:
        return {server_axis.SERVER: SERVERS, server_axis.CHECKED: CHECKS}.get(st.session_state.get("differs", ""), QUESTION)
    several = any(experiment.server != experiments[0].server for experiment in experiments)
    about_servers = CHECKS if any(experiment.checks for experiment in experiments) else SERVERS
    return APART if pictures_differ(experiments) else about_servers if several else QUESTION


def pictures_differ(experiments: Sequence[Experiment]) -> bool:
    """Return whether the runs have different private pictures.

    A smaller batch counts as the same if a larger batch begins with its pictures.
    """
    shapes = {(experiment.size, experiment.channels) for experiment in experiments}
    most = max((experiment.pictures for experiment in experiments), key=len, default=())
    return len(shapes) > 1 or any(experiment.pictures != most[: len(experiment.pictures)] for experiment in experiments)


def sentence(experiments: list[Experiment], known: Catalog) -> None:
    """Draw what differs in a line, and what is equal in short and behind a button, with the attacks that are tried against each variant."""
    differences, equal = differs(experiments, known)
    tried = are_strongest_attacks(experiments, known)
    apart = (differs([scenario(experiment) for experiment in experiments], known)[0] if tried else []) or differences
    lines = dict(line.split(": ", 1) for line in equal)
    in_short = ", ".join(label + lines[about].split(",")[0] for about, label in IN_SHORT.items() if about in lines)
    tried_lines = [line for line in differences if line not in apart]
    more = " Each variant is attacked by the strongest known attackers." if tried_lines else ""
    st.markdown(f"**Differs.** {escape('. '.join(apart) or 'Nothing')}.{more}")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"**Equal.** {escape(in_short)}, and all else.", width="content")
        with st.popover("What is equal in all variants", type="tertiary"):
            st.markdown("\n".join(f"- {escape(line)}" for line in equal))
            if tried_lines:
                st.markdown("**Attacks that are tried against each variant, if they apply**")
                st.markdown("\n".join(f"- {escape(line)}" for line in tried_lines))


def find_attacks(ids: str) -> list[Run]:
    """Return the runs of attacks among ids that are joined by commas: each once, at most MAX_RUNS, as far as the store has them."""
    unique = list(dict.fromkeys(ids.split(",")))[:MAX_RUNS]
    return [run for id in unique if (run := service().look(id)) and run.kind == "attack"]


def missing(ids: str) -> list[str]:
    """Return the ids that are not in the store any more."""
    return [id for id in dict.fromkeys(ids.split(",")) if service().look(id) is None]


def are_there(ids: str, planned: list[Experiment]) -> bool:
    """Return whether all planned experiments are among the runs of an address."""
    return {experiment.digest() for experiment in planned} <= {run.digest for run in find_attacks(ids)}


def _ask_the_same(planned: list[Experiment], runs: list[Run]) -> bool:
    return {experiment.digest() for experiment in planned} == {run.digest for run in runs}


def watch(ids: str, moved: str, known: Catalog) -> None:
    """Draw the table of results while an attack or a training waits or runs; draw the whole page again when that changes.

    Args:
        ids: run ids, joined by commas.
        moved: what waited or ran when the page was drawn, see `moving`.
        known: the plug-ins.
    """
    runs = find_attacks(ids)
    if moving(runs, known) != moved:
        st.rerun()
    details(runs, known)


def moving(runs: list[Run], known: Catalog) -> str:
    """Return what can still change the table: "attack", "training", or an empty string."""
    if any(run.status in OPEN for run in runs):
        return "attack"
    return "training" if cost.under_way([run.experiment_as(Experiment) for run in runs], known) else ""


def details(runs: list[Run], known: Catalog) -> None:
    """Draw warnings, the table, what to take away, a strength sweep, and what protection costs."""
    stop(runs)
    results, experiments = rows(service(), runs, known), [run.experiment_as(Experiment) for run in runs]
    failures: dict[str, list[str]] = {}
    for run, row in zip(runs, results, strict=True):
        if run.status == "failed":
            failures.setdefault(run.message or "", []).append(sentence_case(row.name))
    for reason, names in failures.items():
        st.warning(escape(f"{'; '.join(names)}: {reason or 'failed'}"))
    for sentence in only_naive(results):
        st.error(escape(sentence), icon=":material/visibility:")
    if len({experiment.assume.strategy for experiment in experiments if attacker(experiment, known) == "adaptive"}) > 1:
        for note in same_answers(results):
            st.caption(escape(note))
    by_server(results)
    by_check(results)
    if attacked_in_several_ways(results):
        st.html(table.worst_table(results))
        st.caption(f"{table.WORST_NOTE} {table.NOTE}")
        with st.expander("All attacks that were tried", key="all-tried"):
            every_attacker(results, experiments, known)
    else:
        every_attacker(results, experiments, known)
        st.caption(table.NOTE)
    take_away(runs)
    if curve := sweep.figure(results, experiments, known):
        st.markdown("**How much leaks at each strength of the protection**")
        st.plotly_chart(curve, key="sweep", config={"displayModeBar": False}, alt="PSNR against strength")
        if reason := sweep.why_points(experiments):
            st.caption(escape(reason))
    cost.show(results, experiments, known)


def by_server(results: Sequence[Row]) -> None:
    """Draw a matrix of protections and servers if both differ; of several attacks on a variant the best result counts."""
    best = worst_runs(results).values() if attacked_in_several_ways(results) else ()
    cells = [replace(row, attacker="both") for row in best] or results
    if crossed_with_servers(cells):
        st.html(table.matrix(cells, by_server=True))
        st.caption(table.MATRIX_NOTE)


def by_check(results: Sequence[Row]) -> None:
    """Draw a table of variants and checks, once a run has told what its checks found."""
    if found := check_table.check_table(results):
        st.markdown("**What the phone's checks found**")
        for sentence in found.sentences:
            st.markdown(escape(sentence))
        st.html(render("results/check_table.html.jinja", table=found))
        st.caption(escape(check_table.NOTE))


def every_attacker(results: list[Row], experiments: list[Experiment], known: Catalog) -> None:
    """Draw a table with a cell for every run; if protections are crossed with attacks, a matrix before it."""
    if crossed(experiments, known):
        st.html(table.matrix(results))
        st.caption(table.MATRIX_NOTE)
    st.html(table.table(results))


def stop(runs: list[Run]) -> None:
    """Draw a button that stops all open runs which this visitor may stop."""
    if stoppable := [run.id for run in runs if run.status in OPEN and service().may_cancel(run.id, owner())]:
        st.button(
            "Stop all attacks and keep the best pictures so far", on_click=_stop, args=(stoppable,), icon=":material/stop:", key="stop"
        )


def take_away(runs: list[Run]) -> None:
    """Offer result files, once a run has started, and the link."""
    ids, files = ",".join(run.id for run in runs), {**EXPORTS, "strip.png": "Strip (PNG)"}
    with st.container(horizontal=True, vertical_alignment="center"):
        for name, label in files.items() if any(run.status in ("running", "done", "cancelled") for run in runs) else ():
            st.link_button(label, f"{base()}/api/compare/{name}?ids={ids}", icon=":material/download:", type="tertiary")
        with st.popover("Link to this comparison", icon=":material/link:", type="tertiary"):
            st.code(f"{(st.context.url or '').split('?')[0]}?runs={ids}", language=None)


def _stop(ids: list[str]) -> None:
    for id in ids:
        service().cancel(id, owner())
