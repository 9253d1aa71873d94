"""The form of a card: each setting of the client is known, guessed or unknown. What a card among the files says is filled in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st

from leakage.spec import words
from leakage.spec.catalog import Catalog
from leakage.spec.lab_settings import NONE
from leakage.spec.part import Part
from leakage.spec.refusals import MAX_CLASSES
from leakage.spec.update_card import UpdateCard
from leakage.ui.common import forms
from leakage.ui.common.markdown import escape

STATES = {"unknown": "Unknown", "guessed": "A guess", "known": "Known"}
COLOURS = {3: "Colour", 1: "Grey"}
NUMBERS = "Numbers with commas between them."


@dataclass(frozen=True)
class CardField:
    """A setting of the client on the form; `options`: its values, if it is a menu, with their titles."""

    name: str
    label: str
    help: str
    kind: Literal["count", "share", "menu", "labels", "pair"] = "count"
    first: Any = 1
    options: dict[str, str] | None = None


FIRST = (
    CardField("pictures", "How many pictures the client has", "Flower and NVFlare send this number with the update (num-examples)."),
    CardField("epochs", "How often it went through its pictures (epochs)", "In one round of training."),
    CardField("mini_batch", "Pictures in one step (mini-batch)", "The client changes its weights after each mini-batch."),
    CardField("rate", "Learning rate", "How far the weights move in each step.", "share", 0.01),
)
MORE = (
    CardField("steps", "Number of steps", "How often the client has changed its weights: mini-batches times epochs."),
    CardField(
        "optimizer",
        "Optimizer",
        "The rule by which the client changes its weights.",
        "menu",
        "SGD",
        {"SGD": "SGD", "SGD with Nesterov momentum": "SGD with Nesterov momentum", "Adam": "Adam", "AdamW": "AdamW"},
    ),
    CardField("momentum", "Momentum", "How much of the last step is repeated in the next.", "share", 0.9),
    CardField("weight_decay", "Weight decay", "How strongly each step pulls the weights towards 0.", "share", 0.0005),
    CardField("accumulation", "Mini-batches in one step (accumulation)", "More than 1 if gradients are added up before a step."),
    CardField(
        "batch_norm",
        "Statistics of BatchNorm",
        "Which mean and spread a layer BatchNorm uses in training.",
        "menu",
        "batch",
        {name: wording.menu for name, wording in words.BATCH_NORM.items()},
    ),
    CardField("round", "Round", "How many rounds of training there were, with this one."),
    CardField("labels", "Classes of the pictures", f"If they are known. The first class is 0. {NUMBERS}", "labels", "0"),
    CardField(
        "normalization",
        "Normalization",
        "Mean and standard deviation of each channel, by which the client scales its pictures. First the means, then a semicolon, then "
        "the deviations.",
        "pair",
        "0.485, 0.456, 0.406; 0.229, 0.224, 0.225",
    ),
)


def key(name: str, part: str) -> str:
    """Return the session key of a widget of this form."""
    return f"audit.{name}.{part}"


def fill_in(card: UpdateCard, known: Catalog) -> None:
    """Set the widgets to what a card says. Call it before they are drawn."""
    state = st.session_state
    for field in (*FIRST, *MORE):
        entry = getattr(card, field.name)
        state[key(field.name, "state")] = entry.state
        if entry.value is not None:
            state[key(field.name, "value")] = writers(field.kind)(entry.value)
    if card.input.value:
        channels, height, _ = card.input.value
        state[key("input", "channels")] = channels if channels in COLOURS else 3
        state[key("input", "side")] = min(256, max(8, height))
    if card.classes.value:
        state[key("classes", "value")] = min(MAX_CLASSES, max(2, card.classes.value))
    for kind, part in (("model", card.network.value), ("defense", card.protections[0] if len(card.protections) == 1 else None)):
        if part and known.of(kind).find(part.id):
            state[kind] = part.id
            forms.put_fields(part)
    if len(card.protections) != 1:
        state["defense"] = NONE


def writers(kind: str) -> Callable[[Any], Any]:
    """Return the function that writes a value of a card into a widget."""
    listed = lambda values: ", ".join(f"{value:g}" for value in values)  # noqa: E731
    return {"labels": listed, "pair": lambda pair: "; ".join(map(listed, pair))}.get(kind, lambda value: value)


def choose_pictures() -> dict[str, Any]:
    """Draw the shape of a picture and the number of classes, which the network needs, and return both as fields of a card."""
    with st.container(horizontal=True, gap="small"):
        side = st.number_input("Side (pixels)", 8, 256, 32, key=key("input", "side"), width=112, help="Height and width of a picture.")
        channels = st.segmented_control(
            "Colours", list(COLOURS), default=3, required=True, format_func=COLOURS.__getitem__, key=key("input", "channels")
        )
        classes = st.number_input(
            "Classes", 2, MAX_CLASSES, 10, key=key("classes", "value"), width=112, help="The number of the network's outputs."
        )
    return {"input": [channels, side, side], "classes": classes}


def ask_about_client(known: Catalog) -> dict[str, Any]:
    """Draw a row for each setting of the client, and its protection; return what was filled in as fields of a card.

    Raises:
        ValueError: what was typed is not what the row asks for; the message names the row.
    """
    given = dict[str, Any]()
    for field in FIRST:
        ask_row(field, given)
    with st.expander("More that you may know", key="more-of-card"):
        for field in MORE:
            ask_row(field, given)
    with st.container(gap="xxsmall", key="card-row-protection"):
        st.markdown("A protection that it uses")
        protection = forms.choose(known, "defense", "Protection")
    return {**given, "protections": [protection.model_dump()] if isinstance(protection, Part) else []}


def ask_row(field: CardField, given: dict[str, Any]) -> None:
    """Draw one row, and add its value to the fields of a card unless it is unknown."""
    box = st.container(gap="xxsmall", key=f"card-row-{field.name}")
    box.markdown(escape(field.label), help=escape(field.help))
    with box.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        state = st.segmented_control(
            escape(field.label),
            list(STATES),
            default="unknown",
            required=True,
            format_func=STATES.__getitem__,
            key=key(field.name, "state"),
            label_visibility="collapsed",
            width="content",
        )
        if state == "unknown":
            return
        value = draw_value(field)
    if value is not None:
        given[field.name] = {"guess": value} if state == "guessed" else value


def draw_value(field: CardField) -> Any:
    """Draw the widget of a row's value, and return the value."""
    name, label = key(field.name, "value"), escape(field.label)
    if field.kind == "menu":
        options = field.options or {}
        return st.selectbox(label, list(options), format_func=options.__getitem__, key=name, label_visibility="collapsed")
    if field.kind in ("labels", "pair"):
        text = st.text_input(label, field.first, key=name, label_visibility="collapsed", max_chars=2000)
        return read_numbers(text or "", field)
    if field.kind == "share":
        return st.number_input(label, 0.0, 1000.0, field.first, key=name, format="%g", label_visibility="collapsed", width=96)
    return st.number_input(label, 1, 1_000_000, field.first, key=name, label_visibility="collapsed", width=96)


def read_numbers(text: str, field: CardField) -> Any:
    """Read the numbers of a row. Raises ValueError with a sentence that names the row."""
    try:
        if field.kind == "labels":
            return [int(word) for word in text.replace(",", " ").split()] or None
        pair = [[float(word) for word in half.replace(",", " ").split()] for half in text.split(";")]
    except ValueError:
        raise ValueError(f"{field.label}: {NUMBERS}") from None
    if len(pair) != 2 or len(pair[0]) != len(pair[1]) or not pair[0]:
        raise ValueError(f"{field.label}: as many means as deviations, with a semicolon between them.")
    return pair
