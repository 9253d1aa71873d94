"""What a search may ask of a formula for the gradients of its guesses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from torch import Tensor

GradientsAndVjp: TypeAlias = tuple[dict[str, Tensor], Callable[[dict[str, Tensor]], Tensor]]
"""Gradients g of guesses; v -> the derivative of <v, g> by the guesses."""
DistanceAndDerivative: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Guesses x (S, B, C, H, W) -> their distances (S,) from the update, and the derivatives of these by x."""


@dataclass(frozen=True)
class ReadyStep:
    """The distances and derivatives of guesses of one shape, computed without Python.

    compute      guesses (S, B, C, H, W) -> their distances and derivatives
    is_compiled  True: a compiled program computes them; False: a list of torch calls, with the digits of the formula
    """

    compute: DistanceAndDerivative
    is_compiled: bool


class FormulaReplay(Protocol):
    """The gradients of guesses at the weights that the client received, and their derivatives, by formula.

    Guesses are x (S, B, C, H, W) with labels y (S, B), or probabilities (S, B, K).
    """

    def exists(self) -> bool:
        """Return whether there is a formula; else autograd has to compute, and the other methods return None."""
        ...

    def vjp(self, x: Tensor, y: Tensor) -> GradientsAndVjp | None:
        """Return the gradients that `Replay.from_gradients` takes, and their vector-Jacobian product."""
        ...

    def ready(self, distance: object, x: Tensor, y: Tensor) -> ReadyStep | None:
        """Return a step for guesses of the shape of x, with `distance` between gradients; None where `vjp` has to compute each anew."""
        ...
