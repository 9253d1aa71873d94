"""Local differential privacy of Flower: what a phone sends is shortened, and gets noise of a size that is typed in by hand."""

import math
from dataclasses import dataclass, replace

import torch
from torch import nn

from leakage.defenses._each import added, averaging, changed, drawn, shortened
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, Received, StepRng, param


@dataclass(frozen=True, kw_only=True)
class FlowerLocalDP(Defense):
    """Delta min(1, clip / ||Delta||) + N(0, s^2) is sent, s = sensitivity sqrt(2 ln(1.25 / delta)) / epsilon for every entry.

    Delta is what the protocol sends, so its unit is a phone with all its pictures, not one picture as in DP-SGD: the same epsilon is
    another promise. The formula for s is proved for epsilon < 1 alone (Dwork and Roth 2014, theorem A.1), and only if the update of one
    phone changes by no more than `sensitivity`, which nobody checks: with and without the phone by clip, with other pictures by 2 clip.
    The privacy budget in the threat model table is worked out from s / clip by an accountant, whatever was typed.
    An attacker who knows it shortens its guess likewise; the noise it can only average over rounds.
    Source: Flower (flwr.client.mod.LocalDpMod), read in 2026; Dwork and Roth 2014.
    """

    title = "A limit for each phone and noise (local DP of Flower)"
    short = "Flower local DP"
    plain = "The phone shortens its update to a limit and adds random noise, whose size follows from a privacy budget that is typed in."
    hint = (
        "The sensitivity is typed in by hand: if it is below the limit, the promise is not kept. "
        "And it is a promise for a whole phone: compare with DP-SGD, which makes it for a picture."
    )
    imitation = "known: it shortens its guess likewise; the noise cannot be computed again"
    stage = "update"
    source = "https://github.com/adap/flower/blob/main/framework/py/flwr/client/mod/localdp_mod.py"
    presets = {"Epsilon 1, sensitivity as the limit": {"clip": 1.0}}

    clip: float = param(10.0, 1e-6, 1e6, "The longest that an update may be (Flower's clipping_norm, C).")
    sensitivity: float = param(1.0, 0, 1e6, "By how much one phone can change what is sent, as it is typed in. Below C nothing holds.")
    epsilon: float = param(1.0, 1e-3, 1e6, "Privacy budget as it is typed in. The formula of the noise is proved below 1 alone.")
    delta: float = param(1e-5, 1e-12, 0.5, "How often the promise may fail.")

    @property
    def deviation(self) -> float:
        """s, the standard deviation of the noise."""
        return self.sensitivity * math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def noisy(update: Params, rng: torch.Generator) -> Params:
            limited = shortened(update, self.clip)
            return {name: g + self.deviation * torch.randn(g.shape, generator=rng).to(g) for name, g in limited.items()}

        return drawn(client, step_rng, "flower_local_dp", noisy)

    def surrogate(self, client: Client, received: Params) -> Client:
        return changed(client, lambda update: shortened(update, self.clip))

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """s^2 in every entry; of an update that is noisy before it is shortened it is not known."""
        return None if incoming else added({}, received, self.deviation**2)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        mean = averaging("flower_local_dp", errors=self.errors)
        words = f"{mean.words}; the guess is shortened likewise"
        return {**super().strategies(), "average the rounds": replace(mean, words=words, surrogate=self.surrogate)}

    def multiplier(self, tensors: int) -> float:
        return self.deviation / self.clip

    def promise(self) -> str:
        typed = f"typed in were epsilon {self.epsilon:g} and sensitivity {self.sensitivity:g}"
        if self.sensitivity < self.clip:
            typed += f", which would take a sensitivity of at least {self.clip:g} ({2 * self.clip:g} for other pictures of the same phone)"
        proved = "" if self.epsilon < 1 else "; that formula is proved for epsilon below 1 alone"
        return f"all that one phone holds, present or absent ({typed}{proved})"
