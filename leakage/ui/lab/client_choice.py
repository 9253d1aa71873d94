"""Step 2 of the Lab as widgets: the client's model and protocol, the number of clients in a sum, and the rounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import streamlit as st

from leakage.networks.k_curve import LOSSES, Loss
from leakage.results.server_variants import needs_cheating
from leakage.spec.catalog import Catalog
from leakage.spec.client_behavior import ClientBehavior
from leakage.spec.experiment import MAX_ROUNDS, Part
from leakage.spec.refusals import MAX_CLASSES
from leakage.ui.common import forms
from leakage.ui.common.markdown import ours
from leakage.ui.components import sent
from leakage.ui.lab.check_choice import choose_checks

APART = {"epochs": "Local epochs"}  # fields of protocols that stand in the card, not behind the button


@dataclass(frozen=True)
class Setting:
    """The fields of an experiment about the client: its model and training, what it sends, and how many rounds the attacker watches."""

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
    server: Part | None
    checks: tuple[Part, ...]
    refuse: bool


def choose_setting(
    known: Catalog, pictures: int, *, without: Sequence[str] = (), draw_model: Callable[[Setting], None] = lambda _: None
) -> Setting:
    """Draw the widgets about the client (model, protocol, sum, rounds, server, checks) and what it sends and keeps; return the choices.

    Args:
        known: The catalog of plug-ins.
        pictures: The number of pictures in the batch.
        without: Names of fields of the protocol, or "rounds", "server" or "checks", that have no widget here.
        draw_model: Draws the model that the server hands out, below the server and the checks.
    """
    model = forms.choose(known, "model", "Model on the phone", more=model_menus)
    assert model
    checkpoint = forms.checkpoint(known, model)
    protocol = forms.choose(known, "protocol", "What the phone sends", apart=(*APART, *without))
    assert protocol
    entry = known.protocols.get(protocol.id)
    shown = {field.name: forms.widget(entry, field, APART[field.name]) for field in entry.fields if field.name in {*APART} - {*without}}
    protocol = Part(id=protocol.id, fields={**protocol.fields, **shown})
    left, right = st.columns(2)
    with left:
        phones = choose_phones(known)
    with right:
        rounds = 1 if "rounds" in without else choose_rounds()
    aggregation = choose_aggregation(known, phones)
    attacked = choose_attacked_round(rounds)
    server = None if "server" in without else forms.choose(known, "server", "The server", on_change=partial(offer_attack, known))
    checks, refuse = ((), True) if "checks" in without else choose_checks(known)
    statistics = read_batch_norm(model)
    setting = Setting(
        model,
        checkpoint,
        st.session_state["task"],
        read_outputs(),
        read_loss(),
        statistics,
        protocol,
        aggregation,
        rounds,
        attacked,
        server,
        checks,
        refuse,
    )
    draw_model(setting)
    sent.show(ClientBehavior.of(known, protocol, aggregation, server, pictures, batch_norm=statistics))
    return setting


def offer_attack(known: Catalog) -> None:
    """Choose the attack that reads what the chosen server has built in; for an honest server an attack that needs no such server."""
    server, attack = known.servers.find(st.session_state["server"]), known.attacks.find(st.session_state.get("attack", ""))
    if server and server.reading:
        st.session_state["attack"] = server.reading[0]
    elif attack and needs_cheating(attack):
        st.session_state["attack"] = forms.DEFAULTS["attack"]


def choose_rounds() -> int:
    """Draw the slider of rounds, and return the number of rounds from which the attacker received an update."""
    return st.slider(
        "Rounds watched",
        1,
        MAX_ROUNDS,
        key="rounds",
        help="How many rounds of training the attacker watched, with an update of this phone in each. The phone trains "
        "on the same pictures in every round.",
    )


def choose_phones(known: Catalog) -> int:
    """Draw the slider of phones, and return how many phones are in the sum that arrives; 1: the update of this phone arrives alone."""
    if not known.aggregations:
        return 1
    return st.select_slider(
        "Update added up with those of other phones",
        range(1, forms.MAX_PHONES + 1),
        format_func=lambda phones: "no" if phones == 1 else f"of {phones:d} phones",
        key="phones",
        help="The server then receives a sum of the updates of several phones. Each phone has the same number of pictures: choose a "
        "number of pictures that allows this.",
    )


def choose_aggregation(known: Catalog, phones: int) -> Part | None:
    """Draw the choice of aggregation and its fields, and return it; None for a single phone, because then no updates are added up."""
    if phones == 1:
        return None
    entries = {entry.id: entry for entry in known.aggregations}
    picked = next(iter(entries))
    if len(entries) > 1:
        picked = st.selectbox(
            "How the updates are added up", list(entries), format_func=lambda name: entries[name].short, key="aggregation"
        )
    entry = entries[picked]
    st.caption(ours(entry.plain), help=f"{ours(entry.hint)}\n\n[The paper]({ours(entry.source)})")
    fields: dict[str, Any] = {"clients": phones} if any(field.name == "clients" for field in entry.fields) else {}
    more = {field.name: forms.widget(entry, field) for field in entry.fields if field.name not in fields}
    return Part(id=picked, fields={**more, **fields})


def choose_attacked_round(rounds: int) -> int:
    """Draw the slider of the attacked round, and return that round; with a single round return 1 and forget an earlier choice."""
    if rounds == 1:
        st.session_state.pop("attacked_round", None)
        return 1
    st.session_state["attacked_round"] = min(st.session_state.get("attacked_round", 1), rounds)
    return st.slider(
        "Round attacked",
        1,
        rounds,
        key="attacked_round",
        help="The attacker works on what was sent in this round of training. The earlier rounds decide with which "
        "state of the model the phone begins this round.",
    )


def model_menus(fields: dict[str, Any]) -> None:
    """Draw the menus for the outputs and the loss of a model and, where its fields say that it has BatchNorm, for its statistics."""
    st.selectbox(
        "Outputs",
        list(forms.TASKS),
        format_func=forms.TASKS.__getitem__,
        key="task",
        help="A model with one output gives one of two answers. The experiment sets which answer counts as right for a picture (its "
        "label). The authors of the attack R-GAP chose the opposite of what the untrained network says. With that label, one picture has "
        "the gradient that is sent; with the other label, two pictures can have it.",
    )
    if st.session_state["task"] == "classes":
        st.number_input(
            "Number of classes (0: as many as the pictures have)",
            0,
            MAX_CLASSES,
            key="outputs",
            persist_state=forms.KEPT,
            help="A network may tell more classes apart than its pictures have. For example, a network for a set of photographs (LFW) "
            "tells 5,749 people apart. More classes make the network larger, and so the update too.",
        )
    else:
        st.selectbox(
            "Loss",
            list(forms.LOSSES),
            format_func=forms.LOSSES.__getitem__,
            key="loss",
            help="The loss says how wrong the network is about a picture. The gradient says how to make the loss smaller, and the attacker "
            "knows which loss the phone uses. With two kinds of loss (logistic and exponential), two pictures can have the same "
            "gradient. With the third kind (hinge), a gradient fits one picture; but if the network is clearly right (by a margin of 1 or "
            "more), the gradient is zero.",
        )
    if has_batch_norm(fields):
        st.selectbox(
            "BatchNorm uses",
            list(forms.BATCH_NORM),
            format_func=forms.BATCH_NORM.__getitem__,
            key="batch_norm",
            help="A part of the network (BatchNorm) uses averages of numbers over several pictures. With stored averages, each picture is "
            "processed alone. With averages of the pictures in this update, as in training, the pictures influence each other, and the "
            "attacker must guess the averages too.",
        )


def read_outputs() -> int:
    """Return the chosen number of classes, 0 for the classes of the pictures; forget it for a model with one output."""
    if st.session_state["task"] != "classes":
        st.session_state.pop("outputs", None)
    return int(st.session_state.get("outputs", 0))


def read_loss() -> Loss:
    """Return the chosen loss; a model with several outputs always has cross-entropy, so forget any other choice for it."""
    if st.session_state["task"] == "classes":
        st.session_state.pop("loss", None)
    return cast(Loss, st.session_state.get("loss", LOSSES[0]))


def read_batch_norm(model: Part) -> Literal["eval", "batch"]:
    """Return which statistics BatchNorm uses; forget the choice for a model without BatchNorm, and return "eval"."""
    if has_batch_norm(model.fields):
        return "batch" if st.session_state["batch_norm"] == "batch" else "eval"
    st.session_state.pop("batch_norm", None)
    return "eval"


def has_batch_norm(fields: dict[str, Any]) -> bool:
    """Return whether a model with these fields has BatchNorm: its field `norm` says so."""
    return fields.get("norm") == "batch"
