"""A plug-in as a described value: frozen, flat, every field with a rule and a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from leakage.spec.declarations import Declarations
from leakage.spec.fields import Field


def param(default: float, low: float, high: float, sentence: str) -> Any:
    """A number of a plug-in: default, allowed range (both ends included) and the sentence shown beside the widget."""
    return field(default=default, metadata={"low": low, "high": high, "help": sentence})


def choice(default: str, options: Sequence[str], sentence: str) -> Any:
    """One word out of `options`."""
    return field(default=default, metadata={"options": tuple(options), "help": sentence})


def text(default: str, syntax: str, sentence: str) -> Any:
    """Free text in a syntax of `leakage.spec.syntax`, such as "network"."""
    return field(default=default, metadata={"syntax": syntax, "help": sentence})


def flag(default: bool, sentence: str) -> Any:
    """A switch."""
    return field(default=default, metadata={"help": sentence})


@dataclass(frozen=True, kw_only=True)
class Plugin(Declarations):
    """A described value: frozen, flat, every field with a rule, which it must obey, and a sentence. The file's name is its id."""

    def __post_init__(self) -> None:
        for declared in described(type(self)):
            # In the field's type: 2 for a number with a point becomes 2.0, as it does on its way through JSON.
            object.__setattr__(self, declared.name, declared.check(getattr(self, declared.name), type(self).__name__))

    @property
    def id(self) -> str:
        """The name of the file that it is written in."""
        return type(self).__module__.rpartition(".")[2]


def described(plugin: type[Plugin]) -> tuple[Field, ...]:
    """The fields of a plug-in, in their order."""
    return tuple(
        Field(name=own.name, type=getattr(own.type, "__name__", str(own.type)), default=own.default, **own.metadata)
        for own in fields(plugin)
    )
