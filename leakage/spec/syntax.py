"""Free text in a field of a plug-in: how each kind is read, what it must fit, and its grammar. No torch."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from leakage.networks import grammar
from leakage.spec.words import short_repr

NAME, MOST_NAMES = re.compile(r"[\w.*?]{1,100}", re.ASCII), 50
TENSORS = "Separate names by spaces: `linear.weight`; patterns: `*.bias`; or `first` and `last` for the tensors of these layers."


@dataclass(frozen=True)
class Syntax:
    """A kind of free text in a field of a plug-in, such as a list of tensors: functions that check it, and its grammar.

    Both functions (`canonical`, `check_fit`) raise ValueError with a sentence for the author of the text.
    """

    canonical: Callable[[str], str]
    """Returns the text in the form that is stored."""
    check_fit: Callable[[str, tuple[int, int, int], int], None]
    """Called with the text, the shape (C, H, W) of a picture and the number of outputs; raises ValueError if they do not fit."""
    grammar: str
    """What may be written, in Markdown."""
    forms: str
    """The grammar as a list of examples."""


def canonical_tensors(text: str) -> str:
    """Return names or patterns of tensors in the stored form: separated by one space, each once.

    Raises:
        ValueError: if a name is not allowed, or there are too many.

    >>> canonical_tensors("linear.weight,  *.bias linear.weight")
    'linear.weight *.bias'
    """
    words = list(dict.fromkeys(text.replace(",", " ").split()))
    for word in words:
        if not NAME.fullmatch(word):
            raise ValueError(f"a tensor is named by letters, digits, dots, _, * and ?; given was {short_repr(word)}. {TENSORS}")
    if len(words) > MOST_NAMES:
        raise ValueError(f"allowed are at most {MOST_NAMES} names, given were {len(words)}. Use patterns such as *.bias.")
    return " ".join(words)


SYNTAXES = {
    "network": Syntax(grammar.canonical, grammar.check_fit, grammar.GRAMMAR, grammar.FORMS),
    "tensors": Syntax(
        canonical_tensors, lambda _text, _shape, _outputs: None, TENSORS, "`last` \\| `first` \\| `*.bias` \\| `linear.weight`"
    ),
}


def read(syntax: str, value: object, where: str) -> str:
    """Return a text in its stored form; raise ValueError with the field's name if it is not allowed.

    Args:
        syntax: a name of `SYNTAXES`.
        value: the text.
        where: the field, for the error message.
    """
    if not isinstance(value, str):
        raise ValueError(f"{where}: allowed is a text, given was {short_repr(value)}.")
    try:
        return SYNTAXES[syntax].canonical(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
