"""Presets: one click shows two recorded runs of the same picture and seed side by side, with a sentence on what they show."""

import streamlit as st

from leakage.results.run_titles import attack_title
from leakage.runs.service import service
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError
from leakage.spec.prepared import Preset, prepared
from leakage.ui.common import address, forms
from leakage.ui.common.markdown import escape, ours
from leakage.ui.common.session import owner
from leakage.ui.compare import recorded_comparisons

IN_LINE = 2  # buttons in the row; a menu holds the others, so that on a projector the verdict fits without scrolling
CHOSEN = "presets-chosen"  # in session state: how many were chosen; part of the menu's key, so that each choice closes the menu


def render_buttons() -> None:
    """Draw a button for each preset (a prepared pair of runs with a story): the first in a row, the others in a menu.

    The menu also has links to the stories on the page Compare.
    """
    presets = prepared().presets
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Worth watching:", width="content")
        for preset in presets[:IN_LINE]:
            _button(preset)
        with st.popover("More", type="tertiary", width="content", key=f"more-presets-{st.session_state.get(CHOSEN, 0)}"):
            for preset in presets[IN_LINE:]:
                _button(preset)
            for story in prepared().compare.stories:
                recorded_comparisons.render_link(story)


def _button(preset: Preset) -> None:
    title, icon = escape(preset.title), ":material/compare:"
    st.button(title, icon=icon, type="tertiary", key=preset.name, help=ours(preset.help), on_click=choose, args=(preset,))


def choose(preset: Preset) -> None:
    """Show the runs of the preset whose button was pressed, and close the menu."""
    st.session_state[CHOSEN] = st.session_state.get(CHOSEN, 0) + 1
    start(preset)


def find_preset(name: str | None) -> Preset | None:
    """Return the preset with this name, as in ?preset=name of the page's address, or None."""
    return next((preset for preset in prepared().presets if preset.name == name), None)


def start(preset: Preset, *, live: bool = False) -> None:
    """Show the recorded runs of a preset, and set the widgets to the second one.

    Compute both runs instead where `live` is set or a recording is missing.
    """
    runs = [id for id in preset.recorded if service().look(id)]
    if live or len(runs) < len(preset.recorded):
        try:
            runs = [service().submit(experiment, owner(), group=preset.name) for experiment in preset.pair]
        except SpecError as error:
            st.session_state["refused"] = str(error)
            return
    known = service().catalog()
    if known:
        forms.put_defaults(known)
        forms.load(preset.pair[-1].resolve(known))
    st.session_state[address.NEXT] = {"run": ",".join(runs)}


def preset_of(experiments: list[Experiment], known: Catalog) -> Preset | None:
    """Return the preset with exactly these two experiments, or None."""
    wanted = [resolve_if_known(experiment, known) for experiment in experiments]
    return next((preset for preset in prepared().presets if [resolve_if_known(run, known) for run in preset.pair] == wanted), None)


def titles(experiments: list[Experiment], known: Catalog) -> list[str]:
    """Return the title of each run: those of the preset where the runs are its pair, else what the attack is."""
    preset = preset_of(experiments, known)
    return list(preset.titles) if preset else [attack_title(experiment, known) for experiment in experiments]


def resolve_if_known(experiment: Experiment, known: Catalog) -> Experiment:
    """Return the experiment with the defaults of all plug-ins filled in, or unchanged if one of its plug-ins no longer exists."""
    try:
        return experiment.resolve(known)
    except SpecError:
        return experiment
