"""The fields of a plug-in as data, each with default, check, widget and help text. No torch."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from leakage.spec.syntax import read as read_text
from leakage.spec.words import short_repr

KINDS = {  # kind of plug-in -> its folder
    "attack": "attacks",
    "defense": "defenses",
    "protocol": "protocols",
    "model": "models",
    "server": "servers",
    "check": "checks",
}
TYPES = {"int": int, "float": float, "bool": bool, "str": str}


class CatalogError(ValueError):
    """A name or value that no plug-in allows; the message names it, what is allowed and what was given."""


@dataclass(frozen=True)
class Field:
    """One setting of a plug-in: a number with a range, a word out of options, a text in a syntax, or a switch."""

    name: str
    type: str
    """One of TYPES."""
    default: Any
    help: str
    """The sentence beside its widget."""
    low: int | float | None = None
    """The smallest number allowed. None: the field is no number."""
    high: int | float | None = None
    """The largest number allowed. None: the field is no number."""
    options: tuple[str, ...] = ()
    """The words allowed."""
    syntax: str = ""
    """The name of the syntax of a free text, in `syntax.SYNTAXES`. Empty: the field is no free text."""

    def read(self, word: str, where: str) -> Any:
        """Convert a word of an address or a text file to the field's value; raise CatalogError if it is not allowed.

        Args:
            word: the value as text, for example "true" or "0.5".
            where: the plug-in, for the error message.
        """
        value: Any = {"true": True, "false": False}.get(word.lower(), word) if self.type == "bool" else word
        if self.type in ("int", "float"):
            with suppress(ValueError):
                value = TYPES[self.type](word)
        return self.check(value, where)

    def check(self, value: Any, where: str) -> Any:
        """Return the value in the field's type, a free text in its canonical form; raise CatalogError if it is not allowed.

        Args:
            value: what was given.
            where: the plug-in, for the error message.
        """
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
