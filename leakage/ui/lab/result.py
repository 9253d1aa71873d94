"""A run on the page: the pictures, and below them the downloads, the next questions, the threat model table and the glossary."""

from contextlib import suppress
from functools import partial

import streamlit as st

from leakage.data.images import gallery
from leakage.data.lpips_download import lpips_download
from leakage.learn.restored import VERSION
from leakage.results.changes import changes
from leakage.results.what_ifs import what_ifs
from leakage.runs.events import AttackEnd
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.catalog import Catalog
from leakage.spec.client_behavior import ClientBehavior
from leakage.spec.declarations import Travels
from leakage.spec.experiment import Experiment, Picture, SpecError, clients_of
from leakage.spec.tasks import Ranks
from leakage.ui.common import address, explain, forms, gone, published
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import Markdown, escape, link, ours
from leakage.ui.common.session import owner
from leakage.ui.components import sent
from leakage.ui.components.live import Shown, stage
from leakage.ui.lab import fallback, handed_model_view, presets, strongest
from leakage.ui.lab.threat_model_table import table_html

MAX_RUNS = 2  # side by side
REPLAYED = (
    "This run was computed on another machine. The same settings and the same random start (seed), computed here, may "
    "end a few dB higher or lower. Computers round numbers differently in the last digit, and an attack of hundreds of "
    "steps makes this difference grow."
)
EVERY = 2.0  # seconds between two reads of runs under way; a read costs a tenth of a core, and pictures come by the event stream
DOWNLOADS = {
    "final.png": "Picture",
    "slide.png": "Slide",
    "strip.png": "Strip",
    "run.webp": "Animation (WebP)",
    "run.gif": "GIF",
    "curves.csv": "Curves (CSV)",
    "experiment.json": "Experiment (JSON)",
}


def show(ids: str | None, asked: Experiment | None, known: Catalog) -> None:
    """Draw the runs of an address, or the recorded run where the address names none.

    Args:
        ids: The ids of the runs, joined by commas, or None.
        asked: The experiment that the widgets describe; the page says where it is another one than the runs.
        known: The catalog of plug-ins.
    """
    recorded = service().recorded()
    runs = find_shown_runs(ids or recorded)
    if ids and not runs:
        st.warning(f"This run is not here: {gone.why(ids.split(','))}. Below is the recorded run instead.")
        runs = find_shown_runs(recorded)
    if runs and runs[0].kind in ("train", "invert"):
        page = link(Markdown("Watch the training on its own page"), f"{base()}/training?run={runs[0].id}")
        st.info(f"This is a training, not an attack. {page}.")
        return
    if runs and runs[0].kind == "rank":
        page = link(Markdown("See the ranks on their own page"), explain.ranks_link(Ranks.model_validate_json(runs[0].experiment)))
        st.info(
            "This run measured how many independent equations each layer of a network gives the attacker (its rank). It was not an "
            f"attack. {page}."
        )
        return
    if not runs:
        st.info("Press Run to watch the first reconstruction.")
        return
    experiments = [run.experiment_as(Experiment) for run in runs]
    other = asks_for_another(asked, runs, known)
    if other and not ids and st.session_state.get("opened"):
        st.info("These settings have not been run yet. Press **Run** to watch the attack.")
        return
    preset = presets.preset_of(experiments, known)
    if all(run.version == VERSION for run in runs):
        which = "Recorded runs" if len(runs) > 1 else "A recorded run"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{which}, played again.** Choose your own settings and press **Run**.", width="content", help=REPLAYED)
            if preset:
                live = partial(presets.start, preset, live=True)
                st.button("Compute both live", icon=":material/play_arrow:", key="live", type="tertiary", on_click=live)
    digest, title, changed = st.session_state.get("what-if", ("", "", ""))
    if runs[-1].digest == digest:
        st.caption(f":material/difference: **What if … {escape(title)}?** {escape(changed)}")
    if len(runs) > 1 and not preset:
        with st.container(horizontal=True, key="which-run"):
            for which, run in zip(("first", "second"), runs, strict=True):
                st.button(f"Only the {which}", on_click=show_alone, args=(run.id,), key=f"only-{which}", type="tertiary")
    if other:
        st.caption(":material/info: The result below belongs to other settings. Press **Run** to see the run that you have chosen.")
    if any(run.thinned for run in runs):
        st.caption(f":material/compress: {gone.THINNED}")
    titles = presets.titles(experiments, known)
    shown = [staged(run.id, title, experiment, known) for run, title, experiment in zip(runs, titles, experiments, strict=True)]
    if stage(shown, key="stage"):
        for run in runs:
            fallback.show(run.id)
    if preset:
        st.markdown(ours(preset.story))
        published.show(preset)
    with st.container(key="details"):
        if any(run.status in OPEN for run in runs):
            watch([run.id for run in runs], known)
        else:
            details(runs, known)


def asks_for_another(asked: Experiment | None, runs: list[Run], known: Catalog) -> bool:
    """Return whether the settings describe another experiment than all of these runs."""
    try:
        return asked is not None and asked.resolve(known).digest() not in {run.digest for run in runs}
    except SpecError:  # the Run button says why these settings cannot be run
        return False


def find_shown_runs(ids: str | None) -> list[Run]:
    """Return the runs that the Lab shows for an address: at most two attacks, or one run of any other kind, as far as they exist."""
    runs = [run for id in (ids or "").split(",")[:MAX_RUNS] if (run := service().look(id)) and run.kind not in ("handed", "norms")]
    return [run for run in runs if run.kind == runs[0].kind][: MAX_RUNS if runs and runs[0].kind == "attack" else 1]


