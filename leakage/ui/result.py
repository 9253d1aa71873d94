"""A run on the page: the stage, and below it what it assumes, what to take away, what to ask next."""

from contextlib import suppress

import streamlit as st

from leakage.catalog import Catalog
from leakage.pictures import gallery
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec import Experiment, Picture, SpecError
from leakage.ui import explain, fallback, forms
from leakage.ui.ledger import ledger
from leakage.ui.live import stage
from leakage.ui.session import owner

DOWNLOADS = {
    "final.png": "Picture (PNG)",
    "run.webp": "Animation (WebP)",
    "curves.csv": "Curves (CSV)",
    "experiment.json": "Experiment (JSON)",
}


def show(asked: str | None, known: Catalog) -> None:
    """The run `asked` for, or the recorded one for a newcomer."""
    recorded = service().recorded()
    run = service().look(asked or recorded or "")
    if asked and run is None:
        st.warning("This run is not here: it was deleted, or the link is incomplete. Below is the recorded run instead.")
        run = service().look(recorded or "")
    if run and run.kind == "train":
        st.info(f"This is a training, not an attack: [watch it on its own page](/training?run={run.id}).")
        return
    if run is None:
        st.info("Press Run to watch the first reconstruction.")
        return
    experiment = Experiment.model_validate_json(run.experiment)
    newcomer = run.id == recorded and not asked
    if newcomer:
        st.markdown("**A recorded run, played again.** Choose your own settings and press **Run**.")
    offline = stage([run.id], key="stage", title=explain.title(experiment, known), pictures=len(experiment.pictures))
    if offline:
        fallback.show(run.id)
    with st.container(key="details"):
        if run.status in OPEN:
            watch(run.id, experiment, known)
        else:
            details(run, experiment, known)


@st.fragment(run_every=1.0)
def watch(run_id: str, experiment: Experiment, known: Catalog) -> None:
    """The details of a run that still moves; once it has ended the whole page is drawn again, and looks no more."""
    run = service().look(run_id)
    if run is None or run.status not in OPEN or "go" in st.session_state:
        st.rerun()
    details(run, experiment, known)


def details(run: Run, experiment: Experiment, known: Catalog) -> None:
    """What to take away, what to ask next, what was assumed."""
    actions(run)
    questions(experiment, known)
    st.html(ledger(experiment, known, service().meta(run.id), run.result))
    glossary()


def actions(run: Run) -> None:
    """Cancel while it runs; then link and downloads."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if run.status in OPEN and service().may_cancel(run.id, owner()):
            st.button(
                "Stop and keep the best so far", on_click=service().cancel, args=(run.id, owner()), icon=":material/stop:", key="cancel"
            )
        for name, label in DOWNLOADS.items():
            st.link_button(label, f"/api/runs/{run.id}/{name}", icon=":material/download:", type="tertiary")
        with st.popover("Link to this run", icon=":material/link:", type="tertiary"):
            st.code(f"{(st.context.url or '').split('?')[0]}?run={run.id}", language=None)


def questions(experiment: Experiment, known: Catalog) -> None:
    """Three what-ifs, each one click."""
    spare = [Picture(id=item.id) for item in gallery()]
    st.markdown("**What if …**")
    with st.container(horizontal=True):
        for title, (about, changed) in explain.what_ifs(experiment, known, spare).items():
            with suppress(SpecError):  # the run's trained model may be gone since
                st.button(f"… {title}?", help=about, on_click=ask, args=(changed.resolve(known),), key=f"what-if {title}")


def ask(experiment: Experiment) -> None:
    """Put the experiment into the widgets and run it."""
    forms.load(experiment)
    st.session_state["go"] = True


def glossary() -> None:
    """The words, each behind a small button."""
    with st.container(horizontal=True, key="glossary"):
        for word, meaning in explain.GLOSSARY.items():
            with st.popover(word, type="tertiary"):
                st.markdown(meaning)


def load_settings(run_id: str) -> None:
    """Show the settings of a run that came by link."""
    run = service().look(run_id)
    if run and run.kind == "attack":
        forms.load(Experiment.model_validate_json(run.experiment))


def duration(seconds: float) -> str:
    """Rounded for people."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min"
