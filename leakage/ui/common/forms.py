"""Widgets for settings, built from the catalog, and the way back: the values of an Experiment written into the widgets."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from leakage.data import checkpoints
from leakage.data.images import PictureError, find, gallery
from leakage.spec import words
from leakage.spec.catalog import Catalog, Entry, Field
from leakage.spec.experiment import Experiment, Part
from leakage.spec.lab_settings import ALONE, NONE, lab_settings
from leakage.spec.plugin_menu import menu_entries
from leakage.spec.syntax import SYNTAXES
from leakage.ui.common.markdown import escape, ours

UNTRAINED = ""
USUAL = ""  # the first strategy of a protection, which is its default
DEFAULT = Experiment()
More: TypeAlias = Callable[[dict[str, Any]], None]  # takes the values of a plug-in's fields and draws further widgets
SOURCES = {"gallery": "Gallery", "upload": "Your own", "mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
SOURCES |= {"faces": "Faces", "lfw": "LFW"}
DEFAULTS = {"model": DEFAULT.model.id, "protocol": DEFAULT.protocol.id, "defense": NONE, "server": NONE, "attack": DEFAULT.attack.id}
LABELLED = ("server",)  # kinds of which the menu shows its label, because the widgets around it are about another subject
WITHOUT = {  # kind of plug-in of which none need be chosen -> the menu's first item, and the sentence below it
    "defense": ("No protection", "Without a protection the phone sends its update as it is."),
    "server": ("Keeps to the protocol", "The server hands out the agreed model and reads what arrives (honest but curious)."),
}
TASKS = {name: wording.menu for name, wording in words.TASKS.items()}
LOSSES = {name: wording.menu for name, wording in words.LOSSES.items()}
BATCH_NORM = {name: wording.menu for name, wording in words.BATCH_NORM.items()}
ADAPTIVE = {"true": words.KNOWS["adaptive"], "false": words.KNOWS["naive"]}
STATISTICS = {name: wording.menu for name, wording in words.STATISTICS.items()}
KEPT: Literal["page"] = "page"  # Streamlit keeps the value of a widget that is not drawn, until the visitor leaves the page
MAX_PHONES = 16  # in one sum (secure aggregation)


def card(number: int, title: str) -> DeltaGenerator:
    """Return a container with a border and a title, for one of the numbered steps of a page."""
    box = st.container(border=True, gap="small", key=f"step-{number}")
    box.markdown(f"**{number:d} · {escape(title)}**")
    return box


def choose(
    known: Catalog,
    kind: str,
    label: str,
    *,
    more: More | None = None,
    apart: Sequence[str] = (),
    on_change: Callable[[], None] | None = None,
) -> Part | None:
    """Draw a menu of all plug-ins of one kind and the fields of the chosen plug-in, and return the choice with the values of its fields.

    Fields that hold free text stand below the menu; the others open behind a small button.

    Args:
        known: The catalog of plug-ins.
        kind: A kind of plug-in that has a menu: a key of `DEFAULTS`.
        label: The label of the menu, for screen readers; kinds in LABELLED show it.
        more: Draws further widgets behind the button.
        apart: Names of fields that the page draws elsewhere; the returned Part lacks them.
        on_change: Called after the visitor has chosen another plug-in, before the page is drawn again.

    Returns:
        The chosen plug-in, or None where the visitor chose no protection or an honest server.
    """
    entries = {entry.id: entry for entry in menu_entries(known, kind)}
    options = [*([NONE] if kind in WITHOUT else []), *entries]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        picked = st.selectbox(
            escape(label),
            options,
            index=options.index(DEFAULTS[kind]),
            format_func=lambda name: WITHOUT[kind][0] if name == NONE else entries[name].title,
            key=kind,
            label_visibility="visible" if kind in LABELLED else "collapsed",
            on_change=on_change,
        )
        texts = [field for field in entries[picked].fields if field.syntax] if picked in entries else []
        fields = fine_settings(entries[picked], more, [*apart, *(field.name for field in texts)]) if picked in entries else {}
    if picked == NONE:
        st.caption(WITHOUT[kind][1])
        return None
    entry = entries[picked]
    st.caption(ours(entry.plain), help=f"{ours(entry.hint)}\n\n[The paper]({ours(entry.source)})")
    return Part(id=picked, fields={**fields, **{field.name: widget(entry, field) for field in texts}})


def checkpoint(known: Catalog, model: Part) -> str:
    """Draw the menu of how long the model was trained, and return the choice: untrained, or the name of a checkpoint on this machine.

    Choosing a checkpoint sets the fields of the model and the pictures to the values with which it was trained.
    """
    offered = trainings(model)
    wanted = st.session_state.get("checkpoint", st.query_params.get("checkpoint", UNTRAINED))
    if wanted not in offered:
        st.session_state["lost"] = wanted
    if st.session_state.get("checkpoint") not in offered:
        st.session_state["checkpoint"] = UNTRAINED
    chosen = st.selectbox(
        "How long trained",
        list(offered),
        format_func=offered.__getitem__,
        key="checkpoint",
        on_change=fit_checkpoint,
        args=(known,),
        disabled=len(offered) == 1,
        help="Training changes how much a gradient gives away: a model that is right about a picture sends a small gradient. "
        "The percentage is the accuracy of the model: the part of the test pictures that it names correctly. "
        "If you choose a trained model, its settings and the size of the pictures change to those of its training.",
    )
    if chosen == UNTRAINED and st.session_state.get("lost", UNTRAINED) not in offered:
        lost = escape(st.session_state["lost"])
        st.caption(f":material/warning: {lost} is not a trained model of this kind on this machine. The model starts untrained.")
    return chosen


def trainings(model: Part) -> dict[str, str]:
    """Return the titles of the checkpoints of this model on this machine, by their names; the first is the untrained model."""
    offered = {UNTRAINED: "Untrained: random weights"}
    for id, card in checkpoints.cards().items():
        for stage in card.stages if card.model == model.id else ():
            length = f"{stage.rounds} {card.unit}{'' if stage.rounds == 1 else 's'}"
            length = f"all {length}" if stage is card.stages[-1] else length
            offered[f"{id}@{stage.rounds}"] = f"{card.trained_on}, {length}: accuracy {stage.accuracy:.1%}"
    return offered


def fit_checkpoint(known: Catalog) -> None:
    """Set the widgets to the fields, size and channels of the chosen checkpoint; choose the untrained model where it no longer exists."""
    st.session_state.pop("lost", None)
    try:
        fit(st.session_state["checkpoint"], known)
    except checkpoints.CheckpointError:
        st.session_state["checkpoint"] = UNTRAINED


def fit(name: str, known: Catalog) -> None:
    """Set the widgets to the values with which the checkpoint `name` ("id@rounds") was trained. Raises CheckpointError if it is missing."""
    card, _ = checkpoints.find(name)
    st.session_state["channels"], st.session_state["size"] = card.image_shape[:2]
    for field, value in known.models.get(card.model).resolve(card.fields).items():
        st.session_state[f"{card.model}.{field}"] = value


def fine_settings(entry: Entry, more: More | None = None, apart: Sequence[str] = ()) -> dict[str, Any]:
    """Draw the fields of a plug-in behind one small button, without those in `apart`, and return their values by name."""
    fields = [field for field in entry.fields if field.name not in apart]
    if not fields:
        return {}
    with st.popover("", icon=":material/tune:", help=f"Fine settings of {escape(entry.title)}", key=f"fine-{entry.kind}"):
        st.markdown(f"**{escape(entry.title)}**")
        if entry.presets:
            st.pills("Presets", list(entry.presets), format_func=escape, key=f"{entry.id}.preset", on_change=apply_preset, args=(entry,))
        values = {field.name: widget(entry, field) for field in fields}
        if more:
            more(values)
        return values


def apply_preset(entry: Entry) -> None:
    """Set the widgets of a plug-in to the chosen preset, and all fields that the preset does not name to their defaults."""
    preset = entry.presets.get(st.session_state.get(f"{entry.id}.preset") or "", {})
    for field in entry.fields:
        st.session_state[f"{entry.id}.{field.name}"] = preset.get(field.name, field.default)


def widget(entry: Entry, field: Field, label: str = "") -> Any:
    """Draw the widget that fits a field and return its value: a switch, a menu, lines of text, a slider for short ranges, else a number."""
    shown = label or field.name.replace("tv_", "TV_").replace("_", " ")
    name, about = escape(shown[0].upper() + shown[1:]), ours(field.help)
    key = f"{entry.id}.{field.name}"
    if field.type == "bool":
        return st.toggle(name, field.default, key=key, help=about, persist_state=KEPT)
    if field.syntax:
        more = f"{about}\n\n{SYNTAXES[field.syntax].grammar}"
        return st.text_area(name, field.default, height=120, key=key, help=more, persist_state=KEPT) or ""
    if field.type == "str":
        return st.selectbox(name, field.options, field.options.index(field.default), key=key, help=about, persist_state=KEPT)
    number = int if field.type == "int" else float
    assert field.low is not None
    assert field.high is not None
    low, high, value = number(field.low), number(field.high), number(field.default)
    if field.type == "int":
        if high - low <= 128:
            return st.slider(name, low, high, value, key=key, help=about, persist_state=KEPT)
        return st.number_input(name, low, high, value, key=key, help=about, persist_state=KEPT)
    if high <= 1:
        return st.slider(name, low, high, value, 0.001, "%.3f", key=key, help=about, persist_state=KEPT)
    return st.number_input(name, low, high, value, value / 10 or 0.001, "%g", key=key, help=about, persist_state=KEPT)


def accomplice_options() -> list[str]:
    """Return the options for the picture of the accomplice (another client that colludes with the attacker).

    The first option is empty: no accomplice. The others name pictures as "source:id": those of the gallery, and the picture that the
    page's address (URL) names, if it exists.
    """
    options = [ALONE, *(f"gallery:{item.id}" for item in gallery())]
    named = str(st.session_state.get("accomplice", st.query_params.get("accomplice", ALONE)))
    with suppress(PictureError):
        find(*named.split(":", 1) if ":" in named else (named, ""))
        return options if named in options else [*options, named]
    return options


def load(experiment: Experiment) -> None:
    """Set the widgets to the settings of an experiment. Call it before they are drawn."""
    state = st.session_state
    state.pop("lost", None)
    state.update(lab_settings(experiment))
    state["classes"] = {picture.id: picture.label for picture in experiment.pictures if picture.source == "upload"}


def put_fields(part: Part) -> None:
    """Set the widgets of a plug-in to the values of its fields."""
    for name, value in part.fields.items():
        st.session_state[f"{part.id}.{name}"] = value


def put_defaults(known: Catalog) -> None:
    """Set all widgets to their defaults. Call it before they are drawn."""
    for entry in known.entries:
        for field in entry.fields:
            st.session_state[f"{entry.id}.{field.name}"] = field.default
    load(DEFAULT)
    st.session_state["offset"], st.session_state["order"] = 0, ""


def number(key: str) -> int:
    """Return the value of a whole-number widget by its key."""
    return int(st.session_state[key])
