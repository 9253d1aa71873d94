"""The question of the page Ask as widgets in five steps; their values are kept in the address."""

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
from leakage.ui.common.markdown import escape, ours
from leakage.ui.lab.chooser import all_grey, uploaded

OWN = "own"
DEFAULT = Question()
SEED = "ask-seed"  # session key: the seed of a question from a file; no widget chooses it
CHOICES: dict[str, Sequence[Any]] = {  # name in the address -> allowed values; those of the kind of pictures are in prepared()
    **{"called": CALLED, "phones": CLIENTS, "each": COUNTS, "steps": list(STEPS)},
    **{"attacker": list(ATTACKERS), "checked": (False, True), "minutes": MINUTES},
}
NUMBERS = {"colluding": (0, max(CLIENTS) - 1), "rounds": (1, MOST_ROUNDS), "seed": (0, LAST_SEED)}  # name in the address -> lowest, highest
FIELDS = {"phones": "clients", "checked": "checks"}  # name in the address -> field of the question, if they differ
USUAL = {name: getattr(DEFAULT, FIELDS.get(name, name)) for name in ("who", *CHOICES, "colluding", "rounds")}
CHECKS = "The phones check the model first, and send nothing if a check raises an alarm"
CHECKS_HELP = (
    "Each check computes one number, and raises an alarm if the number is above a threshold. These are the checks that stayed silent with "
    "an honest server, on the networks of this program. A check is not a proof: another change of the model may pass it."
)
KEYS = {name: f"ask-{name}" for name in USUAL}  # name in the address -> widget key


def choose(known: Catalog) -> tuple[Question, list[Picture]]:
    """Draw the five cards of the question, and return the question and the pictures that the visitor uploaded for it."""
    with forms.card(1, "Whose pictures?"):
        kind = _segments("who", list(_kinds()), _kinds().__getitem__, label="Whose pictures?")
        uploads = [Picture(source="upload", id=item.id, label=item.label) for item in uploaded()] if kind == OWN else []
        faces = st.container()
    with forms.card(2, "How are the updates sent?"):
        called = _segments("called", CALLED, str.capitalize, label="Who takes part?", shown=True)
        summed = f"Number of {called} whose updates are added up (secure aggregation)"
        clients = _segments("phones", CLIENTS, str, label=summed, shown=True)
        colluding = _colluding(called, clients)
        each = _segments("each", COUNTS, str, label=f"Pictures of each {called[:-1]} in one update", shown=True)
        steps = st.radio(
            escape(f"What a {called[:-1]} does before it sends an update"),
            list(STEPS),
            format_func=STEPS.__getitem__,
            key=KEYS["steps"],
            persist_state=forms.KEPT,
        )
        label = f"How often each {called[:-1]} sends an update in the whole training"
        rounds = st.number_input(escape(label), 1, MOST_ROUNDS, key=KEYS["rounds"], persist_state=forms.KEPT)
    values: dict[str, Any] = {"who": kind, "called": called, "clients": clients, "colluding": colluding, "each": each, "steps": steps}
    values |= {"rounds": int(rounds), "channels": 1 if uploads and all_grey(uploads) else 3}
    with forms.card(3, "Which protection, and how strong?"):
        with_protection = protection(Question(**values, attacker=_attacker()), known)
    with forms.card(4, "Who attacks?"):
        attacker = st.radio(
            "Who attacks?",
            list(ATTACKERS),
            format_func=lambda name: escape(_attacker_words(name, called)),
            key=KEYS["attacker"],
            persist_state=forms.KEPT,
            label_visibility="collapsed",
        )
        checks = attacker == "changes" and _checks(called, known)
    with forms.card(5, "How much effort?"):
        minutes = _segments("minutes", MINUTES, lambda number: f"{number:d} min", label="Minutes")
    rest = {"attacker": attacker, "checks": checks, "minutes": minutes, "seed": st.session_state.get(SEED, DEFAULT.seed)}
    question = with_protection.model_copy(update=rest)
    if kind != OWN:
        _thumbnails(question, faces)
    return question, uploads


def _attacker() -> Attacker:
    """Return the name of the chosen attacker before its widget is drawn.

    The menu's titles change with the word for clients (phones, clinics, sites). The browser may still send a title with the previous
    word, and Streamlit passes on a title that is not in the menu. Such a title is mapped to the attacker's name.
    """
    key, chosen = KEYS["attacker"], st.session_state[KEYS["attacker"]]
    if chosen not in ATTACKERS:
        names = [name for name in ATTACKERS for called in CALLED if escape(_attacker_words(name, called)) == chosen]
        st.session_state[key] = names[0] if names else DEFAULT.attacker
    attacker: Attacker = st.session_state[key]
    return attacker


def _attacker_words(name: Attacker, called: Called) -> str:
    return in_words_of(Question(called=called), ATTACKERS[name])


def _segments(name: str, options: Sequence[Any], title_of: Callable[[Any], str], *, label: str, shown: bool = False) -> Any:
    """Draw a few options side by side, and return the chosen option."""
    return st.segmented_control(
        escape(label),
        options,
        required=True,
        format_func=lambda option: escape(title_of(option)),
        key=KEYS[name],
        persist_state=forms.KEPT,
        label_visibility="visible" if shown else "collapsed",
    )


