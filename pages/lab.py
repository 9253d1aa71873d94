"""The lab: choose pictures, client, protection and attacker on the left; watch the attack on the right."""

import time

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from leakage.assumed import Doing
from leakage.catalog import Catalog
from leakage.runs.service import service
from leakage.spec import SIZES, Experiment, SpecError
from leakage.ui import explain, forms, presets, result
from leakage.ui.attacker import choose_attacker
from leakage.ui.chooser import choose_pictures, describe, uploads_of
from leakage.ui.session import delete_all, owner
from leakage.ui.setting import choose_setting

PATIENCE = 30.0  # seconds to wait for the dispatcher
COLOURS = {3: "Colour", 1: "Grey"}


def step(number: int, title: str) -> DeltaGenerator:
    """A card for one of the four steps."""
    card = st.container(border=True, gap="small", key=f"step-{number}")
    card.markdown(f"**{number} · {title}**")
    return card


def settings(known: Catalog) -> Experiment | None:
    """The four steps as widgets; None while no picture is chosen."""
    with step(1, "The private pictures"):
        items, pictures = choose_pictures()
        with st.container(horizontal=True, wrap=False, vertical_alignment="bottom", gap="small"):
            st.caption(describe(items) if items else "No picture chosen.")
            with st.popover("", icon=":material/tune:", help="Fine settings of the pictures", key="fine-pictures"):
                size = st.segmented_control("Size", SIZES, default=32, required=True, format_func=lambda side: f"{side} px", key="size")
                channels = st.segmented_control(
                    "Colours", list(COLOURS), default=3, required=True, format_func=COLOURS.__getitem__, key="channels"
                )
    with step(2, "The client"):
        setting = choose_setting(known, len(pictures))
    with step(3, "The protection"):
        defense = forms.choose(known, "defense", "What the phone does before sending")
        defenses = (defense,) if defense else ()
    with step(4, "The attacker and what it knows"):
        doing = Doing.of(known, setting.protocol, setting.aggregation, len(pictures))
        attack, assume = choose_attacker(known, setting.model, doing, defenses)
    if not pictures:
        return None
    return Experiment(
        **vars(setting),
        pictures=pictures,
        size=size,
        channels=channels,
        defenses=defenses,
        attack=attack,
        assume=assume,
        seed=forms.number("seed"),
        max_seconds=forms.number("max_seconds"),
    )


def start(experiment: Experiment | None, known: Catalog) -> None:
    """The Run button with its estimate; submits when pressed, or when a what-if was."""
    seconds, words = None, "No estimate yet for this model" if experiment else "Choose a picture first"
    with st.container(key="run-bar", gap="small"):
        try:
            seconds = service().estimate(experiment.resolve(known)) if experiment else None
        except SpecError as error:  # settings that are each allowed, and together are not
            experiment, words = None, str(error)
        if seconds:
            limit = experiment.max_seconds if experiment else 0
            words = f"About {result.duration(seconds)} on this machine"
            words += f", and {result.duration(limit)} at most: its time limit" if seconds > limit else ""
        pressed = st.button(
            "Run", type="primary", icon=":material/play_arrow:", width="stretch", disabled=experiment is None, key="run-button"
        )
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.caption(forms.verbatim(words))
            st.button("Reset to defaults", on_click=forms.reset, args=(known,), icon=":material/restart_alt:", type="tertiary")
    asked = st.session_state.pop("go", False)  # by a what-if
    if experiment and (pressed or asked):
        try:
            run = service().submit(experiment, owner(), uploads=uploads_of(experiment.pictures))
            if run == st.query_params.get("run"):
                st.toast("This is the run of these settings: the same seed gives the same run. Change the seed for another.")
            st.query_params["run"] = run
        except SpecError as error:
            st.error(forms.verbatim(str(error)))


def wait_for_catalog() -> Catalog | None:
    """The plug-ins as data; after an update the dispatcher needs some seconds to write them down.

    Waiting here, instead of drawing a page without widgets, keeps the settings that are in the address.
    """
    deadline = time.monotonic() + PATIENCE
    with st.spinner("Getting the attacks and models ready. This takes a few seconds after an update."):
        while (known := service().catalog()) is None and time.monotonic() < deadline:
            time.sleep(0.1)
    if known is None:
        st.error("The attacks and models are not ready: the dispatcher does not answer. See dispatch.log in LEAKAGE_HOME, then reload.")
    return known


def page() -> None:
    """The whole page, top to bottom."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", gap="small"):
        st.markdown(f"#### {explain.QUESTION}", width="content")
        presets.offer()
    known = service().catalog() or wait_for_catalog()
    if known is None:
        return
    if preset := presets.named(st.query_params.get("preset")):
        presets.start(preset)
    if refused := st.session_state.pop("refused", ""):
        st.error(refused)
    shown = st.query_params.get("run")
    if shown and "attack" not in st.session_state and "attack" not in st.query_params:
        result.load_settings(shown)
    forms.read_url(known)
    left, right = st.columns([0.3, 0.7], gap="medium")
    with left:
        experiment = settings(known)
        forms.write_url(known)
        start(experiment, known)
    with right:
        result.show(st.query_params.get("run"), known)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(explain.PROMISE, width="content")
        delete_all()


page()
