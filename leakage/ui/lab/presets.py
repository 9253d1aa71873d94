"""Published results, overturned: one click, two recorded runs of the same picture and seed, side by side; another computes them."""

import streamlit as st

from leakage.results.run_titles import attack_title
from leakage.runs.service import service
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError
from leakage.spec.prepared import Preset, prepared
from leakage.ui.common import address, forms
from leakage.ui.common.markdown import escape, ours
from leakage.ui.common.session import owner

IN_LINE = 2  # buttons in the row; the others open from a menu, so that a hall still reads the verdict without scrolling
CHOSEN = "presets-chosen"  # how many were: every time the menu is another one, which is closed


def render_buttons() -> None:
    """A row of buttons, and a menu with the rest."""
    presets = prepared().presets
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Worth watching:", width="content")
        for preset in presets[:IN_LINE]:
            _button(preset)
        with st.popover("More", type="tertiary", width="content", key=f"more-presets-{st.session_state.get(CHOSEN, 0)}"):
            for preset in presets[IN_LINE:]:
                _button(preset)


def _button(preset: Preset) -> None:
    words, look = preset.title, ":material/compare:"
    st.button(escape(words), icon=look, type="tertiary", key=preset.name, help=ours(preset.help), on_click=choose, args=(preset,))


def choose(preset: Preset) -> None:
    """One was pressed: it is shown, and the menu closed."""
    st.session_state[CHOSEN] = st.session_state.get(CHOSEN, 0) + 1
    start(preset)


def named(name: str | None) -> Preset | None:
    """The preset of that name, which comes from an address."""
    return next((preset for preset in prepared().presets if preset.name == name), None)


def start(preset: Preset, *, live: bool = False) -> None:
    """Show both as they were recorded, or compute them; the widgets show the adaptive one."""
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
    """The preset whose two runs these are."""
    shapes = [shape(experiment, known) for experiment in experiments]
    return next((preset for preset in prepared().presets if [shape(own, known) for own in preset.pair] == shapes), None)


def titles(experiments: list[Experiment], known: Catalog) -> list[str]:
    """What stands above each of the runs shown."""
    preset = preset_of(experiments, known)
    return list(preset.titles) if preset else [attack_title(experiment, known) for experiment in experiments]


def shape(experiment: Experiment, known: Catalog) -> Experiment:
    """The experiment with every field spelled out; as it is where a plug-in of it is gone."""
    try:
        return experiment.resolve(known)
    except SpecError:
        return experiment
