"""DP-SGD: every picture's gradient clipped, then noise on their sum."""

from dataclasses import dataclass

from torch import nn

from leakage.defenses._each import added, averaging, shortened
from leakage.defenses._per_example import one_by_one, refuse_mixed_pictures
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, Received, StepRng, param


@dataclass(frozen=True, kw_only=True)
class DPSGD(Defense):
    """g~ = (1/B) (sum_b g_b min(1, clip / ||g_b||) + N(0, sigma^2 clip^2 I)), in every local step; g_b is the gradient of picture b alone.

    The norm is that of the whole gradient. One picture more or less changes the sum by at most `clip`, hence (epsilon, delta)-differential
    privacy: sigma = 1 and one upload give epsilon 4.39 at delta = 1e-5 (`accounting`). A protection that acts before this one acts on
    every picture's gradient. BatchNorm with the statistics of the batch mixes the pictures and is refused; with stored ones it is allowed.
    An attacker who knows it clips the gradients of its own pictures likewise, without noise; and may average what it received over
    rounds, which epsilon allows for: it grows with every round.
    Unlike the paper: the batch is the client's, not drawn at random, so nothing is gained by sampling.
    Source: Abadi et al. 2016, algorithm 1.
    """

    title = "A limit for each picture and noise (DP-SGD)"
    short = "DP-SGD"
    plain = "The phone limits how much each picture can say, and then adds random noise to match."
    hint = "The limit alone changes little: set sigma to 0. At 1 no attack measured here shows a picture, and the model learns less."
    imitation = "it limits its own pictures likewise; the noise cannot be computed again"
    one_by_one = True
    source = "https://arxiv.org/abs/1607.00133"

    clip: float = param(
        1.0, 1e-6, 1e6, "The longest that the gradient of one picture may be (C). BatchNorm must use its stored statistics for it."
    )
    sigma: float = param(1.0, 0, 100, "Noise on the sum, as a multiple of that length (noise multiplier). 0 switches the noise off.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        refuse_mixed_pictures(model, self.short)
        return one_by_one(client, "dp_sgd", self._clip, noise=lambda _step: self.sigma * self.clip, step_rng=step_rng)

    def surrogate(self, client: Client, received: Params) -> Client:
        return one_by_one(client, "dp_sgd", self._clip)

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """(sigma clip / B)^2 in every entry, as each picture's own gradient is clipped before; of noisy ones it is not known."""
        return None if incoming else added({}, received, (self.sigma * self.clip / received.pictures) ** 2)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {**super().strategies(), "average the rounds": averaging("dp_sgd", self.surrogate, self.errors)}

    def multiplier(self, tensors: int) -> float:
        return self.sigma

    def _clip(self, g: Params, _step: int) -> Params:
        return shortened(g, self.clip)
