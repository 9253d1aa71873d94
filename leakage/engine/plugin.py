"""A plug-in: a frozen, flat dataclass of which every field has a default, an allowed range and a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from leakage.spec.declarations import Declarations
from leakage.spec.fields import Field


def param(default: float, low: float, high: float, sentence: str) -> Any:
    """Declare a number: its default, its allowed range (both ends included), and the sentence beside its widget."""
    return field(default=default, metadata={"low": low, "high": high, "help": sentence})


def choice(default: str, options: Sequence[str], sentence: str) -> Any:
    """Declare a choice of one word from `options`, and the sentence beside its widget."""
    return field(default=default, metadata={"options": tuple(options), "help": sentence})


def text(default: str, syntax: str, sentence: str) -> Any:
    """Declare a text in a syntax of `leakage.spec.syntax`, such as "network", and the sentence beside its widget."""
    return field(default=default, metadata={"syntax": syntax, "help": sentence})


def flag(default: bool, sentence: str) -> Any:
    """Declare a switch, and the sentence beside its widget."""
    return field(default=default, metadata={"help": sentence})


@dataclass(frozen=True, kw_only=True)
class Plugin(Declarations):
    """A frozen, flat value that checks every field by the field's declaration. The name of its file is its id."""

    def __post_init__(self) -> None:
        for declared in described(type(self)):
            # `check` converts to the field's type: 2 becomes 2.0 in a float field, as it does in JSON.
            object.__setattr__(self, declared.name, declared.check(getattr(self, declared.name), type(self).__name__))

    @property
    def id(self) -> str:
        """The name of the file that defines the plug-in, without its extension."""
        return type(self).__module__.rpartition(".")[2]


def described(plugin: type[Plugin]) -> tuple[Field, ...]:
    """Return the declarations of a plug-in's fields, in the order of the fields."""
    return tuple(
        Field(name=entry.name, type=getattr(entry.type, "__name__", str(entry.type)), default=entry.default, **entry.metadata)
        for entry in fields(plugin)
    )
