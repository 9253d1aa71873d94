"""Local differential privacy of Flower: the client clips its update and adds noise; given parameters determine the noise's size."""

import math
from dataclasses import dataclass, replace

import torch
from torch import nn

from leakage.defenses._each import add_variance, average_rounds, change_update, change_update_at_random, clip_by_norm
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, Received, StepRng, param


@dataclass(frozen=True, kw_only=True)
class FlowerLocalDP(Defense):
    """The client sends Delta min(1, C / ||Delta||) + N(0, s^2), with s = sensitivity sqrt(2 ln(1.25 / delta)) / epsilon.

    C is `clipping_norm`. Delta is the update that the protocol sends, so the privacy unit is a client with all its pictures, not one
    picture as in DP-SGD: the same epsilon guarantees something else. The formula for s is proved only for epsilon < 1 (Dwork and Roth
    2014, theorem A.1), and only if the update of one client changes by at most `sensitivity`. Nothing checks that: with and without the
    client it changes by up to C, with other pictures of the same client by up to 2 C.
    The privacy budget that a page states is computed from s / C by an accountant, whatever epsilon was typed in.
    An adaptive attacker clips its guess in the same way; the noise can only be averaged over several rounds.
    Source: Flower (flwr.client.mod.LocalDpMod), read in 2026; Dwork and Roth 2014.
    """

    title = "A limit for each phone and noise (local DP of Flower)"
    short = "Flower local DP"
    plain = "The phone shortens its update to a limit and adds random noise. The size of the noise follows from a privacy budget."
    hint = (
        "The sensitivity is typed in by hand: if it is below the limit, the promise is not kept. "
        "And it is a promise for a whole phone: compare with DP-SGD, which makes it for a picture."
    )
    imitation = "known: the guess is shortened in the same way; the noise cannot be computed again"
    stage = "update"
    source = "https://github.com/adap/flower/blob/main/framework/py/flwr/client/mod/localdp_mod.py"
    presets = {"Epsilon 1, sensitivity as the limit": {"clipping_norm": 1.0}}

    clipping_norm: float = param(10.0, 1e-6, 1e6, "The largest norm that an update may have (Flower's clipping_norm, C).")
    sensitivity: float = param(
        1.0, 0, 1e6, "How much one phone can change the update, as you state it. Below C the guarantee does not hold."
    )
    epsilon: float = param(1.0, 1e-3, 1e6, "Privacy budget, as you state it. The proof of the formula for the noise needs a value below 1.")
    delta: float = param(1e-5, 1e-12, 0.5, "Probability that the guarantee fails.")

    @property
    def deviation(self) -> float:
        """The standard deviation s of the noise."""
        return self.sensitivity * math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def noisy(update: Params, rng: torch.Generator) -> Params:
            limited = clip_by_norm(update, self.clipping_norm)
            return {name: g + self.deviation * torch.randn(g.shape, generator=rng).to(g) for name, g in limited.items()}

        return change_update_at_random(client, step_rng, "flower_local_dp", noisy)

    def surrogate(self, client: Client, received: Params) -> Client:
        return change_update(client, lambda update: clip_by_norm(update, self.clipping_norm))

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """Return the error variance of every entry, that of the noise; None (unknown) where the update is noisy before it is clipped."""
        return None if incoming else add_variance({}, received, self.deviation**2)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        mean = average_rounds("flower_local_dp", errors=self.errors)
        description = f"{mean.description}; the guess is shortened in the same way"
        return {**super().strategies(), "average the rounds": replace(mean, description=description, surrogate=self.surrogate)}

    def effective_noise_multiplier(self, tensors: int) -> float:
        return self.deviation / self.clipping_norm

    def privacy_unit(self) -> str:
        typed = f"typed in were epsilon {self.epsilon:g} and sensitivity {self.sensitivity:g}"
        if self.sensitivity < self.clipping_norm:
            needed = f"{self.clipping_norm:g} ({2 * self.clipping_norm:g} for other pictures of the same phone)"
            typed += f", which would take a sensitivity of at least {needed}"
        proved = "" if self.epsilon < 1 else "; that formula is proved for epsilon below 1 alone"
        return f"all that one phone holds, present or absent ({typed}{proved})"