def _colluding(called: str, clients: int) -> int:
    """Ask how many clients of the sum work with the server, and return the number; return 0 without asking if there is no sum."""
    if clients == 1:
        return 0
    st.session_state[KEYS["colluding"]] = min(st.session_state.get(KEYS["colluding"], 0), clients - 1)
    label = f"{called.capitalize()} in the sum that work with the server"
    return int(st.number_input(escape(label), 0, clients - 1, key=KEYS["colluding"], persist_state=forms.KEPT))


def _checks(called: Called, known: Catalog) -> bool:
    """Ask whether the clients check the model that they receive, and return the answer."""
    words = Question(called=called, attacker="changes", checks=True)
    label, about = (in_words_of(words, text) for text in (CHECKS, CHECKS_HELP))
    more = "\n".join(f"- {ours(entry.title)}" for part in words.checked if (entry := known.checks.find(part.id)))
    return st.toggle(escape(label), key=KEYS["checked"], persist_state=forms.KEPT, help=f"{escape(about)}\n\n{more}")


def _kinds() -> dict[str, str]:
    return {**{name: kind.title for name, kind in prepared().ask.kinds.items()}, OWN: "Your own"}


def _thumbnails(question: Question, container: Any) -> None:
    """Draw the pictures of the first group of people."""
    try:
        pictures = groups(question)[0].pictures
    except SpecError:
        return
    items = [find(picture.source, picture.id) for picture in pictures]
    container.html(render("ui/ask/thumbnails.html.jinja", pictures=[(thumbnail(item), item.alt) for item in items]))
    if strangers_shown := strangers(question):
        container.caption(f"{strangers_shown:d} of these pictures are of other kinds: this program has too few pictures of this kind.")


# ---------------------------------------------------------------- in the address


def read_url(known: Catalog) -> list[str]:
    """Set the widgets from the address on a visitor's first run, or to their defaults.

    Returns:
        A sentence for each value of the address that cannot be used.
    """
    state, address, problems = st.session_state, st.query_params, list[str]()
    for name, allowed in {"who": list(_kinds()), **CHOICES}.items():
        matching = [option for option in allowed if str(option) == address.get(name)]
        state[KEYS[name]] = matching[0] if matching else USUAL[name]
        if name in address and not matching:
            problems.append(f"{name}={address[name][:40]} is not known here; {USUAL[name]} is used instead.")
    for name, (low, high) in NUMBERS.items():
        usual = getattr(DEFAULT, name)
        text = address.get(name, str(usual))
        usable = bool(re.fullmatch("[0-9]{1,10}", text)) and low <= int(text) <= high
        state[KEYS.get(name, SEED)] = int(text) if usable else usual
        if not usable:
            problems.append(f"{name}={text[:40]} is no whole number from {low} to {high}; {usual} is used instead.")
    return problems + _read_protection(known)


def _read_protection(known: Catalog) -> list[str]:
    """Set the protection, or the privacy budget (epsilon), from the address; return a sentence for each value that cannot be used."""
    state, address, problems = st.session_state, st.query_params, list[str]()
    key = address.get("protection", NONE)
    state[PROTECTION] = next(iter(known_keys([key], known)), NONE)
    if not known_keys([key], known):
        problems.append(f"protection={key[:60]} is not known here; no protection is used instead.")
    if "epsilon" in address:
        text = address["epsilon"]
        usable = bool(re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3})?", text)) and 0 < float(text) <= 200
        if usable:
            state[PROTECTION], state[EPSILON] = BY_EPSILON, float(text)
        else:
            problems.append(f"epsilon={text[:40]} is no number above 0 and up to 200; no protection is used instead.")
    return problems


def write_url(question: Question, known: Catalog) -> None:
    """Write the question into the address, beside the ids of the runs that are shown."""
    values = {name: getattr(question, FIELDS.get(name, name)) for name in USUAL}
    changed = {name: str(value) for name, value in values.items() if value != USUAL[name]}
    if question.seed != DEFAULT.seed:
        changed["seed"] = str(question.seed)
    if question.epsilon:
        changed["epsilon"] = f"{question.epsilon:g}"
    elif question.defenses:
        changed["protection"] = key_of(question.defenses, known)
    kept = {"runs": st.query_params["runs"]} if "runs" in st.query_params else {}
    if st.query_params.to_dict() != {**changed, **kept}:
        st.query_params.from_dict({**changed, **kept})


def load(question: Question, known: Catalog) -> None:
    """Set the widgets to a question. Call it before the widgets are drawn."""
    for name in USUAL:
        st.session_state[KEYS[name]] = getattr(question, FIELDS.get(name, name))
    st.session_state[SEED] = question.seed
    st.session_state[PROTECTION] = BY_EPSILON if question.epsilon else key_of(question.defenses, known)
    if question.epsilon:
        st.session_state[EPSILON] = question.epsilon
