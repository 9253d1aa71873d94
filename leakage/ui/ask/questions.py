"""The question as widgets, in the order in which somebody would tell it, kept in the address."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from leakage.data.images import find, thumbnail
from leakage.frontend.markup import render
from leakage.results.defense_keys import key_of, known_keys
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Picture, SpecError
from leakage.spec.lab_settings import NONE
from leakage.spec.prepared import prepared
from leakage.spec.question import (
    ATTACKERS,
    CALLED,
    CLIENTS,
    COUNTS,
    LAST_SEED,
    MINUTES,
    MOST_ROUNDS,
    STEPS,
    Attacker,
    Called,
    Question,
    groups,
    in_words_of,
    strangers,
)
from leakage.ui.ask.protections import BY_EPSILON, EPSILON, PROTECTION, protection
from leakage.ui.common import forms
from leakage.ui.common.markdown import escape
from leakage.ui.lab.chooser import all_grey, uploaded

OWN = "own"
DEFAULT = Question()
SEED = "ask-seed"  # of a question from a file
CHOICES: dict[str, Sequence[Any]] = {  # of the address, by name; those of `who` come from prepared()
    **{"called": CALLED, "phones": CLIENTS, "each": COUNTS, "steps": list(STEPS)},
    **{"attacker": list(ATTACKERS), "minutes": MINUTES},
}
NUMBERS = {"colluding": (0, max(CLIENTS) - 1), "rounds": (1, MOST_ROUNDS), "seed": (0, LAST_SEED)}  # whole numbers of the address: from, to
FIELDS = {"phones": "clients"}  # name in the address -> field of the question, where they differ
USUAL = {name: getattr(DEFAULT, FIELDS.get(name, name)) for name in ("who", *CHOICES, "colluding", "rounds")}
KEYS = {name: f"ask-{name}" for name in USUAL}  # of the widgets, by their name in the address


def choose(known: Catalog) -> tuple[Question, list[Picture]]:
    """The question, and the pictures that were uploaded for it."""
    with forms.card(1, "Whose pictures?"):
        who = _segments("who", list(_kinds()), _kinds().__getitem__, label="Whose pictures?")
        own = _own() if who == OWN else []
        faces = st.container()
    with forms.card(2, "How are they sent?"):
        called = _segments("called", CALLED, str.capitalize, label="Who takes part?", shown=True)
        summed = f"{called.capitalize()} whose updates are added up (secure aggregation)"
        clients = _segments("phones", CLIENTS, str, label=summed, shown=True)
        colluding = _colluding(called, clients)
        each = _segments("each", COUNTS, str, label=f"Pictures of each {called[:-1]} in one update", shown=True)
        steps = st.radio(
            escape(f"What a {called[:-1]} does first"),
            list(STEPS),
            format_func=STEPS.__getitem__,
            key=KEYS["steps"],
            persist_state=forms.KEPT,
        )
        uploads = f"Uploads of each {called[:-1]} in the whole training"
        rounds = st.number_input(escape(uploads), 1, MOST_ROUNDS, key=KEYS["rounds"], persist_state=forms.KEPT)
    told: dict[str, Any] = {"who": who, "called": called, "clients": clients, "colluding": colluding, "each": each, "steps": steps}
    told |= {"rounds": int(rounds), "channels": 1 if own and all_grey(own) else 3}
    with forms.card(3, "Which protection, and how strong?"):
        protected = protection(Question(**told, attacker=_attacker()), known)
    with forms.card(4, "Who attacks?"):
        attacker = st.radio(
            "Who attacks?",
            list(ATTACKERS),
            format_func=lambda name: escape(_attacker_words(name, called)),
            key=KEYS["attacker"],
            persist_state=forms.KEPT,
            label_visibility="collapsed",
        )
    with forms.card(5, "How much effort?"):
        minutes = _segments("minutes", MINUTES, lambda number: f"{number:d} min", label="Minutes")
    given = {"attacker": attacker, "minutes": minutes, "seed": st.session_state.get(SEED, DEFAULT.seed)}
    question = protected.model_copy(update=given)
    if who != OWN:
        _thumbnails(question, faces)
    return question, own


def _attacker() -> Attacker:
    """The attacker that was chosen, by name, before its widget is drawn.

    While phones become clinics, the browser may still send the words of before: Streamlit passes them on as they are.
    """
    key, chosen = KEYS["attacker"], st.session_state[KEYS["attacker"]]
    if chosen not in ATTACKERS:
        meant = [name for name in ATTACKERS for called in CALLED if escape(_attacker_words(name, called)) == chosen]
        st.session_state[key] = meant[0] if meant else DEFAULT.attacker
    found: Attacker = st.session_state[key]
    return found


def _attacker_words(name: Attacker, called: Called) -> str:
    return in_words_of(Question(called=called), ATTACKERS[name])


def _segments(name: str, options: Sequence[Any], words: Callable[[Any], str], *, label: str, shown: bool = False) -> Any:
    """One choice of a few, side by side."""
    return st.segmented_control(
        escape(label),
        options,
        required=True,
        format_func=lambda option: escape(words(option)),
        key=KEYS[name],
        persist_state=forms.KEPT,
        label_visibility="visible" if shown else "collapsed",
    )


def _colluding(called: str, clients: int) -> int:
    """How many of the sum work with the server; asked only where there is a sum."""
    if clients == 1:
        return 0
    st.session_state[KEYS["colluding"]] = min(st.session_state.get(KEYS["colluding"], 0), clients - 1)
    label = f"{called.capitalize()} among them that work with the server"
    return int(st.number_input(escape(label), 0, clients - 1, key=KEYS["colluding"], persist_state=forms.KEPT))


def _kinds() -> dict[str, str]:
    return {**{name: kind.title for name, kind in prepared().ask.kinds.items()}, OWN: "Your own"}


def _own() -> list[Picture]:
    return [Picture(source="upload", id=item.id, label=item.label) for item in uploaded()]


def _thumbnails(question: Question, place: Any) -> None:
    """The pictures of the first group of people."""
    try:
        pictures = groups(question)[0].pictures
    except SpecError:
        return
    items = [find(picture.source, picture.id) for picture in pictures]
    place.html(render("ui/ask/thumbnails.html.jinja", pictures=[(thumbnail(item), item.alt) for item in items]))
    if others := strangers(question):
        place.caption(f"{others:d} of these are of other kinds: this program has too few of this one.")


# ---------------------------------------------------------------- in the address


def read_url(known: Catalog) -> list[str]:
    """On a visitor's first run the widgets take their values from the address, or the usual ones; what cannot be used is named."""
    state, asked, wrong = st.session_state, st.query_params, list[str]()
    for name, allowed in {"who": list(_kinds()), **CHOICES}.items():
        found = [option for option in allowed if str(option) == asked.get(name)]
        state[KEYS[name]] = found[0] if found else USUAL[name]
        if name in asked and not found:
            wrong.append(f"{name}={asked[name][:40]} is not known here; {USUAL[name]} is used instead.")
    for name, (low, high) in NUMBERS.items():
        usual = getattr(DEFAULT, name)
        given = asked.get(name, str(usual))
        usable = bool(re.fullmatch("[0-9]{1,10}", given)) and low <= int(given) <= high
        state[KEYS.get(name, SEED)] = int(given) if usable else usual
        if not usable:
            wrong.append(f"{name}={given[:40]} is no whole number from {low} to {high}; {usual} is used instead.")
    return wrong + _read_protection(known)


