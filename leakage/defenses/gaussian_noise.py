"""Gaussian noise on the gradient."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import added, at_random, averaging
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, Published, Received, StepRng, param


@dataclass(frozen=True, kw_only=True)
class GaussianNoise(Defense):
    """g~ = g + N(0, scale^2), independently for every entry and every local step.

    Not differential privacy: nothing bounds the gradient, so no epsilon can be stated. An attacker who knows the noise cannot undo it
    (`surrogate` is the identity); it can only average over rounds, where weights stay as they are, or lean on a stronger prior.
    Source: Zhu et al. 2019, section 5.1.
    """

    title = "Random noise (Gaussian)"
    short = "Gaussian noise"
    plain = "Before sending, the phone adds a random number to every entry of the gradient."
    hint = "Noise drowns the picture when it is about as large as the gradient; by then the model learns little. Try 0.001, then 0.1."
    imitation = "the noise cannot be computed again, so knowing of it does not help here"
    elementwise = True
    published = Published("Published: no picture from 0.01 on.", "scale", (1e-3, 1e-2))
    source = "https://arxiv.org/abs/1906.08935"

    scale: float = param(0.01, 0, 10, "Standard deviation of the noise, in units of the gradient's entries. 0 switches it off.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def noisy(g: Tensor, rng: torch.Generator) -> Tensor:
            return g + self.scale * torch.randn(g.shape, generator=rng).to(g)

        return at_random(client, step_rng, "gaussian_noise", noisy)

    def errors(self, incoming: Params, received: Received) -> Params:
        """The noise: scale^2 in every entry."""
        return added(incoming, received, self.scale**2)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {**super().strategies(), "average the rounds": averaging("gaussian_noise", errors=self.errors)}
