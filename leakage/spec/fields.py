"""What a plug-in declares as data: its fields, each with default, check, widget and help text; and what pages say of it. No torch."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from leakage.spec.syntax import read as read_text
from leakage.spec.words import short_repr

KINDS = {"attack": "attacks", "defense": "defenses", "protocol": "protocols", "model": "models"}  # kind of plug-in -> its folder
Structure: TypeAlias = Literal["linear", "sequence"]  # of a model: its last layer with weights is linear; that follows others in a sequence
TYPES = {"int": int, "float": float, "bool": bool, "str": str}


class CatalogError(ValueError):
    """A name or value that no plug-in allows; the message names it, what is allowed and what was given."""


@dataclass(frozen=True)
class Field:
    """One setting of a plug-in: a number with a range, a word out of options, a text in a syntax, or a switch."""

    name: str
    type: str  # one of TYPES
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    options: tuple[str, ...] = ()
    syntax: str = ""  # of a free text: a name of `syntax.SYNTAXES`

    def read(self, word: str, where: str) -> Any:
        """The value that a word means, as an address or a file of text holds it. Raises CatalogError."""
        value: Any = {"true": True, "false": False}.get(word.lower(), word) if self.type == "bool" else word
        if self.type in ("int", "float"):
            with suppress(ValueError):
                value = TYPES[self.type](word)
        return self.check(value, where)

    def check(self, value: Any, where: str) -> Any:
        """`value` in the field's type, a text in its one spelling. Raises CatalogError."""
        if self.syntax:
            try:
                return read_text(self.syntax, value, f"{where}.{self.name}")
            except ValueError as error:
                raise CatalogError(str(error)) from None
        if self.type == "str":
            allowed, good = " or ".join(repr(word) for word in self.options), value in self.options
        elif self.type == "bool":
            allowed, good = "true or false", isinstance(value, bool)
        else:
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            number = isinstance(value, int | float) and not isinstance(value, bool) and (self.type == "float" or whole)
            allowed = f"a {'whole ' if self.type == 'int' else ''}number from {self.low} to {self.high}"
            good = number and self.low <= value <= self.high
        if not good:
            raise CatalogError(f"{where}.{self.name}: allowed is {allowed}, given was {short_repr(value)}.")
        return TYPES[self.type](value)


@dataclass(frozen=True)
class Travels:
    """What a protocol sends and what its phones keep, in words; without these a page speaks of an update, and of what it does.

    what       what is sent, to stand after "the"
    kept       what a phone keeps from round to round besides its pictures, as symbols
    without_steps  what a phone does that takes no local steps
    proximal   its local steps are pulled back, which is drawn
    imitated   what an adaptive attacker does about it; {steps} stands for the local steps
    overlooked  what a naive attacker overlooks besides the local steps
    one_step   after a single local step, what is sent is the gradient times a number that everybody knows
    other_sums  of what is laid over others: what arrives beside the sum, by the field that is on, or counts the phones of it, as in {field}
    receiver   of what is laid over others: who it arrives at, and attacks
    """

    what: str = "update"
    kept: str = ""
    without_steps: str = ""
    proximal: bool = False
    imitated: str = ""
    overlooked: str = ""
    one_step: bool = False
    other_sums: Mapping[str, str] = field(default_factory=dict)
    receiver: str = "the server"

    def beside_sum(self, fields: Mapping[str, Any], clients: int) -> str:
        """What arrives beside the sum of all phones, in words; a sum that counts them all is no other one.

        >>> ring = Travels(other_sums={"place": "the sum of {place}", "colluding": "one update"})
        >>> [ring.beside_sum({"place": place, "colluding": place == 1}, 2) for place in (1, 2)]
        ['the sum of 1 phone and one update', '']
        """
        held = {name: fields[name] for name in self.other_sums if fields[name] is True or 0 < fields[name] < clients}
        many = {name: f"{count} phone{'' if count == 1 else 's'}" for name, count in held.items()}
        return " and ".join(self.other_sums[name].format(**many) for name in held)


@dataclass(frozen=True)
class Published:
    """From which strength on a protection was reported to stop DLG.

    words   the report in a sentence
    field   the number that is the strength, if it is one
    ends    of that number: where the attack began to fail, and where it failed for certain
    """

    words: str
    field: str = ""
    ends: tuple[float, float] = (0.0, 0.0)