def _read_protection(known: Catalog) -> list[str]:
    """The protection of the address, or the epsilon by which one is asked for."""
    state, asked, wrong = st.session_state, st.query_params, list[str]()
    given = asked.get("protection", NONE)
    state[PROTECTION] = next(iter(known_keys([given], known)), NONE)
    if not known_keys([given], known):
        wrong.append(f"protection={given[:60]} is not known here; no protection is used instead.")
    if "epsilon" in asked:
        text = asked["epsilon"]
        usable = bool(re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3})?", text)) and 0 < float(text) <= 200
        if usable:
            state[PROTECTION], state[EPSILON] = BY_EPSILON, float(text)
        else:
            wrong.append(f"epsilon={text[:40]} is no number above 0 and up to 200; no protection is used instead.")
    return wrong


def write_url(question: Question, known: Catalog) -> None:
    """The question into the address, beside the runs that are shown."""
    asked = {name: getattr(question, FIELDS.get(name, name)) for name in USUAL}
    told = {name: str(value) for name, value in asked.items() if value != USUAL[name]}
    if question.seed != DEFAULT.seed:
        told["seed"] = str(question.seed)
    if question.epsilon:
        told["epsilon"] = f"{question.epsilon:g}"
    elif question.defenses:
        told["protection"] = key_of(question.defenses, known)
    kept = {"runs": st.query_params["runs"]} if "runs" in st.query_params else {}
    if st.query_params.to_dict() != {**told, **kept}:
        st.query_params.from_dict({**told, **kept})


def load(question: Question, known: Catalog) -> None:
    """A question into the widgets; call it before they are drawn."""
    for name in USUAL:
        st.session_state[KEYS[name]] = getattr(question, FIELDS.get(name, name))
    st.session_state[SEED] = question.seed
    st.session_state[PROTECTION] = BY_EPSILON if question.epsilon else key_of(question.defenses, known)
    if question.epsilon:
        st.session_state[EPSILON] = question.epsilon
