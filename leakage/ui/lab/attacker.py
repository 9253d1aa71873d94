"""Step 4: what the attacker is granted, and whether it imitates the phone or takes what arrives for a plain gradient."""

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from leakage.data.images import gallery
from leakage.results.differences import sentence_case
from leakage.spec.catalog import Catalog, DefenseEntry
from leakage.spec.experiment import MAX_SECONDS, Assumptions, Part, Picture
from leakage.spec.lab_settings import ALONE, accomplice_of
from leakage.spec.threat_model import ClientBehavior, meaning
from leakage.spec.words import DIFFERENCE
from leakage.ui.common import forms
from leakage.ui.common.markdown import escape
from leakage.ui.lab.client_choice import has_batch_norm

STATISTICS: tuple[Literal["none", "running", "exact"], ...] = ("none", "running", "exact")


def choose_attack(known: Catalog, model: Part) -> tuple[Part, Assumptions]:
    """How it reconstructs, and what it is granted, as widgets; an adaptive attacker."""
    attack = forms.choose(known, "attack", "How the attacker reconstructs")
    assert attack
    return attack, choose_granted(model)


def choose_granted(model: Part) -> Assumptions:
    """What an attacker is granted, and seed and time limit, as widgets; an adaptive attacker."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        labels = st.toggle(
            "Knows the labels",
            key="labels_known",
            persist_state=forms.KEPT,
            help="Off: the attacker reads the classes from the gradient, or searches them together with the pictures.",
        )
        with st.popover("", icon=":material/tune:", help="Seed, time limit, and what else it knows", key="fine-run"):
            statistics, examples = fine(model), choose_examples()
    return Assumptions(labels=labels, statistics=statistics, examples=examples)


def choose_attacker(known: Catalog, model: Part, behavior: ClientBehavior, defenses: Sequence[Part]) -> tuple[Part, Assumptions]:
    """The fourth step as widgets."""
    attack, granted = choose_attack(known, model)
    chosen = st.segmented_control(
        "The attacker",
        list(forms.ADAPTIVE),
        default="true",
        required=True,
        format_func=forms.ADAPTIVE.__getitem__,
        key="adaptive",
        width="stretch",
        help=f"{DIFFERENCE} A protection that stops only the naive attacker is none.",
    )
    adaptive, protections = chosen == "true", [known.defenses.get(part.id) for part in defenses]
    strategy = choose_strategy(protections) if adaptive else forms.USUAL
    accomplice = choose_accomplice(needed=adaptive and any(strategy in entry.strategies_with(colluding=True) for entry in protections))
    answers = [entry.strategy(strategy).description for entry in protections] if adaptive else None
    st.caption(escape(meaning(behavior, protections, known.attacks.get(attack.id), attack.fields, answers=answers)))
    return attack, granted.model_copy(update={"adaptive": adaptive, "strategy": strategy, "accomplice": accomplice})


def choose_strategy(protections: Sequence[DefenseEntry]) -> str:
    """What the adaptive attacker does about the protection, where it has a choice."""
    choices = {name: own for entry in protections for name, own in entry.strategies.items() if len(entry.strategies) > 1}
    if not choices:
        st.session_state.pop("counter", None)
        return forms.USUAL
    usual, *others = choices
    titles = {name: sentence_case(own.title) for name, own in choices.items()}
    titles[usual] += " (default)"
    options = [forms.USUAL, *others]
    if st.session_state.get("counter") not in options:
        st.session_state["counter"] = forms.USUAL
    return st.selectbox(
        "The attacker's countermeasure (adaptive strategy)",
        options,
        format_func=lambda name: titles[name or usual],
        key="counter",
        help="Who knows a protection can do several things about it. Try each: it is worth what is left against the best of them.",
    )


def choose_accomplice(*, needed: bool) -> Picture | None:
    """The picture of the phone that works with the attacker; none, and none is kept, where the attacker needs nobody."""
    if not needed:
        st.session_state.pop("accomplice", None)
        return None
    options = forms.accomplice_options()
    titles = {ALONE: "Nobody yet: choose its picture", **{f"gallery:{item.id}": item.title for item in gallery()}}
    chosen = st.selectbox(
        "The other phone's picture (accomplice)",
        options,
        format_func=lambda name: titles.get(name, name),
        key="accomplice",
        help="Another phone of this federation works with the attacker, who so knows its gradient in every round. "
        "The more its picture is like the private one, the better.",
    )
    return accomplice_of(chosen)


def choose_examples() -> bool:
    """Whether it owns other pictures of every class."""
    return st.toggle(
        "Owns other pictures of every class",
        key="examples",
        persist_state=forms.KEPT,
        help="Searches that start from a random picture then start from another one of the class that they read or were granted. "
        "It is never the private picture. Look at what that picture alone would score: a guess must be better.",
    )


def fine(model: Part) -> Literal["none", "running", "exact"]:
    """Seed and time limit; and what it is granted of BatchNorm, where the model has it."""
    st.number_input(
        "Random start (seed)",
        0,
        2**31 - 1,
        forms.DEFAULT.seed,
        key="seed",
        persist_state=forms.KEPT,
        help="Fixes all randomness: weights, noise, first guess.",
    )
    st.number_input(
        "Time limit (s)",
        1,
        MAX_SECONDS,
        forms.DEFAULT.max_seconds,
        key="max_seconds",
        persist_state=forms.KEPT,
        help="Then the best so far is kept. It covers all that the run computes, the training of the phone too.",
    )
    if not has_batch_norm(model.fields):
        st.session_state.pop("statistics", None)
        return "none"
    chosen = st.selectbox(
        "BatchNorm statistics it knows",
        STATISTICS,
        format_func=forms.STATISTICS.__getitem__,
        key="statistics",
        help="Mean and variance of what enters each BatchNorm layer: a hint at what the pictures look like. Only some attacks use it. "
        "Exactly those of the batch is more than a phone sends by itself: what it would mean if they leaked.",
    )
    return chosen or "none"
