"""LDP-FL: the client replaces every entry at random by one of two numbers, so that the mean is right."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from leakage.defenses._each import average_rounds, change_tensors, change_tensors_at_random
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, Received, StepRng, param


@dataclass(frozen=True, kw_only=True)
class LDPFL(Defense):
    """Clamp u to v in [c - r, c + r]; send c + r / t with probability 1/2 + t (v - c) / (2 r), otherwise c - r / t.

    t = (e^eps - 1) / (e^eps + 1). The mean of what is sent is v, and its standard deviation at least r sqrt(1 / t^2 - 1). Each entry alone
    has eps-differential privacy; all N entries of an update together have N eps. The paper counts the eps of one entry, because the
    clients send their entries separately and shuffled, so that nobody knows which entries belong to the same client. Everybody knows to
    which weight an entry belongs. With one client, shuffling therefore hides nothing; with several, it leaves what a sum leaves (secure
    aggregation).
    An adaptive attacker clamps its guess in the same way, and averages over the rounds watched: within [c - r, c + r] the mean is unbiased.
    Unlike the paper: u is the update that the protocol sends, not the weight itself; c and r are the same for all layers.
    Source: Sun et al. 2021 (LDP-FL, IJCAI).
    """

    title = "One of two numbers for each entry (LDP-FL)"
    short = "LDP-FL"
    plain = "For each change the phone sends only one of two numbers, drawn at random so that the average over many phones is right."
    hint = "One round is mostly random, but the mean over many rounds is right: watch several rounds and average them."
    imitation = "known: the guess is cut off in the same way; the random draw cannot be repeated"
    stage = "update"
    elementwise = True
    source = "https://arxiv.org/abs/2007.15789"

    epsilon: float = param(1.0, 0.01, 50, "Privacy budget of each single entry.")
    radius: float = param(0.05, 1e-9, 1e3, "How far an entry may be from the centre (r); a larger distance is cut off.")
    center: float = param(0.0, -1e3, 1e3, "The centre of the values that an entry may have (c).")

    @property
    def certainty(self) -> float:
        """The number t = tanh(eps / 2): what is sent exceeds the center with probability 1/2 + t (v - center) / (2 radius), v the entry."""
        return math.tanh(self.epsilon / 2)

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return change_tensors_at_random(client, step_rng, "ldp_fl", self.randomize)

    def surrogate(self, client: Client, received: Params) -> Client:
        return change_tensors(client, lambda _name, g: self.clamp(g))

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        mean = average_rounds("ldp_fl", errors=self._of_one_round)
        description = f"{mean.description}; the guess is cut off in the same way"
        return {**super().strategies(), "average the rounds": replace(mean, description=description, surrogate=self.surrogate)}

    def _of_one_round(self, _incoming: Params, received: Received) -> Params | None:
        """Estimate the error variance of one round, (r / t)^2 - (v - c)^2, as the mean over each tensor; None (unknown) after one round.

        v is the clamped entry, c `center`, r `radius` and t `certainty`. The mean m of R rounds has E (m - c)^2 = (v - c)^2 + ((r / t)^2 -
        (v - c)^2) / R. For R > 1, (v - c)^2 follows from this.
        """
        rounds = int(received.state.get("ldp_fl.rounds", 0)) + 1
        if rounds == 1:
            return None
        most = (self.radius / self.certainty) ** 2
        squares = {name: (g - self.center).square().mean() for name, g in received.update.items()}
        return {name: (most - (square - most / rounds) / (1 - 1 / rounds)).clamp(0, most) for name, square in squares.items()}

    def pure_epsilon(self, entries: int) -> float:
        return entries * self.epsilon

    def privacy_unit(self) -> str:
        return f"all that one phone holds, every number counted (for one number alone it is {self.epsilon:g})"

    def clamp(self, g: Tensor) -> Tensor:
        """Return the entries, clamped to [center - radius, center + radius]."""
        return g.clamp(self.center - self.radius, self.center + self.radius)

    def randomize(self, g: Tensor, rng: torch.Generator) -> Tensor:
        """Replace every entry at random by center + radius / t or center - radius / t, with the clamped entry as the mean.

        t is `certainty`. The derivative is that of the clamped entry.
        """
        v = self.clamp(g)
        probability = 0.5 + self.certainty * (v.detach() - self.center) / (2 * self.radius)
        sign = torch.where(torch.rand(g.shape, generator=rng).to(g) < probability, 1.0, -1.0).to(g)
        return self.center + sign * (self.radius / self.certainty) + (v - v.detach())