def staged(id: str, title: str, experiment: Experiment, known: Catalog) -> Shown:
    """Return what the component that plays a run needs; for a protocol that no longer exists, with the general words for an update."""
    count = len(experiment.pictures)
    if known.protocols.find(experiment.protocol.id) is None:
        phones = clients_of(experiment.aggregation, known)
        return Shown(id, title, count, sent.words(Travels(), phones), phones, plain=False)
    sender = ClientBehavior.in_experiment(experiment, known)
    what = sent.words(sender.protocol.travels, sender.clients, other_sums=sender.other_sums)
    return Shown(id, title, count, what, sender.clients, plain=sender.plain, receiver=sender.receiver)


@st.fragment(run_every=EVERY)
def watch(ids: list[str], known: Catalog) -> None:
    """Draw the details of runs under way, again every `EVERY` seconds; once all have ended, draw the whole page a last time."""
    runs = find_shown_runs(",".join(ids))
    if len(runs) < len(ids) or all(run.status not in OPEN for run in runs) or "go" in st.session_state:
        st.rerun()
    details(runs, known)


def details(runs: list[Run], known: Catalog) -> None:
    """Draw the downloads, next questions, threat model table and glossary; two runs get a tab each."""
    experiments = [run.experiment_as(Experiment) for run in runs]
    titles = presets.titles(experiments, known)
    if len(runs) == 1:
        actions(runs[0])
        questions(runs, experiments[0], known)
        threat_model_table(runs[0], experiments[0], known)
    else:
        questions(runs, experiments[-1], known)
        names = [escape(title) for title in titles]
        tabs = st.tabs(names, default=names[-1], key="whose", on_change="rerun")  # the key keeps the choice when the page is drawn again
        for tab, run, experiment in zip(tabs, runs, experiments, strict=True):
            with tab:
                actions(run, of=f"-{run.id}")
                threat_model_table(run, experiment, known)
    glossary()


def threat_model_table(run: Run, experiment: Experiment, known: Catalog) -> None:
    """Draw the layers that a server handed out, if it changed them, and the threat model table of a run.

    Where the network for its LPIPS was missing, say how its download stands.
    """
    if experiment.server:
        with st.expander("The layers that the server handed out", icon=":material/layers:"):
            handed_model_view.show(experiment, known, key=f"handed-{run.id}")
    meta = service().meta(run.id)
    if meta and meta.judging.lpips and not meta.judging.lpips.net and (progress := lpips_download().words):
        st.caption(f":material/download: {escape(progress)}")
    st.html(table_html(experiment, known, meta, run.outcome(AttackEnd)))


def actions(run: Run, of: str = "") -> None:
    """Draw the button that stops a run, the downloads and the link. `of` makes the keys of the buttons of two runs differ."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if run.status in OPEN and service().may_cancel(run.id, owner()):
            st.button(
                "Stop and keep the best so far",
                on_click=service().cancel,
                args=(run.id, owner()),
                icon=":material/stop:",
                key=f"cancel{of}",
            )
        end = run.outcome(AttackEnd)
        offered = {"experiment.json"} if end and end.answer is None else set(DOWNLOADS)  # an attack that was not tried has no picture
        for name, label in DOWNLOADS.items():
            if name not in offered:
                continue
            st.link_button(label, f"{base()}/api/runs/{run.id}/{name}", icon=":material/download:", type="tertiary")
        with st.popover("Link to this run", icon=":material/link:", type="tertiary"):
            st.code(f"{(st.context.url or '').split('?')[0]}?run={run.id}", language=None)


def questions(runs: list[Run], experiment: Experiment, known: Catalog) -> None:
    """Draw buttons for further experiments: the strongest known attackers on the last run, and what-ifs, shown beside the first run."""
    spare = [Picture(id=item.id) for item in gallery()]
    st.markdown("**What if …**")
    with st.container(horizontal=True):
        strongest.button(runs[-1], experiment, known)
        for title, (about, changed) in what_ifs(experiment, known, spare).items():
            with suppress(SpecError):  # the trained model of the run may have been deleted
                asked = changed.resolve(known)
                differences = f"{changes(experiment, asked, known)}."
                words = f"{escape(about)}\n\nWhat changes: {escape(differences)}"
                given = (asked, title, differences, runs[0].id)
                st.button(f"… {escape(title)}?", help=words, on_click=ask, args=given, key=f"what-if {title}")


def ask(experiment: Experiment, title: str, changed: str, beside: str) -> None:
    """Set the widgets to the experiment of a what-if, and run it beside another run.

    Args:
        experiment: The experiment of the what-if.
        title: The question, which will stand above both runs.
        changed: What the experiment changes, in words, which will stand beside the question.
        beside: The id of the other run.
    """
    forms.load(experiment)
    st.session_state["go"], st.session_state["what-if"] = beside, (experiment.digest(), title, changed)


def show_alone(run: str) -> None:
    """Show only one of two runs, and set the widgets to its settings."""
    st.session_state[address.NEXT] = {"run": run}
    load_settings(run)


def glossary() -> None:
    """Draw the words of the glossary, each as a button that opens its meaning."""
    with st.container(horizontal=True, key="glossary"):
        for word, meaning in explain.GLOSSARY.items():
            with st.popover(word, type="tertiary"):
                st.markdown(meaning)


def load_settings(ids: str) -> None:
    """Set the widgets to the settings of the last of the runs that an address names."""
    runs = find_shown_runs(ids)
    if runs and runs[-1].kind == "attack":
        forms.load(runs[-1].experiment_as(Experiment))
