"""The page Compare: variants of an experiment that differ in one setting, or protections crossed with attacks, all side by side."""

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from leakage.results import comparison_file
from leakage.results.comparison_plan import plan, queue_order
from leakage.runs.service import service
from leakage.spec.catalog import Catalog
from leakage.spec.cautions import all_warnings
from leakage.spec.experiment import Experiment, SpecError
from leakage.spec.lab_settings import PICKED
from leakage.ui.common import address, forms
from leakage.ui.common.markdown import escape
from leakage.ui.common.pace import about
from leakage.ui.common.ready import catalog
from leakage.ui.common.session import draw_foot, owner
from leakage.ui.compare import compared, precomputed_results, variants, variants_address
from leakage.ui.lab.chooser import choose_pictures, choose_shape, uploads_of
from leakage.ui.lab.client_choice import choose_setting

GROUP = "comparison"
ONLY_LAB = ("defense", "adaptive", "counter")  # menus that the Lab has and this page lacks


def settings(known: Catalog) -> tuple[list[Experiment], list[str]]:
    """Draw the three cards of settings, filling the first ("What differs") last; return the experiments and a sentence for each problem."""
    variants.room_for_batches()
    differing = forms.card(1, "What differs")
    with forms.card(2, "The private pictures"):
        items, pictures = choose_pictures(counted=st.session_state.get("differs") != "batch")
        size, channels = choose_shape(items)
    with forms.card(3, "What all variants share"):
        with st.expander("The phone: its model, its training, what it sends", icon=":material/smartphone:"):
            setting = choose_setting(known, len(pictures), without=variants.set_apart())
        attack, granted = variants.choose_attack(known, setting.model)
        protected = variants.shared_protection(known)
    with differing:
        if not pictures:
            st.caption("Choose a picture first.")
            return [], []
        base = Experiment(
            **vars(setting),
            pictures=pictures,
            size=size,
            channels=channels,
            defenses=protected,
            attack=attack,
            assume=granted,
            seed=forms.number("seed"),
            max_seconds=forms.number("max_seconds"),
        )
        chosen = variants.choose(base, known)
        seeds = st.session_state["seeds"] if st.session_state["differs"] == "strength" else 1
        return plan(base, chosen, variants.choose_attackers(), known, seeds=seeds)


def start(experiments: list[Experiment], problems: list[str]) -> None:
    """Draw the problems, the Run button with its estimate, and the upload of a comparison file; queue the runs when pressed."""
    for problem in problems:
        st.warning(escape(problem))
    enough = len(experiments) > 1
    with st.container(key="run-bar", gap="small"):
        if st.button("Run all", type="primary", icon=":material/play_arrow:", width="stretch", disabled=not enough, key="run-button"):
            submit(experiments, anew=bool(st.session_state.get("anew")))
        st.caption(escape(estimate(experiments) if enough else "Choose at least two variants."))
        if enough and compared.are_there(st.query_params.get("runs", ""), experiments):
            st.toggle("Compute again", key="anew", help="If this is off, an earlier run with the same settings and the same seed is shown.")
    with st.popover("Load a saved comparison", icon=":material/upload_file:", type="tertiary"):
        number = st.session_state.setdefault("comparison-files", 0)
        file = st.file_uploader("Open a saved comparison: comparison.json, or its report", ["json", "html"], key=f"comparison-{number}")
        st.button("Run it again", on_click=again, args=(file,), disabled=file is None)
    if refused := st.session_state.pop("refused", ""):
        st.error(escape(refused))


def estimate(experiments: list[Experiment]) -> str:
    """Return in words how many runs there are, and about how long they take."""
    seconds = [service().estimate(experiment) for experiment in experiments]
    runs = f"{len(experiments)} runs"
    known = [estimate for estimate in seconds if estimate is not None]
    if len(known) < len(seconds):
        return f"{runs}; how long they take is not known yet"
    slots = service().slots
    return f"{runs}, {about(max(sum(known) / slots, *known))}, {slots} at a time"


def submit(experiments: list[Experiment], *, anew: bool = False) -> None:
    """Queue all experiments, and write the ids of the runs into the page's address (URL), in the order of the variants."""
    order = queue_order(experiments)
    uploads = {id: file for experiment in experiments for id, file in uploads_of(experiment.pictures).items()}
    try:
        ids = service().submit_all([experiments[index] for index in order], owner(), uploads=uploads, group=GROUP, anew=anew)
        st.session_state[address.NEXT] = {"runs": ",".join(id for _, id in sorted(zip(order, ids, strict=True)))}
    except SpecError as error:
        st.session_state["refused"] = str(error)


def again(file: UploadedFile) -> None:
    """Set the widgets to an exported comparison, and run it again."""
    try:
        experiments = comparison_file.experiments(file.getvalue().decode(), service().catalog())
    except (SpecError, UnicodeDecodeError) as error:
        st.session_state["refused"] = str(error)
        return
    st.session_state["comparison-files"] += 1  # an empty uploader
    if known := service().catalog():
        variants_address.load(experiments, known)
    submit(experiments)


def prepare(known: Catalog) -> None:
    """Set the widgets, on a new page or after Back or Forward, to the settings or runs in the address, or to a prepared comparison."""
    back = address.went_through_history()
    if "differs" in st.session_state and not back:
        return
    if variants_address.asks():
        address.read_url(known, again=back)
        variants_address.read_url(known)
    elif runs := compared.find_attacks(st.query_params.get("runs", "")):
        variants_address.load([run.experiment_as(Experiment) for run in runs], known)
    else:
        kept = {name: st.session_state[name] for name in ("source", "batch", PICKED) if name in st.session_state}
        variants.prepare()
        st.session_state.update(kept)


def page() -> None:
    """Draw the whole page, from top to bottom."""
    st.markdown(f"#### {escape(compared.title(st.query_params.get('runs', '')))}")
    known = catalog()
    if known is None:
        return
    prepare(known)
    misread = st.empty()
    left, right = st.columns([0.3, 0.7], gap="medium")
    with left:
        experiments, problems = settings(known)
        start(experiments, [*problems, *all_warnings(experiments, known)])
        address.write_url(known, without=ONLY_LAB, more=variants_address.address_fields())
        address.tell_misread(misread, known, without=ONLY_LAB, more=variants_address.misread)
    with right:
        compared.show(st.query_params.get("runs", ""), experiments, known)
        precomputed_results.show(known)
    draw_foot()


page()
