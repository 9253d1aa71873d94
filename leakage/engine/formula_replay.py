"""What a search may ask of a formula for the gradients of its guesses."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from torch import Tensor

GradientsAndVjp: TypeAlias = tuple[dict[str, Tensor], Callable[[dict[str, Tensor]], Tensor]]
"""Gradients g of guesses; v -> the derivative of <v, g> by the guesses."""
DistanceAndDerivative: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Guesses x (S, B, C, H, W) -> their distances (S,) from the update, and the derivatives of these by x."""


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

    def compiled(self, distance: object, x: Tensor, y: Tensor) -> DistanceAndDerivative | None:
        """Return a compiled function for guesses of the shape of x, with `distance` between gradients; None where none is ready."""
        ...
