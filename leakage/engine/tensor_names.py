"""Tensors of a model by names and patterns, as fields of a plug-in hold them (syntax "tensors")."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

OF = "/"  # in an update of several clients, between a client's number and the name of a tensor that arrived of it alone


def name_in_model(name: str) -> str:
    """How the model calls a tensor of an update, whose name may say first of which clients it is.

    >>> [name_in_model(name) for name in ("linear.weight", "0/linear.weight", "before/linear.weight")]
    ['linear.weight', 'linear.weight', 'linear.weight']
    """
    return name.rpartition(OF)[2]


def tensors_named(text: str, names: Iterable[str], where: str = "") -> list[str]:
    """Those of a model's tensors, in its order, that a text means: names, patterns with * and ?, `first` and `last`.

    Args:
        text: words apart by spaces.
        names: of the model's tensors, in its order.
        where: which field the text is of; then a word that means no tensor is refused.

    Returns:
        Some of `names`.

    Raises:
        ValueError: a word means no tensor, with the tensors that there are.

    >>> tensors_named("last", ["conv.weight", "conv.bias", "linear.weight", "linear.bias"])
    ['linear.weight', 'linear.bias']
    >>> tensors_named("*.bias conv.*", ["conv.weight", "conv.bias", "linear.weight", "linear.bias"])
    ['conv.weight', 'conv.bias', 'linear.bias']
    """
    every, found = list(names), set[str]()
    for word in text.split():
        layer = every[0 if word == "first" else -1].rpartition(".")[0] if every else ""
        meant = {name for name in every if (name.rpartition(".")[0] == layer if word in ("first", "last") else fnmatchcase(name, word))}
        if where and not meant:
            raise ValueError(
                f"{where}: no tensor of this model is called {word!r}; it has {', '.join(every)}. "
                "Name some of these, a pattern such as *.bias, or first or last."
            )
        found |= meant
    return [name for name in every if name in found]
