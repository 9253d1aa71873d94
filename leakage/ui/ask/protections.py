"""Step 3 of the page Ask: choose a protection by its strength, or by its privacy budget (epsilon)."""

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

PROTECTION, EPSILON = "ask-protection", "ask-epsilon"  # widget keys
BY_EPSILON = "epsilon"  # the menu item that asks for a privacy budget
USUAL_EPSILON = 8.0
PRIVATE = "differential privacy"
ANSWERED = "The protection limits what an attacker can learn about a picture. The answer says how far (as a privacy budget, epsilon)."


def protection(question: Question, known: Catalog) -> Question:
    """Draw the menu of protections, and return the question with the chosen protection.

    Below the menu stands what the protection does, its differential privacy, and what was measured at this strength.
    """
    menu = _menu(known, st.session_state.get(PROTECTION, NONE))
    key = st.selectbox(
        "Protection", menu, format_func=menu.__getitem__, key=PROTECTION, persist_state=forms.KEPT, label_visibility="collapsed"
    )
    if key == BY_EPSILON:
        st.session_state.setdefault(EPSILON, USUAL_EPSILON)
        uploads = f"all {question.uploads:,} uploads" if question.uploads > 1 else "the one upload"
        label = f"Privacy budget (epsilon: a lower number protects more) after {uploads}"
        epsilon = st.number_input(label, 0.1, 200.0, step=1.0, key=EPSILON, persist_state=forms.KEPT)
        question = question.model_copy(update={"epsilon": float(epsilon), "defenses": (with_epsilon(float(epsilon), question, known),)})
    else:
        question = question.model_copy(update={"defenses": parse_key(key, known)})
    description, *facts = strength_words(question, known)
    st.caption(escape(in_words_of(question, description)))
    if facts:
        st.markdown("\n".join(f"- {escape(in_words_of(question, fact))}" for fact in facts))
    return question


def _menu(known: Catalog, chosen: str) -> dict[str, str]:
    """Return the menu, key to title: none, by epsilon, the strengths of the Lab's simple form, all others, the protection `chosen`."""
    strengths = {
        key_of((strength.defense,), known): f"{protection.title}, {name}"
        for protection in prepared().simple.protections.values()
        for name, strength in protection.strengths().items()
    }
    others = [key for key in (chosen,) if key != BY_EPSILON]
    names = short_names(known_keys([NONE, *strengths, *ready_made(known), *others], known), known)
    titles = {key: _with_strength(strengths[key], name) if key in strengths else name for key, name in names.items()}
    items = {key: f"{name} ({PRIVATE})" if _private(key, known) else name for key, name in titles.items()}
    return {
        NONE: items.pop(NONE),
        BY_EPSILON: "Random numbers (noise) that keep a chosen limit on what can be learned (privacy budget)",
        **items,
    }


def _with_strength(strength: str, name: str) -> str:
    """Return the name of a strength and its numbers, without repeating the title of the protection.

    >>> _with_strength("DP-SGD, weak", "DP-SGD, noise multiplier 0.01"), _with_strength("Noise, weak", "Gaussian noise 0.001")
    ('DP-SGD, weak: noise multiplier 0.01', 'Noise, weak: Gaussian noise 0.001')
    """
    title = strength.rpartition(", ")[0]
    return f"{strength}: {name.removeprefix(f'{title}, ')}"


def _private(key: str, known: Catalog) -> bool:
    return any(known.defenses.get(part.id).private for part in parse_key(key, known))


def strength_words(question: Question, known: Catalog) -> list[str]:
    """Describe the chosen protection in sentences: what it does and its strength, its differential privacy, what was measured of it."""
    if not question.defenses:
        return ["Without a protection the phone sends its update as it is."]
    does = [known.defenses.get(part.id).plain for part in question.defenses]
    strength = f"Strength: {protection_words(question.defenses, known)}."
    return [" ".join([*does, strength]), f"{_promised(question, known)}.", *_measured(question, known)]


def _promised(question: Question, known: Catalog) -> str:
    """Return what differential privacy the protection gives, as a sentence without its full stop."""
    if promise := promise_before(question, known):
        return f"Differential privacy: {sentence(promise, question.uploads)}"
    private = any(known.defenses.get(part.id).private for part in question.defenses)
    return f"Differential privacy: {ANSWERED if private else NONE_PROMISED[:1].lower() + NONE_PROMISED[1:]}".rstrip(".")


def _measured(question: Question, known: Catalog) -> list[str]:
    """Return what the best attacker of the precomputed results saw at this strength, as at most one sentence."""
    try:
        experiment = groups(question.model_copy(update={"who": "faces"} if question.who == "own" else {}))[0]
    except SpecError:
        experiment = Experiment(defenses=question.defenses)
    results = nearest(experiment, known)
    lines = [line for line in results.lines if same_stack(line.stack, question.defenses, known)]
    if not lines:
        return ["The protection was not measured beforehand at this strength."]
    cells = [cell for duel in lines[0].duels.values() for cell in (duel.naive, duel.best) if cell and "psnr" in cell]
    if not cells or results.scene is None:
        return []
    best = max(cells, key=reach)
    attacker = next((candidate for candidate in results.attackers.values() if candidate.cell is best), None)
    attacked_by = f", by {_attack_words(attacker, results.scene, known)}" if attacker else ""
    return [f"Measured beforehand at this strength ({results.scene.title.lower()}): {seen_words(best)}{attacked_by}."]


def _attack_words(attacker: Attacker, scene: MeasuredScene, known: Catalog) -> str:
    """Return the short name of a precomputed result's attack, and over how many rounds it averages, if it averages."""
    rounds = f" over {scene.recipe['watched']} rounds" if attacker.strategy in averaging(known) else ""
    return f"{known.attacks.get(attacker.attack.id).short}{rounds}"
