"""Step 2: the client. Its model, its protocol, who else is in the sum, and for how many rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import streamlit as st

from leakage.networks.k_curve import LOSSES, Loss
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import MAX_ROUNDS, Part
from leakage.spec.refusals import MAX_CLASSES
from leakage.spec.threat_model import ClientBehavior
from leakage.ui.common import forms
from leakage.ui.common.markdown import ours
from leakage.ui.components import sent

APART = {"epochs": "Local epochs"}  # fields of protocols that get a slider in the open


@dataclass(frozen=True)
class Setting:
    """What step 2 says of an experiment."""

    model: Part
    checkpoint: str
    task: Literal["classes", "two", "flipped"]
    outputs: int
    loss: Loss
    batch_norm: Literal["eval", "batch"]
    protocol: Part
    aggregation: Part | None
    rounds: int
    attacked_round: int


def choose_setting(known: Catalog, pictures: int, *, without: Sequence[str] = ()) -> Setting:
    """The second step as widgets, with a picture of what is sent and what is not; fields of the protocol, and rounds, can be left out."""
    model = forms.choose(known, "model", "Model on the phone", more=model_menus)
    assert model
    checkpoint = forms.checkpoint(known, model)
    protocol = forms.choose(known, "protocol", "What it sends", apart=(*APART, *without))
    assert protocol
    entry = known.protocols.get(protocol.id)
    open_air = {field.name: forms.widget(entry, field, APART[field.name]) for field in entry.fields if field.name in {*APART} - {*without}}
    protocol = Part(id=protocol.id, fields={**protocol.fields, **open_air})
    left, right = st.columns(2)
    with left:
        phones = phones_added_up(known)
    with right:
        rounds = 1 if "rounds" in without else rounds_watched()
    aggregation = how_added_up(known, phones)
    attacked = round_attacked(rounds)
    statistics = batch_norm(model)
    behavior = ClientBehavior.of(known, protocol, aggregation, pictures, batch_norm=statistics)
    sent.show(behavior)
    return Setting(model, checkpoint, st.session_state["task"], outputs(), loss(), statistics, protocol, aggregation, rounds, attacked)


def rounds_watched() -> int:
    """How often this phone was heard."""
    return st.slider(
        "Rounds watched",
        1,
        MAX_ROUNDS,
        key="rounds",
        help="How often this phone was heard. It trains on the same pictures every time.",
    )


def phones_added_up(known: Catalog) -> int:
    """How many phones are in the sum that arrives; 1: this phone's update arrives alone."""
    if not known.aggregations:
        return 1
    return st.select_slider(
        "Added up with other phones",
        range(1, forms.MAX_PHONES + 1),
        format_func=lambda phones: "no" if phones == 1 else f"of {phones:d} phones",
        key="phones",
        help="Then a sum of their updates arrives. They share the pictures evenly: choose a batch size to match.",
    )


def how_added_up(known: Catalog, phones: int) -> Part | None:
    """What is laid over the protocol, so that a sum arrives; with the settings of that."""
    if phones == 1:
        return None
    over = {entry.id: entry for entry in known.aggregations}
    picked = next(iter(over))
    if len(over) > 1:
        picked = st.selectbox("How they are added up", list(over), format_func=lambda name: over[name].short, key="aggregation")
    st.caption(ours(over[picked].plain), help=f"{ours(over[picked].hint)}\n\n[The paper]({ours(over[picked].source)})")
    fields: dict[str, Any] = {"clients": phones} if any(field.name == "clients" for field in over[picked].fields) else {}
    more = {field.name: forms.widget(over[picked], field) for field in over[picked].fields if field.name not in fields}
    return Part(id=picked, fields={**more, **fields})


def round_attacked(rounds: int) -> int:
    """Which of the rounds is attacked; no choice, and none kept, while only one was watched."""
    if rounds == 1:
        st.session_state.pop("attacked_round", None)
        return 1
    st.session_state["attacked_round"] = min(st.session_state.get("attacked_round", 1), rounds)
    return st.slider(
        "Round attacked",
        1,
        rounds,
        key="attacked_round",
        help="The attacker works on what was sent in this round. What the phone carries into it follows from the rounds before.",
    )


def model_menus(fields: dict[str, Any]) -> None:
    """How many outputs the model has, and, where it has BatchNorm, which statistics that uses."""
    st.selectbox(
        "Outputs",
        list(forms.TASKS),
        format_func=forms.TASKS.__getitem__,
        key="task",
        help="One output tells two classes apart. Which of them a picture is in has no meaning then; R-GAP's authors took the opposite of "
        "what the untrained network says, which leaves one solution where the other label can leave two.",
    )
    if st.session_state["task"] == "classes":
        st.number_input(
            "Classes (0: as many as the pictures have)",
            0,
            MAX_CLASSES,
            key="outputs",
            persist_state=forms.KEPT,
            help="A network may tell more classes apart than its pictures have: LFW's tells 5,749 people apart. Its last layer grows with "
            "them, and with it what is sent.",
        )
    else:
        st.selectbox(
            "Loss",
            list(forms.LOSSES),
            format_func=forms.LOSSES.__getitem__,
            key="loss",
            help="What the phone's gradient is the gradient of; the attacker knows it. The logistic and the exponential loss can leave two "
            "pictures for one gradient, the hinge loss one, or it sends nothing: when the network is sure by a margin of 1.",
        )
    if has_batch_norm(fields):
        st.selectbox(
            "BatchNorm uses",
            list(forms.BATCH_NORM),
            format_func=forms.BATCH_NORM.__getitem__,
            key="batch_norm",
            help="Stored statistics: each picture is treated alone. Of this batch: as while training; pictures of a batch mix, and the "
            "attacker must guess their statistics with them.",
        )


def outputs() -> int:
    """How many classes are told apart, 0 for those of the pictures; one output has no such setting, and none is kept for it."""
    if st.session_state["task"] != "classes":
        st.session_state.pop("outputs", None)
    return int(st.session_state.get("outputs", 0))


def loss() -> Loss:
    """What is minimised; several outputs have cross-entropy alone, and no other is kept for them."""
    if st.session_state["task"] == "classes":
        st.session_state.pop("loss", None)
    return cast(Loss, st.session_state.get("loss", LOSSES[0]))


def batch_norm(model: Part) -> Literal["eval", "batch"]:
    """Which statistics BatchNorm uses; a model without it has no such setting, and none is kept for it."""
    if has_batch_norm(model.fields):
        return "batch" if st.session_state["batch_norm"] == "batch" else "eval"
    st.session_state.pop("batch_norm", None)
    return "eval"


def has_batch_norm(fields: dict[str, Any]) -> bool:
    """A model says by its field `norm` that it has BatchNorm."""
    return fields.get("norm") == "batch"
