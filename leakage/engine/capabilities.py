"""How a model can be computed without changing its numbers: the defaults hold for built-in models, a probe finds those of other models."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Capabilities:
    """Which ways of computing a model are possible.

    Args:
        vectorised: whether `torch.func.vmap` can compute several guesses at once
        channels_last: whether the forward pass runs when the color channels of a pixel lie side by side in memory
        rewritten: whether the model holds operations that torch differentiates only once or only sparsely; they are computed by other
            formulas
        fixed: the reason why the model cannot be computed with other weights; empty where it can
        programs: finds the compiled program of a step for pictures x and labels y, where there is one
        formula: whether the derivative of its gradient may be computed by formula (`engine.formula`); autograd computes it otherwise
        image_shape: (C, H, W) of the pictures of a client; () where that is not decided yet
    """

    vectorised: bool = True
    channels_last: bool = True
    rewritten: bool = False
    fixed: str = ""
    formula: bool = True
    programs: Callable[[Any, Tensor, Tensor], Callable[..., tuple[Tensor, Tensor]] | None] = lambda _step, _x, _y: None
    image_shape: tuple[int, ...] = ()


def capabilities_of(model: nn.Module) -> Capabilities:
    """Return the capabilities that were set for a model or for the model that it was copied from; the defaults where none were set."""
    capabilities: Capabilities = model.__dict__.get("capabilities", Capabilities())
    return capabilities


def set_capabilities(model: nn.Module, capabilities: Capabilities) -> None:
    """Set how a model, and each later copy of it, is computed."""
    model.__dict__["capabilities"] = capabilities
