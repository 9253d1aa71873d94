"""Protections and servers as short text for menus and addresses, and what menus offer of them, from the catalog."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from leakage.results.differences import sentence_case, titles
from leakage.spec.aliases import fields_today, plugin_today
from leakage.spec.catalog import Catalog, Field
from leakage.spec.experiment import Experiment, Part
from leakage.spec.lab_settings import NONE
from leakage.spec.plugin_menu import menu_entries


def key_of(defenses: Sequence[Part], known: Catalog, kind: str = "defense") -> str:
    """Return protections, in their order, as a short text without defaults, such as "pruning:fraction=0.5" or "none"; "+" joins several.

    Args:
        defenses: the protections, or other plug-ins of one kind.
        known: the plug-ins.
        kind: the kind of `defenses`.
    """
    texts = []
    for part in defenses:
        usual = {field.name: field.default for entry in known.of(kind) if entry.id == part.id for field in entry.fields}
        fields = ";".join(f"{name}={value}" for name, value in part.fields.items() if value != usual.get(name))
        texts.append(f"{part.id}:{fields}" if fields else part.id)
    return "+".join(texts) or NONE


def parse_key(key: str, known: Catalog, kind: str = "defense") -> tuple[Part, ...]:
    """Parse a text that `key_of` wrote of a kind of plug-in; raise ValueError for names and values that the catalog does not have."""
    defenses = []
    for text in [] if key == NONE else key.split("+"):
        id, _, written = text.partition(":")
        entry = known.of(kind).get(id)
        kinds = {field.name: field.type for field in entry.fields}
        fields = {name: parse_value(kinds.get(name, "str"), word) for name, word in _written_fields(id, written).items()}
        entry.resolve(fields)
        defenses.append(Part(id=id, fields=fields))
    return tuple(defenses)


def key_today(key: str) -> str:
    """Return a key that an earlier version wrote, with today's names of the protections and their fields.

    >>> key_today("dp_sgd:sigma=0.1;clip=2+pruning")
    'dp_sgd:noise_multiplier=0.1;max_grad_norm=2+pruning'
    """
    parts = [(plugin_today(id), colon, written) for id, colon, written in (text.partition(":") for text in key.split("+"))]
    return "+".join(id + colon + ";".join(map("=".join, _written_fields(id, written).items())) for id, colon, written in parts)


def _written_fields(id: str, written: str) -> dict[str, str]:
    """Return the fields of "sigma=0.1;clip=2" under today's names."""
    pairs = [pair.partition("=") for pair in written.split(";") if pair]
    return fields_today(id, {name: word for name, _, word in pairs})


def parse_value(kind: str, word: str) -> bool | int | float | str:
    """Convert a word to the type of a field ("bool", "int", "float" or "str"); raise ValueError where it does not fit."""
    if kind == "bool":
        if word.lower() not in ("true", "false"):
            raise ValueError(f"allowed is true or false, given was {word!r}.")
        return word.lower() == "true"
    return int(word) if kind == "int" else float(word) if kind == "float" else word


def known_keys(keys: Iterable[str], known: Catalog, kind: str = "defense") -> list[str]:
    """Return the keys that name plug-ins of this kind in the catalog, each once, with today's names of plug-ins and fields."""
    valid = []
    for key in dict.fromkeys(map(key_today, keys)):
        with suppress(ValueError):
            parse_key(key, known, kind)
            valid.append(key)
    return valid


def ready_made(known: Catalog) -> list[str]:
    """List the protections that menus offer, as texts of `key_of`, with "none" first.

    Each defense is offered with its presets, or with its defaults if it has no presets. A defense with exactly one number is also offered
    with several values of the number; another defense with a word as its first field is also offered with every option of that field.
    """
    keys = [NONE]
    for entry in menu_entries(known, "defense"):
        numbers = [field for field in entry.fields if field.type in ("int", "float")]
        kinds: list[dict[str, Any]] = list(entry.presets.values()) or [{}]
        if len(numbers) == 1:
            kinds += [{numbers[0].name: value} for value in strength_values(numbers[0], (0.1, 1, 10), (5, 1, 0.1))]
        elif entry.fields and entry.fields[0].type == "str":
            kinds += [{entry.fields[0].name: word} for word in entry.fields[0].options]
        stacks = [(Part(id=entry.id, fields=fields),) for fields in kinds]
        keys += sorted((key_of(stack, known) for stack in stacks), key=lambda key: key != entry.id)  # the defaults come first
    return list(dict.fromkeys(keys))


def strength_values(field: Field, factors: Sequence[float], left: Sequence[float]) -> list[float]:
    """Return the default of a numeric field multiplied by `factors`, inside its range, sorted.

    For a fraction above one half, the distance to 1 is multiplied by `left` instead, as in 0.5, 0.9, 0.99.
    """
    assert field.low is not None
    assert field.high is not None
    usual = float(field.default)
    values = [1 - (1 - usual) * times for times in left] if 0.5 < usual <= field.high <= 1 else [usual * times for times in factors]
    rounded = [round(value) if field.type == "int" else float(f"{value:.6g}") for value in values]
    return sorted({value for value in rounded if field.low <= value <= field.high})


def short_names(keys: Sequence[str], known: Catalog) -> dict[str, str]:
    """Return a short title for each key of protections, made of what distinguishes these protections: key -> title."""
    words = titles([Experiment().model_copy(update={"defenses": parse_key(key, known)}) for key in keys], known)
    return dict(zip(keys, map(sentence_case, words), strict=True))
