"""Settings as widgets, all of them in the URL, and an Experiment out of their values. Everything is built from the catalog."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import streamlit as st

from leakage import checkpoints
from leakage.catalog import KINDS, Catalog, Entry, Field
from leakage.spec import MAX_SECONDS, SIZES, VERSION, Assumptions, Experiment, Part

NONE = "none"
UNTRAINED = ""
DEFAULT = Experiment()
More: TypeAlias = Callable[[dict[str, Any]], None]  # draws further widgets, given the values of a plug-in's fields
SOURCES = {"gallery": "Gallery", "upload": "Your own", "mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
BATCH_NORM = {"eval": "stored statistics (eval)", "batch": "statistics of this batch"}
PICKED = "pictures"  # the picked pictures, as "source:id", in session state and, joined by commas, in the URL


def read_url(known: Catalog) -> None:
    """On a visitor's first run: menus and switches take their values from the address. Names that do not exist are passed over.

    Fields of plug-ins and plain numbers are bound to the address by their widgets; Streamlit would write a menu's *titles* there,
    and a link must outlive a better title.
    """
    for key, options in _menus(known).items():
        asked = st.query_params.get(key)
        found = [option for option in options if str(option) == asked]
        if found and key not in st.session_state:
            st.session_state[key] = found[0]


def write_url(known: Catalog) -> None:
    """Menus that differ from the default go into the address, and the version that says which defaults were meant."""
    st.query_params["v"] = str(VERSION)
    for key, options in _menus(known).items():
        value = st.session_state.get(key, options[0])
        if value == options[0]:
            st.query_params.pop(key, None)
        elif st.query_params.get(key) != str(value):
            st.query_params[key] = str(value)


def _menus(known: Catalog) -> dict[str, list[Any]]:
    """The options of every menu, the default first."""
    ids = {kind: [entry.id for entry in known.of(kind)] for kind in KINDS}
    defaults = {"model": DEFAULT.model.id, "protocol": DEFAULT.protocol.id, "attack": DEFAULT.attack.id}
    menus: dict[str, list[Any]] = {kind: sorted(ids[kind], key=lambda name: name != first) for kind, first in defaults.items()}
    return {
        **menus,
        "defense": [NONE, *ids["defense"]],
        "checkpoint": [UNTRAINED, *(f"{id}@{stage.rounds}" for id, card in checkpoints.cards().items() for stage in card.stages)],
        "size": sorted(SIZES, key=lambda size: size != DEFAULT.size),
        "channels": [DEFAULT.channels, 1],
        "batch_norm": list(BATCH_NORM),
        "source": list(SOURCES),
    }


def choose(known: Catalog, kind: str, label: str, *, default: str, optional: bool = False, more: More | None = None) -> Part | None:
    """A menu of the plug-ins of one kind with its sentence, and beside it, folded away, the fine settings and what `more` adds to them."""
    entries = {entry.id: entry for entry in known.of(kind)}
    options = [NONE, *entries] if optional else list(entries)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        picked = st.selectbox(
            label,
            options,
            index=options.index(default),
            format_func=lambda name: "No protection" if name == NONE else entries[name].title,
            key=kind,
            label_visibility="collapsed",
        )
        part = Part(id=picked, fields=fine_settings(entries[picked], more)) if picked in entries else None
    if part:
        st.caption(entries[part.id].plain, help=f"{entries[part.id].hint}\n\n[The paper]({entries[part.id].source})")
    else:
        st.caption("The gradient is sent as it is.")
    return part


def checkpoint(known: Catalog, model: Part) -> str:
    """How long the model was trained: untrained, or one of the stages on this machine. Picking one sets the fields it was trained with."""
    offered = {UNTRAINED: "Untrained: weights drawn at random"}
    for id, card in checkpoints.cards().items():
        for stage in card.stages if card.model == model.id else ():
            length = f"{stage.rounds} {card.unit}{'' if stage.rounds == 1 else 's'}"
            length = f"all {length}" if stage is card.stages[-1] else length
            offered[f"{id}@{stage.rounds}"] = f"{card.trained_on}, {length}: {stage.accuracy:.1%} right"
    wanted = st.session_state.get("checkpoint", st.query_params.get("checkpoint", UNTRAINED))
    if wanted not in offered:
        st.session_state["lost"] = wanted
    if st.session_state.get("checkpoint") not in offered:
        st.session_state["checkpoint"] = UNTRAINED
    chosen = st.selectbox(
        "How long it was trained",
        list(offered),
        format_func=offered.__getitem__,
        key="checkpoint",
        on_change=fit_checkpoint,
        args=(known,),
        disabled=len(offered) == 1,
        help="Training changes how much a gradient gives away: a model that is right about a picture sends a small gradient. "
        "The percentage says how many test pictures it names right. Choosing a trained model also sets its fields and the size of the "
        "pictures to what it was trained with.",
    )
    if chosen == UNTRAINED and st.session_state.get("lost", UNTRAINED) not in offered:
        st.caption(
            f":material/warning: {st.session_state['lost']} is not a trained model of this kind on this machine. It starts untrained."
        )
    return chosen


def fit_checkpoint(known: Catalog) -> None:
    """Put the fields, the size and the colours of the chosen checkpoint into the widgets; one that is gone since is chosen no more."""
    st.session_state.pop("lost", None)
    try:
        card, _ = checkpoints.find(st.session_state["checkpoint"])
    except checkpoints.CheckpointError:
        st.session_state["checkpoint"] = UNTRAINED
        return
    st.session_state["channels"], st.session_state["size"] = card.image_shape[:2]
    for field, value in known.get("model", card.model).resolve(card.fields).items():
        st.session_state[f"{card.model}.{field}"] = value


def fine_settings(entry: Entry, more: More | None) -> dict[str, Any]:
    """The fields of a plug-in behind one small button; their values."""
    if not entry.fields:
        return {}
    with st.popover("", icon=":material/tune:", help=f"Fine settings of {entry.title}", key=f"fine-{entry.kind}"):
        st.markdown(f"**{entry.title}**")
        if entry.presets:
            st.pills("Presets", list(entry.presets), key=f"{entry.id}.preset", on_change=apply_preset, args=(entry,))
        values = {field.name: widget(entry, field) for field in entry.fields}
        if more:
            more(values)
        return values


def batch_norm_menu(fields: dict[str, Any]) -> None:
    """Which statistics BatchNorm uses, where the model with these fields has it."""
    if _has_batch_norm(fields):
        st.selectbox(
            "BatchNorm uses",
            list(BATCH_NORM),
            format_func=BATCH_NORM.__getitem__,
            key="batch_norm",
            help="Stored statistics: each picture is treated alone. Of this batch: as while training; pictures of a batch mix, and the "
            "attacker must guess their statistics with them.",
        )


def batch_norm(model: Part) -> Literal["eval", "batch"]:
    """Which statistics BatchNorm uses; a model without it has no such setting, and none is kept for it."""
    if _has_batch_norm(model.fields):
        return "batch" if st.session_state["batch_norm"] == "batch" else "eval"
    st.session_state.pop("batch_norm", None)
    return "eval"


def _has_batch_norm(fields: dict[str, Any]) -> bool:
    """A model says by its field `norm` that it has BatchNorm."""
    return fields.get("norm") == "batch"


def apply_preset(entry: Entry) -> None:
    """Put a preset's values, and the defaults of all other fields, into the widgets."""
    preset = entry.presets.get(st.session_state.get(f"{entry.id}.preset") or "", {})
    for field in entry.fields:
        st.session_state[f"{entry.id}.{field.name}"] = preset.get(field.name, field.default)


