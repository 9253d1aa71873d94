"""What a forward that is not ours raises, as one sentence that names the layer."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

MODEL_ERRORS = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError, ArithmeticError, OSError, ImportError)


def first_line(error: Exception) -> str:
    """What an error says, in one line; its kind where it says nothing."""
    text = (str(error).strip() or type(error).__name__).split("\n")[0]
    return text.rstrip(".")


def failing_layer(model: nn.Module, error: Exception) -> str | None:
    """The innermost layer of the model in whose code the error arose, by name and kind; None where it arose elsewhere."""
    named = {id(layer): name for name, layer in model.named_modules()}
    found, trace = None, error.__traceback__
    while trace is not None:
        layer = trace.tb_frame.f_locals.get("self")
        if isinstance(layer, nn.Module) and id(layer) in named:
            found = layer_name(named[id(layer)], layer)
        trace = trace.tb_next
    return found


def layer_name(name: str, layer: nn.Module) -> str:
    """A layer as a sentence calls it.

    >>> layer_name("0.act", nn.ReLU()), layer_name("", nn.ReLU())
    ('layer 0.act (ReLU)', 'ReLU.forward')
    """
    return f"layer {name} ({type(layer).__name__})" if name else f"{type(layer).__name__}.forward"


@contextmanager
def explained(model: nn.Module) -> Iterator[None]:
    """Within it, what a layer of the model raises becomes a ValueError that names the layer; all other errors stay as they are."""
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
