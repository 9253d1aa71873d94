"""The simple form of the Lab: seven choices instead of all settings. Each choice writes settings that the expert form shows too."""

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

EXPERT = "expert"  # key in session state and in the address: the page shows all settings
DEPTHS = {False: "Simple", True: "Expert"}
SHARED = (PICKED, "source")  # keys of widgets that are part of both forms
MAX_BUTTONS = 3  # options in a row of buttons; more become a menu
KNOWS = {True: "Knows", False: "Does not know"}
SENDS = {False: "One step", True: "Five local steps"}
SWITCH = (
    "The simple form has seven choices, and the attack follows from these choices. The expert form has all settings. "
    "Switching between the forms changes none of the settings. The button Simple is grey if the simple form does not offer the "
    "chosen settings; the reason stands below the switch."
)


def choice_to_draw(known: Catalog) -> SimpleChoice | None:
    """Return the choice that the simple form shows, or None where the page draws the expert form.

    That is the case where the visitor asked for it, or once the simple form had no choice for the settings.
    """
    state = st.session_state
    choice = current_choice(known)
    state.setdefault(EXPERT, st.query_params.get(EXPERT) == "1")
    state[EXPERT] = state[EXPERT] or choice is None
    return None if state[EXPERT] else choice


def current_choice(known: Catalog) -> SimpleChoice | None:
    """Return the choice of the simple form that equals the settings in the widgets, or None."""
    count = max(st.session_state.get("batch", 1), len(st.session_state.get(PICKED, ())))
    try:
        return find_choice(_experiment(known, forms.DEFAULT.pictures * count), known)
    except CatalogError:  # a plug-in of the shown run no longer exists
        return None


def _experiment(known: Catalog, pictures: tuple[Picture, ...]) -> Experiment:
    return experiment_of({str(key): value for key, value in st.session_state.items()}, pictures, known)


def choose_depth(known: Catalog) -> None:
    """Draw the switch between Simple and Expert; disable it where the simple form has no choice for the settings, and say why."""
    state, possible = st.session_state, current_choice(known) is not None
    state["depth"] = state[EXPERT]
    st.segmented_control(
        "How many settings",
        list(DEPTHS),
        format_func=DEPTHS.__getitem__,
        required=True,
        key="depth",
        on_change=lambda: state.update({EXPERT: state["depth"]}),
        disabled=not possible,
        label_visibility="collapsed",
        help=SWITCH,
    )
    if not possible:
        st.caption(
            f":material/info: The simple form does not offer these settings{_differences(known)}. **Reset to "
            "defaults** leads back to the simple form."
        )


def _differences(known: Catalog) -> Markdown:
    """Return how the settings differ from the nearest choice of the simple form; empty where there is nothing to compare."""
    count = max(st.session_state.get("batch", 1), len(st.session_state.get(PICKED, ())))
    try:
        here = _experiment(known, forms.DEFAULT.pictures * count)
        nearest = nearest_choice(here)
        if nearest is None:
            return escape(f": it offers {join_or(prepared().simple.counts)} pictures in one update")
        differences = changes(nearest.experiment(here.pictures).resolve(known), here.resolve(known), known)
    except (CatalogError, SpecError):
        return escape("")
    return escape(f": {differences}" if differences else "")


def join_or(numbers: Sequence[int]) -> str:
    """Return two or more numbers as a list in words, such as "1, 4 or 8"."""
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}"


def settings(known: Catalog, choice: SimpleChoice) -> Experiment | None:
    """Draw the simple form, and return the experiment that it describes; None while no picture is chosen."""
    _keep(known)
    with forms.card(1, "The private pictures"):
        _, pictures = choose_pictures(count=choice.count, known=known)
        _menu("count", "Pictures in one update", {count: str(count) for count in prepared().simple.counts}, choice, known)
    with forms.card(2, "The phone"):
        networks = prepared().simple.networks
        _menu("network", "Network", {name: network.title for name, network in networks.items()}, choice, known)
        st.caption(ours(networks[choice.network].about))
        _menu("local", "Training steps of the phone before it sends", SENDS, choice, known)
        _protection(choice, known)
    with forms.card(3, "The attacker"):
        plain = choice.protection == NONE and not choice.local
        about = "the protection" if not choice.local else "how the phone trains" if choice.protection == NONE else "training and protection"
        _menu("adaptive", f"Does the attacker know {about}?", KNOWS, choice, known, disabled=plain)
        if plain:
            st.caption("Without a protection there is nothing for the attacker to know about it.")
    return _experiment(known, pictures) if pictures else None


def _protection(choice: SimpleChoice, known: Catalog) -> None:
    """Draw the choice of a protection and of its strength."""
    titles = {NONE: "No protection"} | {name: offered.title for name, offered in prepared().simple.protections.items()}
    _menu("protection", "Protection", titles, choice, known)
    if choice.protection == NONE:
        st.caption("Without a protection the phone sends its update as it is.")
        return
    _menu("strength", "Strength", {name: name.capitalize() for name in STRENGTHS}, choice, known)
    (part,) = choice.experiment(forms.DEFAULT.pictures).defenses
    fields = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in part.fields.items())
    st.caption(f"{ours(known.defenses.get(part.id).plain)} ({escape(fields)})")


def _menu(name: str, label: str, options: dict[Any, str], choice: SimpleChoice, known: Catalog, *, disabled: bool = False) -> None:
    """Draw one setting of the simple form as a row of buttons or, with many options, as a menu; a press sets all settings that follow."""
    key, names = f"simple-{name}", list(options)
    st.session_state[key] = getattr(choice, name)
    given = (name, choice, known)
    if len(names) > MAX_BUTTONS:
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
    """Set the settings that follow from a new choice; keep the pictures, as many as its batch holds."""
    state = st.session_state
    choice = replace(before, **{name: state[f"simple-{name}"]})
    asked = choice.experiment(forms.DEFAULT.pictures * choice.count).resolve(known)
    state.update({key: value for key, value in lab_settings(asked).items() if key not in SHARED})


def _keep(known: Catalog) -> None:
    """Keep the settings that have no widget in the simple form, until the visitor leaves the page."""
    state, usual = st.session_state, lab_settings(forms.DEFAULT)
    state[KEPT] = [key for key in (*usual, *_fields(known)) if key not in SHARED]
    for key in state[KEPT]:
        if key in state or key in usual:
            state[key] = state.get(key, usual.get(key))


def _fields(known: Catalog) -> Iterator[str]:
    for entry in known.entries:
        for field in entry.fields:
            yield f"{entry.id}.{field.name}"
