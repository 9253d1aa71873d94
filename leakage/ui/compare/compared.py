"""A comparison on the page: what differs, the runs of one attacker side by side, and below them the table that fills."""

from collections.abc import Sequence

import streamlit as st

from leakage.results.comparison import EXPORTS, MAX_RUNS, Row, crossed, only_naive, rows, same_answers, scenario
from leakage.results.differences import attacker, differs, sentence_case, titles
from leakage.results.worst_case import are_strongest_attacks, attacked_in_several_ways
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.prepared import prepared
from leakage.ui.common import gone
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import owner
from leakage.ui.compare import cost, sweep, table, watched
from leakage.ui.components.live import stage
from leakage.ui.lab import fallback
from leakage.ui.lab.result import EVERY, staged

QUESTION = "One picture, several protections: what leaks, and at what cost?"
APART = "Several runs side by side: not all of the same pictures."
IN_SHORT = {
    "The pictures": "",
    "The protection": "",
    "The attack": "",
    "The model": "",
    "Its weights": "",
    "The seed": "seed ",
}  # what is equal


def show(ids: str, planned: list[Experiment], known: Catalog) -> None:
    """The comparison of an address: the ids of its runs, joined by commas; without one, what is planned."""
    runs = find_runs(ids)
    if not runs:
        if ids:
            st.warning(f"This comparison is not here: {gone.why(ids.split(','))}.")
        elif (recorded := find_runs(",".join(prepared().compare.recorded))) and _ask_the_same(planned, recorded):
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
    if {one.digest() for one in planned} - {one.digest() for one in experiments}:
        st.caption(":material/info: The settings ask for other runs than those below. Press **Run all** to see them.")
    playing = watched.choose(runs, experiments, known)
    plain = titles([scenario(one) for _, one in playing], known)  # who attacks is told below
    names = plain if len(set(plain)) == len(plain) else titles([one for _, one in playing], known)
    shown = [staged(run.id, sentence_case(name), one, known) for name, (run, one) in zip(names, playing, strict=True)]
    apart = pictures_differ([one for _, one in playing])  # its own key: the private pictures stand elsewhere
    if stage(shown, key="compared-apart" if apart else "compared", together=True, apart=apart):
        for one in shown:
            fallback.show(one.id)
    with st.container(key="comparison"):
        if moved := moving(runs, known):
            st.fragment(watch, run_every=EVERY if moved == "attack" else 10.0)(ids, moved, known)
        else:
            details(runs, known)


def title(ids: str) -> str:
    """What the page is about: of runs with different private pictures not the same picture."""
    return APART if pictures_differ([run.experiment_as(Experiment) for run in find_runs(ids)]) else QUESTION


def pictures_differ(experiments: Sequence[Experiment]) -> bool:
    """Whether some have private pictures that others have not; a batch that begins with all of a smaller one counts as the same."""
    shapes = {(one.size, one.channels) for one in experiments}
    most = max((one.pictures for one in experiments), key=len, default=())
    return len(shapes) > 1 or any(one.pictures != most[: len(one.pictures)] for one in experiments)


def sentence(experiments: list[Experiment], known: Catalog) -> None:
    """What differs, in a line; what is equal, named in short and listed behind a button, with what is tried against each."""
    every, equal = differs(experiments, known)
    tried = are_strongest_attacks(experiments, known)
    apart = (differs([scenario(one) for one in experiments], known)[0] if tried else []) or every
    lines = dict(line.split(": ", 1) for line in equal)
    told = ", ".join(before + lines[about].split(",")[0] for about, before in IN_SHORT.items() if about in lines)
    hidden = [line for line in every if line not in apart]
    more = " Each is attacked by the strongest known attackers." if hidden else ""
    st.markdown(f"**Differs.** {escape('. '.join(apart) or 'Nothing')}.{more}")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"**Equal.** {escape(told)}, and all else.", width="content")
        with st.popover("What is equal", type="tertiary"):
            st.markdown("\n".join(f"- {escape(line)}" for line in equal))
            if hidden:
                st.markdown("**Tried against each, as far as it fits**")
                st.markdown("\n".join(f"- {escape(line)}" for line in hidden))


