"""Free text in a field of a plug-in: how each kind is read, what it must fit, and its grammar. No torch."""

from collections.abc import Callable
from dataclasses import dataclass

from leakage.networks import grammar
from leakage.spec.words import short_repr


@dataclass(frozen=True)
class Syntax:
    """One kind of text. Both functions raise ValueError with a sentence for whoever wrote the text.

    canonical    the text in the one spelling that is stored
    check_fit    (text, image_shape, outputs): whether it goes with pictures (C, H, W) and so many outputs
    grammar      what may be written, in Markdown; forms: the same as a list of examples
    """

    canonical: Callable[[str], str]
    check_fit: Callable[[str, tuple[int, int, int], int], None]
    grammar: str
    forms: str


SYNTAXES = {"network": Syntax(grammar.canonical, grammar.check_fit, grammar.GRAMMAR, grammar.FORMS)}


def read(syntax: str, value: object, where: str) -> str:
    """A text in its one spelling. Raises ValueError naming the field."""
    if not isinstance(value, str):
        raise ValueError(f"{where}: allowed is a text, given was {short_repr(value)}.")
    try:
        return SYNTAXES[syntax].canonical(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
