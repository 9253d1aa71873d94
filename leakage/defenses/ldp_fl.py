"""LDP-FL: every entry becomes one of two numbers, at random, so that it is right on average."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from leakage.defenses._each import at_random, averaging, changed
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, Received, StepRng, param


@dataclass(frozen=True, kw_only=True)
class LDPFL(Defense):
    """v = u within [c - r, c + r]; c + r / t is sent with probability 1/2 + t (v - c) / (2 r), else c - r / t.

    t = (e^eps - 1) / (e^eps + 1). So the mean of what is sent is v, and its deviation at least r sqrt(1 / t^2 - 1). Each entry keeps
    eps-differential privacy by itself; all N of an update together N eps. The paper counts one: phones send their entries apart and
    shuffled, so that nobody knows which belong together. Which weight an entry is of everybody knows, so of one phone alone shuffling
    hides nothing; of several, it leaves what a sum leaves (secure aggregation).
    An attacker who knows it cuts its guess off likewise, and averages over the rounds watched: nothing is biased within [c - r, c + r].
    Unlike the paper: u is what the protocol sends, a change or a gradient, not the weight itself; c and r are the same for all layers.
    Source: Sun et al. 2021 (LDP-FL, IJCAI).
    """

    title = "One of two numbers for each entry (LDP-FL)"
    short = "LDP-FL"
    plain = "Of each change the phone sends only one of two numbers, drawn at random so that the average over many phones is right."
    hint = "One round is mostly random. But the mean over many rounds is right: watch several, and average."
    imitation = "known: it cuts its guess off likewise; the draw cannot be made again"
    stage = "update"
    elementwise = True
    source = "https://arxiv.org/abs/2007.15789"

    epsilon: float = param(1.0, 0.01, 50, "Privacy budget of each single entry.")
    radius: float = param(0.05, 1e-9, 1e3, "How far from the centre an entry may be (r); what is further is cut off.")
    center: float = param(0.0, -1e3, 1e3, "The middle of what an entry may be (c).")

    @property
    def certainty(self) -> float:
        """t = tanh(eps / 2)."""
        return math.tanh(self.epsilon / 2)

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return at_random(client, step_rng, "ldp_fl", self.answered)

    def surrogate(self, client: Client, received: Params) -> Client:
        return changed(client, lambda update: {name: self.cut(g) for name, g in update.items()})

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        mean = averaging("ldp_fl", errors=self._of_one_round)
        description = f"{mean.description}; the guess is cut off likewise"
        return {**super().strategies(), "average the rounds": replace(mean, description=description, surrogate=self.surrogate)}

    def _of_one_round(self, _incoming: Params, received: Received) -> Params | None:
        """(r / t)^2 - (v - c)^2, the mean over each tensor; of one round alone it is not known.

        The mean m of R rounds has E (m - c)^2 = (v - c)^2 + ((r / t)^2 - (v - c)^2) / R, from which (v - c)^2 follows.
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

    def cut(self, g: Tensor) -> Tensor:
        """Entries within c - r and c + r."""
        return g.clamp(self.center - self.radius, self.center + self.radius)

    def answered(self, g: Tensor, rng: torch.Generator) -> Tensor:
        """One draw for every entry; for derivatives it counts as the entry that was cut off."""
        v = self.cut(g)
        often = 0.5 + self.certainty * (v.detach() - self.center) / (2 * self.radius)
        sign = torch.where(torch.rand(g.shape, generator=rng).to(g) < often, 1.0, -1.0).to(g)
        return self.center + sign * (self.radius / self.certainty) + (v - v.detach())
