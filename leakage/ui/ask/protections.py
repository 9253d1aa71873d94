"""Step 3 of the page Ask: a protection by its strength, or by the privacy budget (epsilon) that it is to keep."""

import streamlit as st

from leakage.results.answer_words import protection_words
from leakage.results.defense_keys import key_of, known_keys, parse_key, ready_made, short_names
from leakage.results.nearest import Attacker, nearest
from leakage.results.precomputed import MeasuredScene, reach, same_stack, seen_words
from leakage.results.promise import NONE_PROMISED, promise_before, sentence, with_epsilon
from leakage.results.worst_case import averaging
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError
from leakage.spec.lab_settings import NONE
from leakage.spec.prepared import prepared
from leakage.spec.question import Question, groups, in_words_of
from leakage.ui.common import forms
from leakage.ui.common.markdown import escape

PROTECTION, EPSILON = "ask-protection", "ask-epsilon"  # keys of the widgets
BY_EPSILON = "epsilon"  # the line of the menu that asks for a budget
USUAL_EPSILON = 8.0
PRIVATE = "differential privacy"
ANSWERED = "It promises differential privacy; the answer states epsilon."


def protection(question: Question, known: Catalog) -> Question:
    """The question with the protection that was chosen, and below the menu what that strength does and promises."""
    menu = _menu(known, st.session_state.get(PROTECTION, NONE))
    key = st.selectbox(
        "Protection", menu, format_func=menu.__getitem__, key=PROTECTION, persist_state=forms.KEPT, label_visibility="collapsed"
    )
    if key == BY_EPSILON:
        st.session_state.setdefault(EPSILON, USUAL_EPSILON)
        uploads = f"all {question.uploads:,} uploads" if question.uploads > 1 else "the one upload"
        epsilon = st.number_input(f"Epsilon after {uploads}", 0.1, 200.0, step=1.0, key=EPSILON, persist_state=forms.KEPT)
        question = question.model_copy(update={"epsilon": float(epsilon), "defenses": (with_epsilon(float(epsilon), question, known),)})
    else:
        question = question.model_copy(update={"defenses": parse_key(key, known)})
    does, *found = strength_words(question, known)
    st.caption(escape(in_words_of(question, does)))
    if found:
        st.markdown("\n".join(f"- {escape(in_words_of(question, words))}" for words in found))
    return question


def _menu(known: Catalog, chosen: str) -> dict[str, str]:
    """A budget; the protections that the simple form of the Lab offers, weak to strong; then all others, and the chosen one."""
    strengths = {
        key_of((strength.defense,), known): f"{protection.title}, {name}"
        for protection in prepared().simple.protections.values()
        for name, strength in protection.strengths().items()
    }
    others = [key for key in (chosen,) if key != BY_EPSILON]
    names = short_names(known_keys([NONE, *strengths, *ready_made(known), *others], known), known)
    words = {key: _with_strength(strengths[key], name) if key in strengths else name for key, name in names.items()}
    found = {key: f"{name} ({PRIVATE})" if _private(key, known) else name for key, name in words.items()}
    return {NONE: found.pop(NONE), BY_EPSILON: "By epsilon (differential privacy)", **found}


def _with_strength(strength: str, name: str) -> str:
    """A strength and its numbers, the title once.

    >>> _with_strength("DP-SGD, weak", "DP-SGD, noise multiplier 0.01"), _with_strength("Noise, weak", "Gaussian noise 0.001")
    ('DP-SGD, weak: noise multiplier 0.01', 'Noise, weak: Gaussian noise 0.001')
    """
    title = strength.rpartition(", ")[0]
    return f"{strength}: {name.removeprefix(f'{title}, ')}"


def _private(key: str, known: Catalog) -> bool:
    return any(known.defenses.get(part.id).private for part in parse_key(key, known))


def strength_words(question: Question, known: Catalog) -> list[str]:
    """What the chosen strength does: the protections with their numbers; then what they promise, and what was measured of them."""
    if not question.defenses:
        return ["What leaves the phone is sent as it is."]
    does = [known.defenses.get(part.id).plain for part in question.defenses]
    strength = f"Strength: {protection_words(question.defenses, known)}."
    return [" ".join([*does, strength]), f"{_promised(question, known)}.", *_measured(question, known)]


def _promised(question: Question, known: Catalog) -> str:
    """The figures of differential privacy of this strength."""
    if found := promise_before(question, known):
        return f"Differential privacy: {sentence(found, question.uploads)}"
    private = any(known.defenses.get(part.id).private for part in question.defenses)
    return f"Differential privacy: {ANSWERED if private else NONE_PROMISED[:1].lower() + NONE_PROMISED[1:]}".rstrip(".")


def _measured(question: Question, known: Catalog) -> list[str]:
    """What the best attacker of the precomputed results saw at this very strength; nothing where that was not measured."""
    try:
        asked = groups(question.model_copy(update={"who": "faces"} if question.who == "own" else {}))[0]
    except SpecError:
        asked = Experiment(defenses=question.defenses)
    rows = nearest(asked, known)
    own = [line for line in rows.lines if same_stack(line.stack, question.defenses, known)]
    if not own:
        return ["This strength was not measured beforehand."]
    cells = [cell for duel in own[0].duels.values() for cell in (duel.naive, duel.best) if cell and "psnr" in cell]
    if not cells or rows.scene is None:
        return []
    best = max(cells, key=reach)
    attacker = next((one for one in rows.attackers.values() if one.cell is best), None)
    by = f", by {_attack_words(attacker, rows.scene, known)}" if attacker else ""
    return [f"Measured beforehand at this strength ({rows.scene.title.lower()}): {seen_words(best)}{by}."]


def _attack_words(attacker: Attacker, scene: MeasuredScene, known: Catalog) -> str:
    """The attack of a precomputed result, and over how many rounds where several were put together."""
    rounds = f" over {scene.recipe['watched']} rounds" if attacker.who in averaging(known) else ""
    return f"{known.attacks.get(attacker.attack.id).short}{rounds}"
