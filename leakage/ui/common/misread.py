"""One warning for a link that cannot be used in full: it lists each unusable value and what is used instead, until a setting changes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from leakage.spec.catalog import Catalog, CatalogError, Field
from leakage.spec.experiment import VERSION
from leakage.spec.lab_settings import ALONE, CHECKS, NONE, PICKED
from leakage.spec.prepared import prepared
from leakage.ui.common import forms
from leakage.ui.common.markdown import escape

ASKED = "link-asked"  # in session state: the address with which the visitor came
WARNED = "link-told"  # in session state: the sentences of the warning, and the settings in the address beside which they stand
RUNS = ("run", "runs")  # keys of an address that name results; the page itself says when a result is gone
MAX_LETTERS, MAX_SENTENCES = 160, 12  # of a value that is repeated; of the warning
More: TypeAlias = Callable[[Mapping[str, str], Catalog], Iterator[str]]
WORDS: dict[str, Mapping[Any, str]] = {
    "task": forms.TASKS,
    "loss": forms.LOSSES,
    "batch_norm": forms.BATCH_NORM,
    "statistics": forms.STATISTICS,
    "source": forms.SOURCES,
    "adaptive": {name: f"the {words.lower()} attacker" for name, words in forms.ADAPTIVE.items()},
    "accomplice": {ALONE: "nobody"},
    "counter": {forms.USUAL: "the default"},
    "checkpoint": {forms.UNTRAINED: "an untrained model"},
    "defense": {NONE: "no protection"},
    "server": {NONE: "an honest server"},
}


def show_warning(
    place: DeltaGenerator, menus: Mapping[str, Sequence[Any]], fields: Mapping[str, Field], known: Catalog, more: More | None = None
) -> None:
    """Show at `place` which values of the page's address (URL) the widgets did not take, such as an unknown attack.

    The comparison happens once, when a page is drawn for the first time. The warning stays until a setting changes.

    Args:
        place: Where the warning appears.
        menus: The options of every menu of the page by the key of its widget, the default first.
        fields: The other settings of the page by the keys of their widgets.
        known: The catalog of plug-ins.
        more: Yields further sentences, about keys of the address that only this page reads.
    """
    state = st.session_state
    here = {key: value for key, value in st.query_params.to_dict().items() if key not in RUNS}
    if asked := state.pop(ASKED, None):
        unused = [*_menus(asked, menus, known), *_fields(asked, fields), *_others(asked, known), *(more(asked, known) if more else ())]
        state[WARNED] = unused, here
    sentences, settings = state.get(WARNED, ((), here))
    if settings != here:
        del state[WARNED]
    elif sentences:
        shown = [escape(sentence) for sentence in sentences[:MAX_SENTENCES]]
        shown += [escape(f"And {len(sentences) - MAX_SENTENCES} more.")] if len(sentences) > MAX_SENTENCES else []
        place.warning("  \n".join(["**Not all of this link can be used here.**", *shown]), icon=":material/link_off:")


def short(value: str) -> str:
    """Return a value of an address, cut where it is too long to be repeated in a sentence."""
    return value if len(value) <= MAX_LETTERS else f"{value[:MAX_LETTERS]}…"


def _menus(asked: Mapping[str, str], menus: Mapping[str, Sequence[Any]], known: Catalog) -> Iterator[str]:
    for key, options in menus.items():
        used = st.session_state.get(key, options[0])
        if key in asked and str(used) != asked[key]:
            why = "cannot be used here" if asked[key] in map(str, options) else "is not known here"
            yield f"{key}={short(asked[key])} {why}; {_title(key, used, known)} is used instead."


def _title(key: str, used: Any, known: Catalog) -> str:
    """Return the value of a menu in words."""
    entry = known.of("protocol" if key == "aggregation" else key).find(str(used)) if key in (*forms.DEFAULTS, "aggregation") else None
    return entry.title if entry else WORDS.get(key, {}).get(used, str(used))


def _fields(asked: Mapping[str, str], fields: Mapping[str, Field]) -> Iterator[str]:
    for key, field in fields.items():
        if key not in asked or field.syntax:  # the widget of a free text reports errors itself
            continue
        used = st.session_state.get(key, field.default)
        try:
            wanted = field.read(asked[key], key.rpartition(".")[0])
        except CatalogError as error:
            yield f"{short(str(error).lstrip('.').removesuffix('.'))}; {used} is used instead."
        else:
            if used != wanted:
                yield f"{key}={short(asked[key])} cannot be used here; {used} is used instead."


def _others(asked: Mapping[str, str], known: Catalog) -> Iterator[str]:
    """Yield a sentence for another version of links, a missing picture or check, an unknown preset, and each field that no plug-in has."""
    if asked.get("v", str(VERSION)) != str(VERSION):
        yield f"v={short(asked['v'])} is another version of links; this link is read as version {VERSION}."
    picked = st.session_state.get(PICKED, [])
    lost = [name for name in asked.get(PICKED, "").split(",") if name and name not in picked]
    for name in lost:
        instead = "it is left out" if len(lost) < len(asked[PICKED].split(",")) else f"{', '.join(picked) or 'no picture'} is used instead"
        yield f"{PICKED}={short(name)} is not here; {instead}."
    for name in (name for name in asked.get(CHECKS, "").split(",") if name and name not in st.session_state.get(CHECKS, ())):
        yield f"{CHECKS}={short(name)} is not known here; it is left out."
    if "preset" in asked and asked["preset"] not in (preset.name for preset in prepared().presets):
        yield f"preset={short(asked['preset'])} is not known here; no preset is shown."
    entries = {entry.id: entry for entry in known.entries}
    for key in asked:
        id, dot, name = key.partition(".")
        if dot and id in entries and name not in (field.name for field in entries[id].fields):
            has = ", ".join(field.name for field in entries[id].fields) or "no settings"
            yield f"{short(key)} is left out: {entries[id].short} has {has}."
        elif dot and id not in entries:
            yield f"{short(key)} is left out: there is no {short(id)} here."
