"""Gaussian noise on the gradient."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import add_variance, average_rounds, change_tensors_at_random
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, Published, Received, StepRng, param


@dataclass(frozen=True, kw_only=True)
class GaussianNoise(Defense):
    """Send g~ = g + N(0, scale^2), drawn independently for every entry and every local step.

    This is not differential privacy: nothing bounds the gradient, so no epsilon can be stated. An adaptive attacker cannot undo the noise
    (`surrogate` is the identity). It can average over rounds while the weights stay the same, or use a stronger prior.
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

        return change_tensors_at_random(client, step_rng, "gaussian_noise", noisy)

    def errors(self, incoming: Params, received: Received) -> Params:
        """Return the incoming error variances plus that of the noise, scale^2, in every entry."""
        return add_variance(incoming, received, self.scale**2)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {**super().strategies(), "average the rounds": average_rounds("gaussian_noise", errors=self.errors)}
