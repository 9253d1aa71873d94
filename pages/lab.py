"""The page Lab: choose pictures, client, protection and attacker on the left; watch the attack on the right."""

import streamlit as st

from leakage.results.differences import sentence_case
from leakage.runs.service import service
from leakage.spec.catalog import Catalog
from leakage.spec.cautions import all_cautions
from leakage.spec.client_behavior import ClientBehavior
from leakage.spec.experiment import Experiment, SpecError
from leakage.ui.common import address, forms
from leakage.ui.common.markdown import escape
from leakage.ui.common.pace import about
from leakage.ui.common.ready import catalog
from leakage.ui.common.session import BEFORE, COMING, SHOWN, draw_foot, owner
from leakage.ui.lab import handed_model_view, newcomer, presets, result, simple_form
from leakage.ui.lab.attacker import choose_attacker
from leakage.ui.lab.chooser import choose_pictures, choose_shape, uploads_of
from leakage.ui.lab.client_choice import Setting, choose_setting


def settings(known: Catalog) -> Experiment | None:
    """Draw the four cards of widgets (pictures, phone, protection, attacker), and return the experiment; None if no picture is chosen."""
    with forms.card(1, "The private pictures"):
        items, pictures = choose_pictures(known=known)
        size, channels = choose_shape(items)
    with forms.card(2, "The phone"):

        def draw_model(setting: Setting) -> None:
            asked = Experiment(**vars(setting), pictures=pictures, size=size, channels=channels) if pictures else None
            handed_model_view.show(asked, known, key="handed")

        setting = choose_setting(known, len(pictures), draw_model=draw_model)
    with forms.card(3, "The protection"):
        defense = forms.choose(known, "defense", "What the phone does before sending")
        defenses = (defense,) if defense else ()
    with forms.card(4, "The attacker and what it knows"):
        asked = setting.protocol, setting.aggregation, setting.server
        behavior = ClientBehavior.of(known, *asked, len(pictures), batch_norm=setting.batch_norm)
        attack, assume = choose_attacker(known, setting.model, behavior, defenses)
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
    """Draw the Run button with its estimate; queue the experiment when Run or a what-if was pressed."""
    seconds, sentence = None, "How long a run with this model takes is not known yet" if experiment else "Choose a picture first"
    with st.container(key="run-bar", gap="small"):
        try:
            seconds = service().estimate(experiment.resolve(known)) if experiment else None
        except SpecError as error:  # each setting is allowed, but not all of them together
            experiment, sentence = None, str(error)
        if seconds and experiment:
            sentence = sentence_case(about(seconds, limit=experiment.max_seconds))
        if experiment:
            sentence = f"Attack: {known.attacks.get(experiment.attack.id).title}. {sentence}"
        pressed = st.button(
            "Run", type="primary", icon=":material/play_arrow:", width="stretch", disabled=experiment is None, key="run-button"
        )
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.caption(escape(sentence))
            st.button("Reset to defaults", on_click=address.reset, args=(known,), icon=":material/restart_alt:", type="tertiary")
        for caution in all_cautions(experiment, known) if experiment else ():
            st.caption(f":material/warning: {escape(caution)}")
    beside = st.session_state.pop("go", "")  # a what-if was pressed: the id of the run that stays beside it
    if experiment and (pressed or beside):
        try:
            run = service().submit(experiment, owner(), uploads=uploads_of(experiment.pictures))
            if run == run_shown():
                st.toast(
                    "A run with these settings is shown already: the same random start (seed) gives the same run. "
                    "Change the seed for another run."
                )
            st.session_state[address.NEXT] = {"run": ",".join(dict.fromkeys([beside, run] if beside else [run]))}
        except SpecError as error:
            st.error(escape(error))


def begin(known: Catalog) -> None:
    """Set the widgets, on a new page or after Back or Forward, to the settings in the page's address (URL) or of the run that it names."""
    state, back = st.session_state, address.went_through_history()
    drawn = "attack" in state  # this page, or another page with the same menu
    if drawn and not back and not (state.get(COMING) and state.get(SHOWN)):
        return
    shown, by_settings = st.query_params.get("run"), "v" in st.query_params
    address.read_url(known, again=drawn)
    if back:
        state[simple_form.EXPERT] = st.query_params.get(simple_form.EXPERT) == "1"
    if not shown and not by_settings:  # an address without keys shows the run that this page showed before
        shown = state[BEFORE] = state.get(BEFORE if back else SHOWN)
        if shown and not back:  # after Back or Forward the address stays as it is, so that the later steps of the history remain
            state[address.NEXT] = {"run": shown}
    if shown and not by_settings:
        result.load_settings(shown)
    state["opened"] = by_settings  # by a link to settings


def run_shown() -> str | None:
    """Return the ids of the runs in the page's address (URL), joined by commas; without settings there, the runs shown before; or None."""
    return st.query_params.get("run") or (None if "v" in st.query_params else st.session_state.get(BEFORE))


def page() -> None:
    """Draw the whole page, from top to bottom."""
    newcomer.front_door()
    presets.render_buttons()
    known = catalog()
    if known is None:
        return
    if preset := presets.find_preset(st.query_params.get("preset")):
        presets.start(preset)
    else:
        begin(known)
    if refused := st.session_state.pop("refused", ""):
        st.error(escape(refused))
    misread = st.empty()
    left, right = st.columns([0.3, 0.7], gap="medium")
    with left:
        choice = simple_form.choice_to_draw(known)
        simple_form.choose_depth(known)
        experiment = simple_form.settings(known, choice) if choice else settings(known)
        start(experiment, known)
        address.write_url(known, more={"preset": None, simple_form.EXPERT: None if choice else "1", "run": run_shown()})
        address.tell_misread(misread, known)
    with right:
        st.session_state[SHOWN] = run_shown()
        result.show(st.session_state[SHOWN], experiment, known)
    draw_foot()


page()
