"""The page Compare: variants of an experiment that differ in one setting, or protections crossed with attacks, all side by side."""

import streamlit as st

from leakage.results.comparison_plan import plan
from leakage.spec.catalog import Catalog
from leakage.spec.cautions import all_warnings
from leakage.spec.experiment import Experiment
from leakage.spec.lab_settings import PICKED
from leakage.ui.common import address, forms
from leakage.ui.common.markdown import escape
from leakage.ui.common.ready import catalog
from leakage.ui.common.session import draw_foot
from leakage.ui.compare import compared, precomputed_results, run_all, server_axis, variants, variants_address
from leakage.ui.lab.chooser import choose_pictures, choose_shape
from leakage.ui.lab.client_choice import choose_setting

ONLY_LAB = ("defense", "adaptive", "counter")  # menus that the Lab has and this page lacks


def settings(known: Catalog) -> tuple[list[Experiment], list[str]]:
    """Draw the three cards of settings, filling the first ("What differs") last; return the experiments and a sentence for each problem."""
    variants.room_for_batches()
    server_axis.set_base(known)
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
    title = st.empty()
    title.markdown(f"#### {escape(compared.title(st.query_params.get('runs', '')))}")
    known = catalog()
    if known is None:
        return
    prepare(known)
    title.markdown(f"#### {escape(compared.title(st.query_params.get('runs', '')))}")
    misread = st.empty()
    left, right = st.columns([0.3, 0.7], gap="medium")
    with left:
        experiments, problems = settings(known)
        run_all.draw(experiments, [*problems, *all_warnings(experiments, known)])
        address.write_url(known, without=ONLY_LAB, more=variants_address.address_fields())
        address.tell_misread(misread, known, without=ONLY_LAB, more=variants_address.misread)
    with right:
        compared.show(st.query_params.get("runs", ""), experiments, known)
        precomputed_results.show(known)
    draw_foot()


page()
