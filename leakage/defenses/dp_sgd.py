"""DP-SGD: the client clips the gradient of each picture and adds noise to their sum."""

from dataclasses import dataclass

from leakage.defenses._each import clip_by_norm
from leakage.defenses._per_example import PerExampleNoise
from leakage.engine.core import Params, param


@dataclass(frozen=True, kw_only=True)
class DPSGD(PerExampleNoise):
    """g~ = (1/B) (sum_b g_b min(1, C / ||g_b||) + N(0, z^2 C^2 I)), in every local step; g_b is the gradient of picture b alone.

    C is `max_grad_norm`, z is `noise_multiplier` (the paper's sigma); the norm is that of the whole gradient. Adding or removing one
    picture changes the sum by at most C, which gives (epsilon, delta)-differential privacy: z = 1 and one upload give epsilon 4.39 at
    delta = 1e-5 (`accounting`). A defense that comes before this one acts on the gradient of each picture. BatchNorm with the statistics
    of the batch mixes the pictures and is refused; BatchNorm with stored statistics is allowed.
    An adaptive attacker clips the gradients of its guess in the same way, without noise. It may also average what it received over
    several rounds; epsilon accounts for that, because it grows with every round.
    Unlike the paper: the batch is the client's and is not sampled at random, so there is no amplification by sampling.
    Source: Abadi et al. 2016, algorithm 1.
    """

    title = "A limit for each picture and noise (DP-SGD)"
    short = "DP-SGD"
    plain = "The phone limits how much each picture can say, and then adds random noise to match."
    hint = (
        "The limit alone changes little: set the noise multiplier to 0. "
        "At 1 no attack measured here shows a picture, and the model learns less."
    )
    source = "https://arxiv.org/abs/1607.00133"

    max_grad_norm: float = param(
        1.0, 1e-6, 1e6, "The largest norm that the gradient of one picture may have (C). BatchNorm must use its stored statistics."
    )
    noise_multiplier: float = param(
        1.0, 0, 100, "Standard deviation of the noise on the sum, as a multiple of C. 0 switches the noise off."
    )

    def effective_noise_multiplier(self, tensors: int) -> float:
        return self.noise_multiplier

    def bound_at(self, step: int) -> float:
        return self.max_grad_norm

    def clip(self, g: Params, step: int) -> Params:
        return clip_by_norm(g, self.max_grad_norm)
