"""Tensors of a model by names and patterns: the syntax "tensors" of a plug-in's fields."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

OF = "/"  # in an update of several clients, between a client's number and the name of a tensor that this client sent alone


def name_in_model(name: str) -> str:
    """Return the name that a tensor of an update has in the model: the part after the last "/" (OF), or the whole name without a "/".

    In an update of several clients, "0/linear.weight" is the tensor that client 0 sent alone.

    >>> [name_in_model(name) for name in ("linear.weight", "0/linear.weight", "before/linear.weight")]
    ['linear.weight', 'linear.weight', 'linear.weight']
    """
    return name.rpartition(OF)[2]


def tensors_named(text: str, names: Iterable[str], where: str = "") -> list[str]:
    """Select the tensors that a text names: by name, by a pattern with * and ?, or by `first` and `last` for a layer.

    Args:
        text: words, separated by spaces.
        names: the names of the model's tensors, in the model's order.
        where: the field of the text, for the error message; empty: words that match no tensor are ignored.

    Returns:
        The selected names, in the model's order.

    Raises:
        ValueError: `where` is given, and a word matches no tensor; the message lists the tensors.

    >>> tensors_named("last", ["conv.weight", "conv.bias", "linear.weight", "linear.bias"])
    ['linear.weight', 'linear.bias']
    >>> tensors_named("*.bias conv.*", ["conv.weight", "conv.bias", "linear.weight", "linear.bias"])
    ['conv.weight', 'conv.bias', 'linear.bias']
    """
    every, found = list(names), set[str]()
    for word in text.split():
        layer = every[0 if word == "first" else -1].rpartition(".")[0] if every else ""
        matching = {name for name in every if (name.rpartition(".")[0] == layer if word in ("first", "last") else fnmatchcase(name, word))}
        if where and not matching:
            raise ValueError(
                f"{where}: no tensor of this model is called {word!r}; it has {', '.join(every)}. "
                "Name some of these, a pattern such as *.bias, or first or last."
            )
        found |= matching
    return [name for name in every if name in found]
