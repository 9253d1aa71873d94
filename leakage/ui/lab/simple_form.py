"""The Lab's simple form: seven choices in place of all settings. Each writes the very settings that Expert has widgets for."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from leakage.results.changes import changes
from leakage.spec.catalog import Catalog, CatalogError
from leakage.spec.experiment import Experiment, Picture, SpecError
from leakage.spec.lab_settings import NONE, PICKED, experiment_of, lab_settings
from leakage.spec.prepared import prepared
from leakage.spec.simple_choice import STRENGTHS, SimpleChoice, find_choice, nearest_choice
from leakage.ui.common import forms
from leakage.ui.common.markdown import Markdown, escape, ours
from leakage.ui.common.session import KEPT
from leakage.ui.lab.chooser import choose_pictures

EXPERT = "expert"  # in session state and in the address: that all settings are shown
DEPTHS = {False: "Simple", True: "Expert"}
OWN = (PICKED, "source")  # settings whose widgets both forms have
MANY = 3  # options in a row
KNOWS = {True: "Knows it", False: "Does not know it"}
SENDS = {False: "One step", True: "Five local steps"}
SWITCH = """Simple: seven choices, and the attack follows from them. Expert: all settings. To switch changes none of them. Simple is grey
where settings are chosen that it does not offer; the reason stands below."""


def drawn_simply(known: Catalog) -> SimpleChoice | None:
    """The choice to draw the simple form with; None: Expert is asked for, or alone can show these settings, and then stays."""
    state = st.session_state
    choice = find_here(known)
    state.setdefault(EXPERT, st.query_params.get(EXPERT) == "1")
    state[EXPERT] = state[EXPERT] or choice is None
    return None if state[EXPERT] else choice


def find_here(known: Catalog) -> SimpleChoice | None:
    """The choice that asks for just what the settings of this visitor ask for, if there is one."""
    count = max(st.session_state.get("batch", 1), len(st.session_state.get(PICKED, ())))
    try:
        return find_choice(_experiment(known, forms.DEFAULT.pictures * count), known)
    except CatalogError:  # of a run whose plug-in is gone since
        return None


def _experiment(known: Catalog, pictures: tuple[Picture, ...]) -> Experiment:
    return experiment_of({str(key): value for key, value in st.session_state.items()}, pictures, known)


def switch(known: Catalog) -> None:
    """Simple or Expert."""
    state, shown = st.session_state, find_here(known) is not None
    state["depth"] = state[EXPERT]
    st.segmented_control(
        "How many settings",
        list(DEPTHS),
        format_func=DEPTHS.__getitem__,
        required=True,
        key="depth",
        on_change=lambda: state.update({EXPERT: state["depth"]}),
        disabled=not shown,
        label_visibility="collapsed",
        help=SWITCH,
    )
    if not shown:
        st.caption(f":material/info: Simple has no choice for these settings{_beyond(known)}. **Reset to defaults** leads back to it.")


def _beyond(known: Catalog) -> Markdown:
    """What the nearest choice of Simple has otherwise, in words; empty where that cannot be said."""
    count = max(st.session_state.get("batch", 1), len(st.session_state.get(PICKED, ())))
    try:
        here = _experiment(known, forms.DEFAULT.pictures * count)
        nearest = nearest_choice(here, known)
        if nearest is None:
            return escape(f": it has {listing(prepared().simple.counts)} pictures in one update")
        words = changes(nearest.experiment(here.pictures).resolve(known), here.resolve(known), known)
    except (CatalogError, SpecError):
        return escape("")
    return escape(f": {words}" if words else "")


def listing(numbers: Sequence[int]) -> str:
    """Such as "1, 4 or 8"."""
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}"


def settings(known: Catalog, choice: SimpleChoice) -> Experiment | None:
    """The form, and what it asks for; None while no picture is chosen."""
    _keep(known)
    with forms.card(1, "The private pictures"):
        _, pictures = choose_pictures(count=choice.count)
        _menu("count", "Pictures in one update", {count: str(count) for count in prepared().simple.counts}, choice, known)
    with forms.card(2, "The phone"):
        networks = prepared().simple.networks
        _menu("network", "Network", {name: one.title for name, one in networks.items()}, choice, known)
        st.caption(ours(networks[choice.network].about))
        _menu("local", "Before it sends, it takes", SENDS, choice, known)
        _protection(choice, known)
    with forms.card(3, "The attacker"):
        plain = choice.protection == NONE and not choice.local
        about = "The protection" if not choice.local else "How the phone trains" if choice.protection == NONE else "Training and protection"
        _menu("adaptive", about, KNOWS, choice, known, disabled=plain)
        if plain:
            st.caption("Without a protection there is nothing to know.")
    return _experiment(known, pictures) if pictures else None


def _protection(choice: SimpleChoice, known: Catalog) -> None:
    """Which, and how strong."""
    titles = {NONE: "No protection"} | {name: one.title for name, one in prepared().simple.protections.items()}
    _menu("protection", "Protection", titles, choice, known)
    if choice.protection == NONE:
        st.caption("What leaves the phone is sent as it is.")
        return
    _menu("strength", "Strength", {name: name.capitalize() for name in STRENGTHS}, choice, known)
    (part,) = choice.experiment(forms.DEFAULT.pictures).defenses
    fields = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in part.fields.items())
    st.caption(f"{ours(known.defenses.get(part.id).plain)} ({escape(fields)})")


def _menu(name: str, label: str, options: dict[Any, str], choice: SimpleChoice, known: Catalog, *, disabled: bool = False) -> None:
    """One of the choices, as a row of buttons, or as a menu where they are many; a press writes all settings that follow from it."""
    key, names = f"simple-{name}", list(options)
    st.session_state[key] = getattr(choice, name)
    given = (name, choice, known)
    if len(names) > MANY:
        st.selectbox(escape(label), names, format_func=options.__getitem__, key=key, on_change=_write, args=given)
        return
    st.segmented_control(
        escape(label),
        names,
        required=True,
        width="stretch",
        disabled=disabled,
        format_func=lambda name: escape(options[name]),
        key=key,
        on_change=_write,
        args=given,
    )


def _write(name: str, before: SimpleChoice, known: Catalog) -> None:
    """Put what a new choice asks for into the settings; the pictures stay, as many as there is room for."""
    state = st.session_state
    choice = replace(before, **{name: state[f"simple-{name}"]})
    asked = choice.experiment(forms.DEFAULT.pictures * choice.count).resolve(known)
    state.update({key: value for key, value in lab_settings(asked).items() if key not in OWN})


def _keep(known: Catalog) -> None:
    """Settings whose widgets are not drawn stay, until the page is left."""
    state, usual = st.session_state, lab_settings(forms.DEFAULT)
    state[KEPT] = [key for key in (*usual, *_fields(known)) if key not in OWN]
    for key in state[KEPT]:
        if key in state or key in usual:
            state[key] = state.get(key, usual.get(key))


def _fields(known: Catalog) -> Iterator[str]:
    for entry in known.entries:
        for field in entry.fields:
            yield f"{entry.id}.{field.name}"
