"""Errors of the caller's model, as a sentence that names the layer."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

MODEL_ERRORS = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError, ArithmeticError, OSError, ImportError)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or the error's type where the message is empty."""
    text = (str(error).strip() or type(error).__name__).split("\n")[0]
    return text.rstrip(".")


def failing_layer(model: nn.Module, error: Exception) -> str | None:
    """Return name and type of the innermost layer that raised the error; None where no layer of the model is in its traceback."""
    named = {id(layer): name for name, layer in model.named_modules()}
    innermost, trace = None, error.__traceback__
    while trace is not None:
        layer = trace.tb_frame.f_locals.get("self")
        if isinstance(layer, nn.Module) and id(layer) in named:
            innermost = layer_name(named[id(layer)], layer)
        trace = trace.tb_next
    return innermost


def layer_name(name: str, layer: nn.Module) -> str:
    """Return a layer's name and type as an error message shows them.

    >>> layer_name("0.act", nn.ReLU()), layer_name("", nn.ReLU())
    ('layer 0.act (ReLU)', 'ReLU.forward')
    """
    return f"layer {name} ({type(layer).__name__})" if name else f"{type(layer).__name__}.forward"


@contextmanager
def explained(model: nn.Module) -> Iterator[None]:
    """Turn an error that a layer of the model raises inside the `with` block into a ValueError that names the layer.

    All other errors stay as they are.
    """
    try:
        yield
    except MODEL_ERRORS as error:
        layer = failing_layer(model, error)
        if layer is None:
            raise
        raise ValueError(
            f"The model cannot be computed as this attack needs it: {layer} fails ({first_line(error)}). Change that layer, or choose "
            "an attack, defense or protocol that takes the pictures as the model does."
        ) from error
