"""Published results, overturned: one click, two runs of the same picture and seed, side by side."""

from dataclasses import dataclass

import streamlit as st

from leakage.runs.service import service
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Assumptions, Experiment, Part, SpecError
from leakage.ui.common import explain, forms
from leakage.ui.common.session import owner

STAND_IN = (Part(id="ada_defense", fields={"variant": "as in the code"}),)
SEARCH = Part(id="inverting_gradients", fields={"steps": 1500, "step_size": 0.02, "start": "uniform", "polish": 40})


@dataclass(frozen=True)
class Preset:
    """Two runs with a story. `name` is in the address (?preset=...) and groups the runs; `titles` stand above them."""

    name: str
    title: str
    help: str
    story: str
    titles: tuple[str, str]
    pair: tuple[Experiment, Experiment]


def naive_and_adaptive(adaptive: Experiment) -> tuple[Experiment, Experiment]:
    """The experiment against an attacker who knows nothing of the client, and as it is, against one who knows all."""
    return adaptive.model_copy(update={"assume": Assumptions(adaptive=False)}), adaptive


PRESETS = (
    Preset(
        name="overturned",
        title="A published result, overturned",
        help="Two attacks on the same phone, live: as reported, and repaired.",
        story="""
**A published result, overturned.** FedADMM phones keep correction terms (*duals*) to themselves and send only a mixture. A reproduction
report attacked them with DLG, got noise, and concluded that ADMM does not leak. Its attack made two mistakes: its imitation of the phone
never started afresh, so the goal moved while it searched; and it compared what is sent with a gradient, though that is half as large.
Repair both, and the same data give the picture away: a failed attack is no protection. To repair one alone: Naive, and the fine settings
of the attack.
""",
        titles=("Naive: as reported", "Adaptive: same data, same seed"),
        pair=naive_and_adaptive(Experiment(protocol=Part(id="fedadmm"), attack=Part(id="dlg_admm"))),
    ),
    Preset(
        name="stand-in",
        title="A protection, read off",
        help="AdaDefense against an attacker who takes its stand-in for a gradient, and against one who solves its formula.",
        story="""
**A protection, read off.** With AdaDefense a phone sends no gradient but a *stand-in*: every entry divided by its own size, so that all are
about equally large. An attacker who takes that for a gradient finds nothing. But the division leaves a trace: g / (|g| + e) is not quite 1,
and how far it is from 1 says how large g was. Who knows the formula solves it for g, weighs every entry by the digits that were left, and
goes on as if nothing had been hidden.
""",
        titles=("Naive: takes it for a gradient", "Adaptive: reads the gradient off"),
        pair=naive_and_adaptive(Experiment(defenses=STAND_IN, attack=SEARCH, assume=Assumptions(counter="read it off"))),
    ),
)


def offer() -> None:
    """A row of buttons."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Worth watching:", width="content")
        for preset in PRESETS:
            words, look = preset.title, ":material/compare:"
            st.button(words, icon=look, type="tertiary", key=preset.name, help=preset.help, on_click=start, args=(preset,))


def named(name: str | None) -> Preset | None:
    """The preset of that name, which comes from an address."""
    return next((preset for preset in PRESETS if preset.name == name), None)


def start(preset: Preset) -> None:
    """Submit both and show them; the widgets show the adaptive one."""
    st.query_params.pop("preset", None)
    try:
        runs = [service().submit(experiment, owner(), group=preset.name) for experiment in preset.pair]
    except SpecError as error:
        st.session_state["refused"] = str(error)
        return
    known = service().catalog()
    if known:
        forms.reset(known)
        forms.load(preset.pair[-1].resolve(known))
    st.query_params["run"] = ",".join(runs)


def shown(experiments: list[Experiment], known: Catalog) -> Preset | None:
    """The preset whose two runs these are."""
    shapes = [shape(experiment, known) for experiment in experiments]
    return next((preset for preset in PRESETS if [shape(own, known) for own in preset.pair] == shapes), None)


def titles(experiments: list[Experiment], known: Catalog) -> list[str]:
    """What stands above each of the runs shown."""
    preset = shown(experiments, known)
    return list(preset.titles) if preset else [explain.title(experiment, known) for experiment in experiments]


def shape(experiment: Experiment, known: Catalog) -> Experiment:
    """The experiment with every field spelled out; as it is where a plug-in of it is gone."""
    try:
        return experiment.resolve(known)
    except SpecError:
        return experiment
