"""Fed-CDP: every layer of every picture's gradient clipped, then noise on their sum."""

import math
from dataclasses import dataclass

from torch import nn

from leakage.defenses._each import added, averaging, each_shortened
from leakage.defenses._per_example import one_by_one, refuse_mixed_pictures
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, Received, StepRng, param


@dataclass(frozen=True, kw_only=True)
class FedCDP(Defense):
    """g~_l = (1/B) (sum_b g_bl / max(1, ||g_bl|| / C) + N(0, sigma^2 C^2 I)), for every tensor l of the gradient, in every local step.

    C falls from `bound` to `last_bound` over the first `decay` local steps of the client, in equal steps: C_t = bound + (last_bound -
    bound) min(1, t / decay). All L tensors together change by up to C sqrt(L), so the noise multiplier to account for is sigma / sqrt(L).
    BatchNorm with the statistics of the batch mixes the pictures and is refused; with stored ones it is allowed. An attacker who knows
    it clips the gradients of its own pictures likewise, without noise, and begins with the first bound in whichever round it attacks. It
    may average what it received over rounds; where the bound falls, that mean is of gradients clipped at several bounds.
    Unlike the paper: Fed-CDP(decay) counts rounds, which a client here cannot know; with FedSGD a round is one local step. Its bounds,
    6 to 2, are quoted from memory.
    Source: Wei et al. 2021; bound and noise as in their public code.
    """

    title = "A limit for each picture and layer and noise (Fed-CDP)"
    short = "Fed-CDP"
    plain = "The phone limits how much each picture can say in each layer of the model, and then adds random noise."
    hint = "With many layers the same noise hides less than DP-SGD's, because every layer may say something. Compare both at sigma 0.5."
    imitation = "it limits its own pictures likewise; the noise cannot be computed again"
    one_by_one = True
    source = "https://arxiv.org/abs/2107.01154"
    presets = {"a bound that falls": {"bound": 6.0, "last_bound": 2.0}}

    bound: float = param(
        4.0, 1e-6, 1e6, "The longest that one picture's gradient may be in a layer (C). BatchNorm must use its stored statistics for it."
    )
    last_bound: float = param(4.0, 1e-6, 1e6, "The bound at the end, when it changes while the phone trains.")
    decay: int = param(100, 1, 100_000, "After so many local steps the bound has reached its end. With FedSGD a round is one local step.")
    sigma: float = param(0.5, 0, 100, "Noise on the sum, as a multiple of the bound (noise multiplier). 0 switches the noise off.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        refuse_mixed_pictures(model, self.short)
        return one_by_one(client, "fed_cdp", self._clip, noise=lambda step: self.sigma * self.bound_at(step), step_rng=step_rng)

    def surrogate(self, client: Client, received: Params) -> Client:
        return one_by_one(client, "fed_cdp", self._clip)

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """(sigma C / B)^2 in every entry, with the bound of this step as in a first round; of noisy gradients it is not known."""
        return None if incoming else added({}, received, (self.sigma * self.bound_at(received.step) / received.pictures) ** 2)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {**super().strategies(), "average the rounds": averaging("fed_cdp", self.surrogate, self.errors)}

    def multiplier(self, tensors: int) -> float:
        """Every tensor may be as long as the bound: together they are sqrt(tensors) times as long."""
        return self.sigma / math.sqrt(tensors)

    def bound_at(self, step: int) -> float:
        """C in this local step."""
        return self.bound + (self.last_bound - self.bound) * min(1.0, step / self.decay)

    def _clip(self, g: Params, step: int) -> Params:
        return each_shortened(g, self.bound_at(step))
