"""What a search with Adam minimizes: the distance of gradients and a prior, with its derivative by formula or by autograd."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from leakage.engine.core import Observation
from leakage.engine.lanes import MatchedUpdate
from leakage.engine.matching import Smoothness, to_pixels, total_variation

Prior = Callable[[Tensor], Tensor]  # z (S, B, C, H, W) -> (S,)
Matched = MatchedUpdate | Callable[[Tensor], Tensor]  # pictures (S, B, C, H, W) in pixels -> distances (S,)


@dataclass(frozen=True)
class Unknowns:
    """Unknowns z (S, ...) that a search optimizes in place of pixels.

    decode     z -> pictures (S, B, C, H, W) in pixels
    project    applied to z after every step; None: no projection
    tv_weight  the weight of the total variation of the decoded pictures
    """

    decode: Callable[[Tensor], Tensor]
    project: Callable[[Tensor], Tensor] | None = None
    tv_weight: float = 0.0


class ObjectiveValue(NamedTuple):
    """The objective of S guesses at z, with nothing that autograd could follow.

    x         the pictures of the guesses in pixels, (S, B, C, H, W)
    match     the distance between each guess's gradient and the received gradient, (S,)
    gradient  the derivative of the sum of all losses by z, of its shape
    latents   its derivatives by the latents
    """

    x: Tensor
    match: Tensor
    gradient: Tensor
    latents: tuple[Tensor, ...]


@dataclass(frozen=True)
class Objective:
    """The objective of a search: the distance, where it exceeds `floor`, and the prior.

    Args:
        seen: what the attacker observed
        matched: pictures (S, B, C, H, W) in pixels -> distances (S,)
        prior: z -> a penalty (S,); None: no prior
        unknowns: what z is where it is not pictures
        floor: the distance at which the true pictures are expected; None: 0, or not known
    """

    seen: Observation
    matched: Matched
    prior: Prior | None
    unknowns: Unknowns | None
    floor: Tensor | None

    @cached_property
    def pixels(self) -> Callable[[Tensor], Tensor]:
        """The function from unknowns z to pictures (S, B, C, H, W) in pixels."""
        return self.unknowns.decode if self.unknowns else to_pixels(self.seen)

    def __call__(self, z: Tensor) -> ObjectiveValue:
        """Return the objective at z, which requires its gradient."""
        return self._by_formula(z.detach()) or self._by_autograd(z)

    def _by_formula(self, z: Tensor) -> ObjectiveValue | None:
        """Return the objective where a formula gives its derivative: z is pictures, there are no latents, and the model is known."""
        matched, prior = self.matched, self.prior
        if (
            self.unknowns
            or self.seen.knowledge.latents
            or not isinstance(matched, MatchedUpdate)
            or not isinstance(prior, Smoothness | None)
        ):
            return None
        with torch.no_grad():
            x = self.pixels(z)
            found = matched.derivative_by_formula(x)
            if found is None:
                return None
            match, gradient = found
            if x is not z:  # x = z std + mean
                gradient = gradient * self.seen.scale[1]
            if self.floor is not None:
                gradient = gradient * (match >= self.floor).view(-1, *[1] * (z.dim() - 1))
            if prior:
                gradient = gradient + prior.derivative(z)
        return ObjectiveValue(x, match, gradient, ())

    def _by_autograd(self, z: Tensor) -> ObjectiveValue:
        x = self.pixels(z)
        match = self.matched(x)  # (S,)
        gradient, *latents = torch.autograd.grad(self.loss(z, x, match).sum(), [z, *self.seen.knowledge.latents.values()])
        return ObjectiveValue(x.detach(), match.detach(), gradient, tuple(latents))

    def loss(self, z: Tensor, x: Tensor, match: Tensor) -> Tensor:
        """Return the loss (S,) of each guess: the distance, at least `floor`, and the prior."""
        fit = match if self.floor is None else match.clamp(min=self.floor)
        loss = fit + self.prior(z) if self.prior else fit
        if self.unknowns and self.unknowns.tv_weight:
            loss = loss + self.unknowns.tv_weight * total_variation(x)
        return loss
