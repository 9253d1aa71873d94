"""How a model can be computed without a change of its numbers: all that is here of our models, of others what a probe has shown."""

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Capabilities:
    """What holds of a model.

    Args:
        vectorised: several guesses can be played at once, by `torch.func.vmap`
        channels_last: its forward runs where the colors of a pixel lie side by side in memory
        rewritten: it holds operations that are computed by other formulas, since torch differentiates them only once or sparsely
        fixed: why it cannot be computed with other weights in place of its own; empty where it can
    """

    vectorised: bool = True
    channels_last: bool = True
    rewritten: bool = False
    fixed: str = ""


def capabilities_of(model: nn.Module) -> Capabilities:
    """Those that were set, of this model or of the one that it was copied from; else those of our models."""
    found: Capabilities = model.__dict__.get("capabilities", Capabilities())
    return found


def set_capabilities(model: nn.Module, found: Capabilities) -> None:
    """From now on this model, and each copy of it, is computed accordingly."""
    model.__dict__["capabilities"] = found
