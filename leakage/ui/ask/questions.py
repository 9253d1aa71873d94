"""The question as widgets, in the order in which somebody would tell it, kept in the address."""

import re
from collections.abc import Sequence
from typing import Any

import streamlit as st

from leakage.data.images import find, thumbnail
from leakage.results.markup import render
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Part, Picture, SpecError
from leakage.spec.lab_settings import NONE
from leakage.spec.prepared import prepared
from leakage.spec.question import ATTACKERS, COUNTS, LAST_SEED, MINUTES, STEPS, Question, groups
from leakage.ui.common import forms
from leakage.ui.common.markdown import escape
from leakage.ui.compare.stacks import key_of, known_keys, named, ready_made, stack_of
from leakage.ui.lab.chooser import uploaded

OWN = "own"
DEFAULT = Question()
SEED = "ask-seed"  # of a question from a file
USUAL = {"who": DEFAULT.who, "phones": 1, "each": 1, "steps": DEFAULT.steps, "attacker": DEFAULT.attacker, "minutes": DEFAULT.minutes}
KEYS = {name: f"ask-{name}" for name in (*USUAL, "protection")}  # of the widgets, by their name in the address


def choose(known: Catalog) -> tuple[Question, list[Picture]]:
    """The question, and the pictures that were uploaded for it."""
    with forms.card(1, "Whose pictures?"):
        who = st.segmented_control(
            "Whose pictures?",
            list(_kinds()),
            required=True,
            format_func=lambda name: escape(_kinds()[name]),
            key=KEYS["who"],
            persist_state=forms.KEPT,
            label_visibility="collapsed",
        )
        own = _own() if who == OWN else []
        faces = st.empty()
    with forms.card(2, "How are they sent?"):
        phones = st.segmented_control(
            "Phones whose updates are added up before the server sees them (secure aggregation)",
            COUNTS,
            required=True,
            key=KEYS["phones"],
            persist_state=forms.KEPT,
        )
        each = st.segmented_control(
            "Pictures of each phone in one update", COUNTS, required=True, key=KEYS["each"], persist_state=forms.KEPT
        )
        steps = st.radio("What a phone does first", list(STEPS), format_func=STEPS.__getitem__, key=KEYS["steps"], persist_state=forms.KEPT)
    with forms.card(3, "Which protection, and how strong?"):
        stack = _protection(known)
    with forms.card(4, "Who attacks?"):
        attacker = st.radio(
            "Who attacks?",
            list(ATTACKERS),
            format_func=ATTACKERS.__getitem__,
            key=KEYS["attacker"],
            persist_state=forms.KEPT,
            label_visibility="collapsed",
        )
    with forms.card(5, "How much effort?"):
        minutes = st.segmented_control(
            "Minutes",
            MINUTES,
            required=True,
            format_func=lambda number: f"{number:d} min",
            key=KEYS["minutes"],
            persist_state=forms.KEPT,
            label_visibility="collapsed",
        )
    seed = st.session_state.get(SEED, DEFAULT.seed)
    told: dict[str, Any] = {"who": who, "phones": phones, "each": each, "steps": steps, "attacker": attacker, "minutes": minutes}
    question = Question(**told, defenses=stack, seed=seed)
    if who != OWN:
        _thumbnails(question, faces)
    return question, own


def _kinds() -> dict[str, str]:
    return {**{name: kind.title for name, kind in prepared().ask.kinds.items()}, OWN: "Your own"}


def _own() -> list[Picture]:
    return [Picture(source="upload", id=item.id, label=item.label) for item in uploaded()]


def _protection(known: Catalog) -> tuple[Any, ...]:
    menu = _menu(known, st.session_state.get(KEYS["protection"], NONE))
    key = st.selectbox(
        "Protection", menu, format_func=menu.__getitem__, key=KEYS["protection"], persist_state=forms.KEPT, label_visibility="collapsed"
    )
    stack = stack_of(key, known)
    st.caption(escape(" ".join(words for part in stack for words in _told(part, known)) or "What leaves the phone is sent as it is."))
    return stack


