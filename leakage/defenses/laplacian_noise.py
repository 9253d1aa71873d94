"""Laplacian noise on the gradient."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import add_variance, average_rounds, change_tensors_at_random
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, Published, Received, StepRng, param


@dataclass(frozen=True, kw_only=True)
class LaplacianNoise(Defense):
    """Send g~ = g + Laplace(0, scale), drawn independently for every entry and every local step; its deviation is scale * sqrt(2).

    The noise is -scale * sign(u) * ln(1 - 2 |u|) with u ~ U(-1/2, 1/2). As with Gaussian noise, nothing bounds the gradient, so no
    epsilon can be stated, and an adaptive attacker cannot undo the noise.
    Source: Zhu et al. 2019, section 5.1.
    """

    title = "Random noise with large outliers (Laplacian)"
    short = "Laplacian noise"
    plain = "Before sending, the phone adds a random number to every entry of the gradient: mostly a small number, sometimes a large one."
    hint = "At the same scale it hides a little more than Gaussian noise, because it is 1.4 times as strong. Try 0.001, then 0.1."
    imitation = "the noise cannot be computed again, so knowing of it does not help here"
    elementwise = True
    published = Published("Published: no picture from 0.01 on.", "scale", (1e-3, 1e-2))
    source = "https://arxiv.org/abs/1906.08935"

    scale: float = param(0.01, 0, 10, "Scale b of the noise, in units of the gradient's entries (deviation 1.4 b). 0 switches it off.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def noisy(g: Tensor, rng: torch.Generator) -> Tensor:
            u = torch.rand(g.shape, generator=rng, dtype=torch.float64) - 0.5
            return g - self.scale * (u.sign() * torch.log1p(-2 * u.abs().clamp(max=0.5 - 2**-54))).to(g)

        return change_tensors_at_random(client, step_rng, "laplacian_noise", noisy)

    def errors(self, incoming: Params, received: Received) -> Params:
        """Return the incoming error variances plus that of the noise, 2 scale^2, in every entry."""
        return add_variance(incoming, received, 2 * self.scale**2)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {**super().strategies(), "average the rounds": average_rounds("laplacian_noise", errors=self.errors)}
