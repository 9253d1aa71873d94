"""Fed-CDP: the client clips each layer of each picture's gradient and adds noise to their sum."""

import math
from dataclasses import dataclass

from leakage.defenses._each import clip_each_by_norm
from leakage.defenses._per_example import PerExampleNoise
from leakage.engine.core import Params, param


@dataclass(frozen=True, kw_only=True)
class FedCDP(PerExampleNoise):
    """g~_l = (1/B) (sum_b g_bl / max(1, ||g_bl|| / C) + N(0, z^2 C^2 I)), for every tensor l of the gradient, in every local step.

    z is `noise_multiplier`. C falls from `bound` to `last_bound` over the first `decay` local steps of the client, in equal steps:
    C_t = bound + (last_bound - bound) min(1, t / decay). All L tensors together change by up to C sqrt(L), so the effective noise
    multiplier is z / sqrt(L). BatchNorm with the statistics of the batch mixes the pictures and is refused; BatchNorm with stored
    statistics is allowed. An adaptive attacker clips the gradients of its guess in the same way, without noise; it starts with the first
    bound, whichever round it attacks. It may average what it received over several rounds; where the bound falls, that is a mean of
    gradients clipped at several bounds.
    Unlike the paper: Fed-CDP(decay) counts rounds, which a client here cannot know; with FedSGD a round is one local step. The bounds
    of the paper, 6 to 2, are quoted from memory.
    Source: Wei et al. 2021; bound and noise as in their public code.
    """

    title = "A limit for each picture and layer and noise (Fed-CDP)"
    short = "Fed-CDP"
    plain = "The phone limits how much each picture can say in each layer of the model, and then adds random noise."
    hint = (
        "With many layers the same noise hides less than DP-SGD's, because every layer may say something. "
        "Compare both at noise multiplier 0.5."
    )
    source = "https://arxiv.org/abs/2107.01154"
    presets = {"a bound that falls": {"bound": 6.0, "last_bound": 2.0}}

    bound: float = param(
        4.0, 1e-6, 1e6, "The largest norm that one picture's gradient may have in a layer (C). BatchNorm must use its stored statistics."
    )
    last_bound: float = param(4.0, 1e-6, 1e6, "The bound after `decay` local steps; the same as the first: the bound stays.")
    decay: int = param(100, 1, 100_000, "Local steps until the last bound is reached. With FedSGD a round is one local step.")
    noise_multiplier: float = param(
        0.5, 0, 100, "Standard deviation of the noise on the sum, as a multiple of C. 0 switches the noise off."
    )

    def effective_noise_multiplier(self, tensors: int) -> float:
        """Return z / sqrt(tensors): every tensor may have the norm C, so all of them together C sqrt(tensors)."""
        return self.noise_multiplier / math.sqrt(tensors)

    def bound_at(self, step: int) -> float:
        return self.bound + (self.last_bound - self.bound) * min(1.0, step / self.decay)

    def clip(self, g: Params, step: int) -> Params:
        return clip_each_by_norm(g, self.bound_at(step))