def _menu(known: Catalog, chosen: str) -> dict[str, str]:
    """The protections that the simple form of the Lab offers, weak to strong; then all others, and the chosen one."""
    strengths = {
        key_of((strength.defense,), known): f"{protection.title}, {force}"
        for protection in prepared().simple.protections.values()
        for force, strength in protection.strengths().items()
    }
    names = named(known_keys([NONE, *strengths, *ready_made(known), chosen], known), known)
    return {key: f"{strengths[key]}: {name}" if key in strengths else name for key, name in names.items()}


def _told(part: Part, known: Catalog) -> list[str]:
    """What a protection does, and what its numbers stand for."""
    entry = known.get("defense", part.id)
    values = entry.resolve(part.fields)
    numbers = [
        f"{field.name.replace('_', ' ').capitalize()} {values[field.name]:g}: {field.help}"
        for field in entry.fields
        if field.type in ("int", "float")
    ]
    return [entry.plain, *numbers]


def _thumbnails(question: Question, place: Any) -> None:
    """The pictures of the first group of people."""
    try:
        pictures = groups(question)[0].pictures
    except SpecError:
        return
    items = [find(picture.source, picture.id) for picture in pictures]
    place.html(render("ui/ask/thumbnails.html.jinja", pictures=[(thumbnail(item), item.alt) for item in items]))


# ---------------------------------------------------------------- in the address


def read_url(known: Catalog) -> list[str]:
    """On a visitor's first run the widgets take their values from the address, or the usual ones; what cannot be used is named."""
    state, asked, wrong = st.session_state, st.query_params, list[str]()
    options: dict[str, Sequence[Any]] = {
        **{"who": list(_kinds()), "phones": COUNTS, "each": COUNTS, "steps": list(STEPS)},
        **{"attacker": list(ATTACKERS), "minutes": MINUTES},
    }
    for name, allowed in options.items():
        found = [option for option in allowed if str(option) == asked.get(name)]
        state[KEYS[name]] = found[0] if found else USUAL[name]
        if name in asked and not found:
            wrong.append(f"{name}={asked[name][:40]} is not known here; {USUAL[name]} is used instead.")
    seed = asked.get("seed", str(DEFAULT.seed))
    usable = bool(re.fullmatch("[0-9]{1,10}", seed)) and int(seed) <= LAST_SEED
    state[SEED] = int(seed) if usable else DEFAULT.seed
    if not usable:
        wrong.append(f"seed={seed[:40]} is no whole number from 0 to {LAST_SEED}; {DEFAULT.seed} is used instead.")
    given = asked.get("protection", NONE)
    state[KEYS["protection"]] = next(iter(known_keys([given], known)), NONE)
    if not known_keys([given], known):
        wrong.append(f"protection={given[:60]} is not known here; no protection is used instead.")
    return wrong


def write_url(question: Question, known: Catalog) -> None:
    """The question into the address, beside the runs that are shown."""
    told = {name: str(getattr(question, name)) for name, usual in USUAL.items() if getattr(question, name) != usual}
    if question.seed != DEFAULT.seed:
        told["seed"] = str(question.seed)
    if question.defenses:
        told["protection"] = key_of(question.defenses, known)
    kept = {"runs": st.query_params["runs"]} if "runs" in st.query_params else {}
    if st.query_params.to_dict() != {**told, **kept}:
        st.query_params.from_dict({**told, **kept})


def load(question: Question, known: Catalog) -> None:
    """A question into the widgets; call it before they are drawn."""
    for name in USUAL:
        st.session_state[KEYS[name]] = getattr(question, name)
    st.session_state[SEED] = question.seed
    st.session_state[KEYS["protection"]] = key_of(question.defenses, known)