def widget(entry: Entry, field: Field) -> Any:
    """The widget that fits a field: a switch, a menu, a slider for short ranges, else a number."""
    words = field.name.replace("tv_", "TV_").replace("_", " ")
    label, key = words[0].upper() + words[1:], f"{entry.id}.{field.name}"
    if field.type == "bool":
        return st.toggle(label, field.default, key=key, help=field.help, bind="query-params")
    if field.type == "str":
        return st.selectbox(label, field.options, field.options.index(field.default), key=key, help=field.help, bind="query-params")
    number = int if field.type == "int" else float
    assert field.low is not None
    assert field.high is not None
    low, high, value = number(field.low), number(field.high), number(field.default)
    if field.type == "int":
        make = st.slider if high - low <= 128 else st.number_input
        return make(label, low, high, value, key=key, help=field.help, bind="query-params")
    if high <= 1:
        return st.slider(label, low, high, value, 0.001, "%.3f", key=key, help=field.help, bind="query-params")
    return st.number_input(label, low, high, value, value / 10 or 0.001, "%g", key=key, help=field.help, bind="query-params")


def load(experiment: Experiment) -> None:
    """Put an experiment into the widgets (call it before they are drawn)."""
    state = st.session_state
    protection = experiment.defenses[0] if experiment.defenses else Part(id=NONE)
    for kind, part in (
        ("model", experiment.model),
        ("protocol", experiment.protocol),
        ("defense", protection),
        ("attack", experiment.attack),
    ):
        state[kind] = part.id
        for name, value in part.fields.items():
            state[f"{part.id}.{name}"] = value
    state["checkpoint"] = experiment.checkpoint
    state.pop("lost", None)
    state["size"], state["channels"], state["seed"] = experiment.size, experiment.channels, experiment.seed
    state["labels_known"], state["adaptive"] = experiment.assume.labels, experiment.assume.adaptive
    state["max_seconds"], state["batch_norm"] = experiment.max_seconds, experiment.batch_norm
    pictures = experiment.pictures
    state["source"], state["batch"] = pictures[0].source, len(pictures)
    state[PICKED] = [f"{picture.source}:{picture.id}" for picture in pictures]
    state["classes"] = {picture.id: picture.label for picture in pictures if picture.source == "upload"}


def reset(known: Catalog) -> None:
    """Back to the defaults, in the widgets and in the URL; the shown run leaves the page too."""
    for entry in known.entries:
        for field in entry.fields:
            st.session_state[f"{entry.id}.{field.name}"] = field.default
    load(DEFAULT)
    for name in ("run", PICKED):  # the rest of the address belongs to the widgets
        st.query_params.pop(name, None)


def assumptions() -> Assumptions:
    """Two switches for what the attacker is granted; seed and time limit beside them."""
    labels = st.toggle(
        "Knows the labels",
        key="labels_known",
        bind="query-params",
        help="Off: the attacker reads the classes from the gradient, or searches them together with the pictures.",
    )
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        defense = st.toggle(
            "Knows the protection",
            value=True,
            key="adaptive",
            bind="query-params",
            help="On: the attacker imitates the protection (adaptive). Off: it takes the update for a plain gradient (naive).",
        )
        with st.popover("", icon=":material/tune:", help="Seed and time limit", key="fine-run"):
            st.number_input(
                "Seed", 0, 2**31 - 1, DEFAULT.seed, key="seed", bind="query-params", help="Fixes all chance: weights, noise, first guess."
            )
            st.number_input(
                "Time limit (s)",
                1,
                MAX_SECONDS,
                DEFAULT.max_seconds,
                key="max_seconds",
                bind="query-params",
                help="Then the best so far is kept.",
            )
    return Assumptions(labels=labels, adaptive=defense)


def number(key: str) -> int:
    """The value of a whole-number widget."""
    return int(st.session_state[key])
