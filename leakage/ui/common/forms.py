"""Settings as widgets, and an Experiment into their values. Everything is built from the catalog."""

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
USUAL = ""  # the first of a protection's strategies
DEFAULT = Experiment()
More: TypeAlias = Callable[[dict[str, Any]], None]  # draws further widgets, given the values of a plug-in's fields
SOURCES = {"gallery": "Gallery", "upload": "Your own", "mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
SOURCES |= {"faces": "Faces", "lfw": "LFW"}
DEFAULTS = {"model": DEFAULT.model.id, "protocol": DEFAULT.protocol.id, "defense": NONE, "attack": DEFAULT.attack.id}
TASKS = {name: said.menu for name, said in words.TASKS.items()}
LOSSES = {name: said.menu for name, said in words.LOSSES.items()}
BATCH_NORM = {name: said.menu for name, said in words.BATCH_NORM.items()}
ADAPTIVE = {"true": words.KNOWS["adaptive"], "false": words.KNOWS["naive"]}
STATISTICS = {name: said.menu for name, said in words.STATISTICS.items()}
KEPT: Literal["page"] = "page"  # what was set comes back with its widget, as long as one stays on the page
MAX_PHONES = 16  # in one sum


def card(number: int, title: str) -> DeltaGenerator:
    """A card for one of the numbered steps of a page."""
    box = st.container(border=True, gap="small", key=f"step-{number}")
    box.markdown(f"**{number:d} · {escape(title)}**")
    return box


def choose(known: Catalog, kind: str, label: str, *, more: More | None = None, apart: Sequence[str] = ()) -> Part | None:
    """A menu of the plug-ins of one kind with its sentence, and beside it, folded away, the fine settings and what `more` adds to them.

    Fields named in `apart` are not among them: they are drawn elsewhere, and kept out of the answer. Free texts stand below, in the open.
    """
    entries = {entry.id: entry for entry in menu_entries(known, kind)}
    options = [*([NONE] if kind == "defense" else []), *entries]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        picked = st.selectbox(
            escape(label),
            options,
            index=options.index(DEFAULTS[kind]),
            format_func=lambda name: "No protection" if name == NONE else entries[name].title,
            key=kind,
            label_visibility="collapsed",
        )
        texts = [field for field in entries[picked].fields if field.syntax] if picked in entries else []
        fields = fine_settings(entries[picked], more, [*apart, *(field.name for field in texts)]) if picked in entries else {}
    if picked == NONE:
        st.caption("What leaves the phone is sent as it is.")
        return None
    entry = entries[picked]
    st.caption(ours(entry.plain), help=f"{ours(entry.hint)}\n\n[The paper]({ours(entry.source)})")
    return Part(id=picked, fields={**fields, **{field.name: widget(entry, field) for field in texts}})


def checkpoint(known: Catalog, model: Part) -> str:
    """How long the model was trained: untrained, or one of the stages on this machine. Picking one sets the fields it was trained with."""
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
        "The percentage is its accuracy: how many test pictures it names right. "
        "Choosing a trained model also sets its fields and the size of the "
        "pictures to what it was trained with.",
    )
    if chosen == UNTRAINED and st.session_state.get("lost", UNTRAINED) not in offered:
        lost = escape(st.session_state["lost"])
        st.caption(f":material/warning: {lost} is not a trained model of this kind on this machine. It starts untrained.")
    return chosen


def trainings(model: Part) -> dict[str, str]:
    """How long this model can have been trained: not at all, or as the checkpoints on this machine; in words."""
    offered = {UNTRAINED: "Untrained: random weights"}
    for id, card in checkpoints.cards().items():
        for stage in card.stages if card.model == model.id else ():
            length = f"{stage.rounds} {card.unit}{'' if stage.rounds == 1 else 's'}"
            length = f"all {length}" if stage is card.stages[-1] else length
            offered[f"{id}@{stage.rounds}"] = f"{card.trained_on}, {length}: accuracy {stage.accuracy:.1%}"
    return offered


def fit_checkpoint(known: Catalog) -> None:
    """Put the fields, the size and the colours of the chosen checkpoint into the widgets; one that is gone since is chosen no more."""
    st.session_state.pop("lost", None)
    try:
        fit(st.session_state["checkpoint"], known)
    except checkpoints.CheckpointError:
        st.session_state["checkpoint"] = UNTRAINED


def fit(name: str, known: Catalog) -> None:
    """What "id@rounds" was trained with, into the widgets. Raises CheckpointError."""
    card, _ = checkpoints.find(name)
    st.session_state["channels"], st.session_state["size"] = card.image_shape[:2]
    for field, value in known.models.get(card.model).resolve(card.fields).items():
        st.session_state[f"{card.model}.{field}"] = value


def fine_settings(entry: Entry, more: More | None = None, apart: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of a plug-in, but for those `apart`, behind one small button; their values."""
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
    """Put a preset's values, and the defaults of all other fields, into the widgets."""
    preset = entry.presets.get(st.session_state.get(f"{entry.id}.preset") or "", {})
    for field in entry.fields:
        st.session_state[f"{entry.id}.{field.name}"] = preset.get(field.name, field.default)


def widget(entry: Entry, field: Field, label: str = "") -> Any:
    """The widget that fits a field: a switch, a menu, lines of text, a slider for short ranges, else a number."""
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


def accomplices() -> list[str]:
    """Pictures that an accomplice may have, by their names in an address: none, the gallery's, and one that a link names."""
    options = [ALONE, *(f"gallery:{item.id}" for item in gallery())]
    named = str(st.session_state.get("accomplice", st.query_params.get("accomplice", ALONE)))
    with suppress(PictureError):
        find(*named.split(":", 1) if ":" in named else (named, ""))
        return options if named in options else [*options, named]
    return options


def load(experiment: Experiment) -> None:
    """Put an experiment into the widgets (call it before they are drawn)."""
    state = st.session_state
    state.pop("lost", None)
    state.update(lab_settings(experiment))
    state["classes"] = {picture.id: picture.label for picture in experiment.pictures if picture.source == "upload"}


def put_fields(part: Part) -> None:
    """The fields of a plug-in into their widgets."""
    for name, value in part.fields.items():
        st.session_state[f"{part.id}.{name}"] = value


def put_defaults(known: Catalog) -> None:
    """Every setting as it is for a newcomer, into the widgets (call it before they are drawn)."""
    for entry in known.entries:
        for field in entry.fields:
            st.session_state[f"{entry.id}.{field.name}"] = field.default
    load(DEFAULT)
    st.session_state["offset"] = 0


def number(key: str) -> int:
    """The value of a whole-number widget."""
    return int(st.session_state[key])
