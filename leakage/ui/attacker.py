"""Step 4: what the attacker is granted, and whether it imitates the phone or takes what arrives for a plain gradient."""

from collections.abc import Sequence
from typing import Any, Literal

import streamlit as st

from leakage.catalog import Catalog, Entry
from leakage.spec import MAX_SECONDS, Assumptions, Part
from leakage.ui import forms
from leakage.ui.setting import Doing, counted, has_batch_norm

STATISTICS: tuple[Literal["none", "running", "exact"], ...] = ("none", "running", "exact")
MISTAKES = {  # of the naive attacker who imitates a FedADMM client: the field that repairs it -> in words
    "repair_state": "its imitation goes on where the last one ended instead of starting afresh",
    "repair_scale": "it compares what was sent with a gradient",
}


def choose_attack(known: Catalog, model: Part) -> tuple[Part, Assumptions]:
    """How it reconstructs, and what it is granted, as widgets; an adaptive attacker."""
    attack = forms.choose(known, "attack", "How the server reconstructs")
    assert attack
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        labels = st.toggle(
            "Knows the labels",
            key="labels_known",
            bind="query-params",
            help="Off: the attacker reads the classes from the gradient, or searches them together with the pictures.",
        )
        with st.popover("", icon=":material/tune:", help="Seed, time limit, and what else it knows", key="fine-run"):
            statistics = fine(model)
    return attack, Assumptions(labels=labels, statistics=statistics)


def choose_attacker(known: Catalog, model: Part, doing: Doing, defenses: Sequence[Part]) -> tuple[Part, Assumptions]:
    """The fourth step as widgets."""
    attack, granted = choose_attack(known, model)
    chosen = st.segmented_control(
        "How it reads what arrives",
        list(forms.ADAPTIVE),
        default="true",
        required=True,
        format_func=forms.ADAPTIVE.__getitem__,
        key="adaptive",
        width="stretch",
        help="Adaptive: it knows what the phone does, and imitates that. Naive: it takes what arrives for a plain gradient. A protection "
        "that stops only the naive attacker is none.",
    )
    adaptive, protections = chosen == "true", [known.get("defense", part.id) for part in defenses]
    st.caption(meaning(doing, protections, known.get("attack", attack.id), attack.fields, adaptive=adaptive))
    return attack, granted.model_copy(update={"adaptive": adaptive})


def fine(model: Part) -> Literal["none", "running", "exact"]:
    """Seed and time limit; and what it is granted of BatchNorm, where the model has it."""
    st.number_input(
        "Seed", 0, 2**31 - 1, forms.DEFAULT.seed, key="seed", bind="query-params", help="Fixes all chance: weights, noise, first guess."
    )
    st.number_input(
        "Time limit (s)",
        1,
        MAX_SECONDS,
        forms.DEFAULT.max_seconds,
        key="max_seconds",
        bind="query-params",
        help="Then the best so far is kept.",
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


def meaning(doing: Doing, protections: Sequence[Entry], attack: Entry, fields: dict[str, Any], *, adaptive: bool) -> str:
    """What being adaptive, or naive, amounts to for this protocol, this protection and this attack."""
    return f"Adaptive: {_adaptive(doing, protections)}" if adaptive else f"Naive: {_naive(doing, protections, attack, fields)}"


def _adaptive(doing: Doing, protections: Sequence[Entry]) -> str:
    if doing.plain and doing.phones == 1 and not protections:
        return "it computes what the phone computes. The phone sends a plain gradient, so a naive attacker would do the same."
    each = " of each phone" if doing.phones > 1 else ""
    steps = counted(doing.steps or 0, "local step") if doing.steps != 1 else "the one local step"
    how = {
        "fedsgd": "it computes the gradient as the phone does",
        "fedavg": f"it imitates {steps}{each}",
        "fedprox": f"it imitates {steps}{each}, leash included",
        "fedadmm": f"it imitates {steps}{each}, and works out the hidden duals round by round",
    }.get(doing.protocol.id, f"it imitates what {doing.name} does")
    sum_of = f"; of {doing.phones} phones it knows the sum alone, and guesses the pictures of all" if doing.phones > 1 else ""
    order = " The random order of the pictures it cannot know." if doing.fields.get("shuffled") else ""
    return f"{how}{sum_of}.{order}{''.join(f' {entry.title} is {entry.imitation}.' for entry in protections)}"


def _naive(doing: Doing, protections: Sequence[Entry], attack: Entry, fields: dict[str, Any]) -> str:
    unknown = "".join(f" It does not know of {entry.title.lower()}." for entry in protections)
    if doing.plain:
        what = "the sum, divided by the number of phones," if doing.phones > 1 else "what arrives"
        right = "" if protections else ", and here it is one: an adaptive attacker would do the same"
        return f"it takes {what} for a plain gradient{right}.{unknown}"
    if imitates(attack):
        wrong = [words for name, words in MISTAKES.items() if not fields.get(name)]
        return (
            f"it imitates the phone, but {' and '.join(wrong)}.{unknown}"
            if wrong
            else f"it imitates the phone, both mistakes repaired.{unknown}"
        )
    if doing.steps == 1 and doing.protocol.id in ("fedavg", "fedprox"):
        return f"it takes what arrives, rescaled, for a plain gradient; after a single local step it is one.{unknown}"
    overlooked = {
        "fedadmm": "the hidden duals" if doing.steps == 1 else f"the {doing.steps} local steps and the hidden duals",
        "fedprox": f"the {doing.steps} local steps and the leash",
        "fedavg": f"the {doing.steps} local steps",
    }.get(doing.protocol.id, f"what {doing.name} does")
    return f"it takes what arrives, rescaled, for one plain gradient, and knows nothing of {overlooked}.{unknown}"


def imitates(attack: Entry) -> bool:
    """Whether even the naive attacker imitates the phone, only wrongly."""
    return any(field.name in MISTAKES for field in attack.fields)
