"""A plug-in as a described value: frozen, flat, every field with a rule and a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from leakage.syntax import read as read_text


def param(default: float, low: float, high: float, sentence: str) -> Any:
    """A number of a plug-in: default, allowed range (both ends included) and the sentence shown beside the widget."""
    return field(default=default, metadata={"low": low, "high": high, "help": sentence})


def choice(default: str, options: Sequence[str], sentence: str) -> Any:
    """One word out of `options`."""
    return field(default=default, metadata={"options": tuple(options), "help": sentence})


def text(default: str, syntax: str, sentence: str) -> Any:
    """Free text in a syntax of `leakage.syntax`, such as "network"."""
    return field(default=default, metadata={"syntax": syntax, "help": sentence})


def flag(default: bool, sentence: str) -> Any:  # noqa: FBT001  (the default is the value, as in `param`)
    """A switch."""
    return field(default=default, metadata={"help": sentence})


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A described value: frozen, flat, every field with a rule, which it must obey, and a sentence. The file's name is its id."""

    title: ClassVar[str]  # the field's term, as a menu shows it
    plain: ClassVar[str]  # one sentence for somebody who has never heard of it
    hint: ClassVar[str]  # what the attacker learns from it, and what to try
    source: ClassVar[str]  # https link to the paper
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # named settings: what differs from the defaults

    def __post_init__(self) -> None:
        for declared in fields(self):
            check_field(f"{type(self).__name__}.{declared.name}", getattr(self, declared.name), declared.type, declared.metadata)


def check_field(name: str, value: object, kind: object, rules: Any) -> None:
    """Raise ValueError with name, expectation and value unless `value` obeys the rules of `param`, `choice`, `text` or `flag`."""
    if "syntax" in rules:
        read_text(rules["syntax"], value, name)
    elif "options" in rules:
        if value not in rules["options"]:
            raise ValueError(f"{name} must be one of {', '.join(rules['options'])}; got {value!r}")
    elif kind is bool:
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be true or false; got {value!r}")
    else:
        whole = kind is int
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise ValueError(f"{name} must be a {'whole ' if whole else ''}number; got {value!r}")
        if not rules["low"] <= value <= rules["high"]:
            raise ValueError(f"{name} must lie in [{rules['low']}, {rules['high']}]; got {value}")
