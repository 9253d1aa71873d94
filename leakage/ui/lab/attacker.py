"""Step 4 of the Lab as widgets: the attack, what the attacker knows, and whether it is naive or adaptive."""

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from leakage.data.images import gallery
from leakage.results.differences import sentence_case
from leakage.spec.catalog import Catalog, DefenseEntry
from leakage.spec.client_behavior import ClientBehavior
from leakage.spec.experiment import MAX_SECONDS, Assumptions, Part, Picture
from leakage.spec.lab_settings import ALONE, accomplice_of
from leakage.spec.threat_model import meaning
from leakage.spec.words import DIFFERENCE
from leakage.ui.common import forms
from leakage.ui.common.markdown import escape
from leakage.ui.lab.client_choice import has_batch_norm

STATISTICS: tuple[Literal["none", "running", "exact"], ...] = ("none", "running", "exact")


def choose_attack(known: Catalog, model: Part) -> tuple[Part, Assumptions]:
    """Draw the widgets for the attack and for what the attacker knows, and return both; the attacker is adaptive."""
    attack = forms.choose(known, "attack", "How the attacker rebuilds the picture")
    assert attack
    return attack, choose_granted(model)


def choose_granted(model: Part) -> Assumptions:
    """Draw the widgets for what the attacker knows, for the seed and the time limit; return what an adaptive attacker knows."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        labels = st.toggle(
            "Knows the labels",
            key="labels_known",
            persist_state=forms.KEPT,
            help="If this is off, the attacker does not know the classes (labels) of the pictures. It reads the classes from the "
            "gradient, or searches for the classes together with the pictures.",
        )
        with st.popover(
            "", icon=":material/tune:", help="Random start (seed), time limit, and what else the attacker knows", key="fine-run"
        ):
            statistics, examples = fine(model), choose_examples()
    return Assumptions(labels=labels, statistics=statistics, examples=examples)


def choose_attacker(known: Catalog, model: Part, behavior: ClientBehavior, defenses: Sequence[Part]) -> tuple[Part, Assumptions]:
    """Draw the widgets of the card "The attacker and what it knows", and return the attack and what the attacker knows.

    Args:
        known: The catalog of plug-ins.
        model: The model that is attacked; only models with BatchNorm have statistics that an attacker can know.
        behavior: What the client sends, for the sentence below the widgets.
        defenses: The protections, to which an adaptive attacker can choose a strategy.
    """
    attack, granted = choose_attack(known, model)
    chosen = st.segmented_control(
        "The attacker",
        list(forms.ADAPTIVE),
        default="true",
        required=True,
        format_func=forms.ADAPTIVE.__getitem__,
        key="adaptive",
        width="stretch",
        help=f"{DIFFERENCE} A protection that stops only the naive attacker protects nobody.",
    )
    adaptive, protections = chosen == "true", [known.defenses.get(part.id) for part in defenses]
    strategy = choose_strategy(protections) if adaptive else forms.USUAL
    accomplice = choose_accomplice(needed=adaptive and any(strategy in entry.strategies_with(colluding=True) for entry in protections))
    answers = [entry.strategy(strategy).description for entry in protections] if adaptive else None
    st.caption(escape(meaning(behavior, protections, known.attacks.get(attack.id), attack.fields, answers=answers)))
    return attack, granted.model_copy(update={"adaptive": adaptive, "strategy": strategy, "accomplice": accomplice})


def choose_strategy(protections: Sequence[DefenseEntry]) -> str:
    """Draw the menu of strategies against the protection and return the name of the choice; the default where there is no choice."""
    choices = {name: strategy for entry in protections for name, strategy in entry.strategies.items() if len(entry.strategies) > 1}
    if not choices:
        st.session_state.pop("counter", None)
        return forms.USUAL
    usual, *others = choices
    titles = {name: sentence_case(strategy.title) for name, strategy in choices.items()}
    titles[usual] += " (default)"
    options = [forms.USUAL, *others]
    if st.session_state.get("counter") not in options:
        st.session_state["counter"] = forms.USUAL
    return st.selectbox(
        "The attacker's countermeasure (adaptive strategy)",
        options,
        format_func=lambda name: titles[name or usual],
        key="counter",
        help="An attacker that knows a protection can have several strategies against it. Try each strategy: a protection is worth "
        "what it still achieves against the best strategy.",
    )


def choose_accomplice(*, needed: bool) -> Picture | None:
    """Draw the menu for the picture of the phone that works with the attacker, and return the choice.

    Where the attacker needs no other phone, return None and forget an earlier choice.
    """
    if not needed:
        st.session_state.pop("accomplice", None)
        return None
    options = forms.accomplice_options()
    titles = {ALONE: "The attacker is alone until you choose a picture", **{f"gallery:{item.id}": item.title for item in gallery()}}
    chosen = st.selectbox(
        "The other phone's picture (accomplice)",
        options,
        format_func=lambda name: titles.get(name, name),
        key="accomplice",
        help="Another phone of this federation works with the attacker, so the attacker knows the gradient of that phone in every round. "
        "The more the picture of that phone is like the private picture, the more it helps the attacker.",
    )
    return accomplice_of(chosen)


def choose_examples() -> bool:
    """Draw the switch "The attacker has other pictures of every class", and return whether it is on."""
    return st.toggle(
        "The attacker has other pictures of every class",
        key="examples",
        persist_state=forms.KEPT,
        help="If this is on, the attack begins with another picture of the class of the private picture. If not, it begins with a "
        "random picture. The attacker reads the class from the gradient, or knows it. The first picture is never the private picture. "
        "Look at the score of that first picture alone: the result of the attack must be better.",
    )


def fine(model: Part) -> Literal["none", "running", "exact"]:
    """Draw the widgets for seed and time limit, and for the BatchNorm statistics that the attacker knows; return the last choice.

    A model without BatchNorm has no such statistics: then return "none" and forget an earlier choice.
    """
    st.number_input(
        "Random start (seed)",
        0,
        2**31 - 1,
        forms.DEFAULT.seed,
        key="seed",
        persist_state=forms.KEPT,
        help="This number fixes all randomness: the numbers (weights) of the untrained model, the random numbers of a protection "
        "(noise), and the first guess.",
    )
    st.number_input(
        "Time limit (s)",
        1,
        MAX_SECONDS,
        forms.DEFAULT.max_seconds,
        key="max_seconds",
        persist_state=forms.KEPT,
        help="At this limit the attack stops and keeps the best picture so far. The limit covers all that the run computes, including the "
        "training on the phone.",
    )
    if not has_batch_norm(model.fields):
        st.session_state.pop("statistics", None)
        return "none"
    chosen = st.selectbox(
        "Averages from inside the network that the attacker knows (BatchNorm statistics)",
        STATISTICS,
        format_func=forms.STATISTICS.__getitem__,
        key="statistics",
        help="Parts of some networks (BatchNorm layers) keep averages (mean and variance) of what they compute from the pictures: a "
        "hint at what the pictures look like. Only some attacks use this hint. A phone does not send the averages of its own pictures. "
        "Choose the averages here to see what would follow if they leaked.",
    )
    return chosen or "none"
