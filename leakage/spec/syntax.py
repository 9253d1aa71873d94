"""Free text in a field of a plug-in: how each kind is read, what it must fit, and its grammar. No torch."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from leakage.networks import grammar
from leakage.spec.words import short_repr

NAME, MOST_NAMES = re.compile(r"[\w.*?]{1,100}", re.ASCII), 50
TENSORS = (
    "Write names apart by spaces: `linear.weight`; patterns: `*.bias`; or `first` and `last` for the tensors of the first and last layer."
)


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


def tensors(text: str) -> str:
    """Names of tensors, or patterns, apart by spaces; each once. Raises ValueError.

    >>> tensors("linear.weight,  *.bias linear.weight")
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
    "tensors": Syntax(tensors, lambda _text, _shape, _outputs: None, TENSORS, "`last` \\| `first` \\| `*.bias` \\| `linear.weight`"),
}


def read(syntax: str, value: object, where: str) -> str:
    """A text in its one spelling. Raises ValueError naming the field."""
    if not isinstance(value, str):
        raise ValueError(f"{where}: allowed is a text, given was {short_repr(value)}.")
    try:
        return SYNTAXES[syntax].canonical(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