def find_runs(ids: str) -> list[Run]:
    """The attacks among the runs of an address, each once, without those that are not here."""
    unique = list(dict.fromkeys(ids.split(",")))[:MAX_RUNS]
    return [run for id in unique if (run := service().look(id)) and run.kind == "attack"]


def missing(ids: str) -> list[str]:
    """The runs of an address that are not here any more."""
    return [id for id in dict.fromkeys(ids.split(",")) if service().look(id) is None]


def are_there(ids: str, planned: list[Experiment]) -> bool:
    """Whether all that is planned is among the runs of an address."""
    return {one.digest() for one in planned} <= {run.digest for run in find_runs(ids)}


def _ask_the_same(planned: list[Experiment], runs: list[Run]) -> bool:
    return {one.digest() for one in planned} == {run.digest for run in runs}


def watch(ids: str, moved: str, known: Catalog) -> None:
    """The table while something still moves; once that has ended the whole page is drawn again, and looks more seldom, or no more."""
    runs = find_runs(ids)
    if moving(runs, known) != moved:
        st.rerun()
    details(runs, known)


def moving(runs: list[Run], known: Catalog) -> str:
    """What can still change the table: an attack, a training, or nothing."""
    if any(run.status in OPEN for run in runs):
        return "attack"
    return "training" if cost.under_way([run.experiment_as(Experiment) for run in runs], known) else ""


def details(runs: list[Run], known: Catalog) -> None:
    """Warnings, table, what to take away, and what protection costs where that is known."""
    stop(runs)
    told, experiments = rows(service(), runs, known), [run.experiment_as(Experiment) for run in runs]
    failed: dict[str, list[str]] = {}
    for run, row in zip(runs, told, strict=True):
        if run.status == "failed":
            failed.setdefault(run.message or "", []).append(sentence_case(row.name))
    for why, names in failed.items():
        st.warning(escape(f"{'; '.join(names)}: {why or 'failed'}"))
    for sentence in only_naive(told):
        st.error(escape(sentence), icon=":material/visibility:")
    if len({one.assume.strategy for one in experiments if attacker(one, known) == "adaptive"}) > 1:
        for words in same_answers(told):
            st.caption(escape(words))
    if attacked_in_several_ways(told):
        st.html(table.worst_table(told))
        st.caption(f"{table.WORST_NOTE} {table.NOTE}")
        with st.expander("All that was tried", key="all-tried"):
            every_attacker(told, experiments, known)
    else:
        every_attacker(told, experiments, known)
        st.caption(table.NOTE)
    take_away(runs)
    if curve := sweep.figure(told, experiments, known):
        st.markdown("**What leaks at which strength**")
        st.plotly_chart(curve, key="sweep", config={"displayModeBar": False}, alt="PSNR against strength")
        if why := sweep.why_points(experiments):
            st.caption(escape(why))
    cost.show(told, experiments, known)


def every_attacker(told: list[Row], experiments: list[Experiment], known: Catalog) -> None:
    """A cell for every run."""
    if crossed(experiments, known):
        st.html(table.matrix(told))
        st.caption(table.MATRIX_NOTE)
    st.html(table.table(told))


def stop(runs: list[Run]) -> None:
    """A button to stop all, while something runs."""
    if stoppable := [run.id for run in runs if run.status in OPEN and service().may_cancel(run.id, owner())]:
        st.button("Stop all and keep the best so far", on_click=_stop, args=(stoppable,), icon=":material/stop:", key="stop")


def take_away(runs: list[Run]) -> None:
    """Files, once something has run, and the link."""
    ids = ",".join(run.id for run in runs)
    with st.container(horizontal=True, vertical_alignment="center"):
        for name, label in EXPORTS.items() if any(run.status in ("running", "done", "cancelled") for run in runs) else ():
            st.link_button(label, f"{base()}/api/compare/{name}?ids={ids}", icon=":material/download:", type="tertiary")
        with st.popover("Link to this comparison", icon=":material/link:", type="tertiary"):
            st.code(f"{(st.context.url or '').split('?')[0]}?runs={ids}", language=None)


def _stop(ids: list[str]) -> None:
    for id in ids:
        service().cancel(id, owner())
