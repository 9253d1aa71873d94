"""Outpost: in some local steps, rarer with time, the client prunes its gradient and adds noise to important entries."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import count_step
from leakage.defenses.pruning import Pruning
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, Update, param

CLEAN = "outpost.clean."  # keys in the attacker's state, by parameter: the last of the earlier updates with the fewest zeros


@dataclass(frozen=True, kw_only=True)
class Outpost(Defense):
    """In local step i = 1, 2, ..., with probability 1 / (1 + decay * i), send g * [|g| >= t] + N(0, (v * noise_base)^2) * [F >= q].

    For each tensor, v = min(Var(theta), 1) is the risk; floor(prune_base % of n) of its n entries lie below t; F is the mean of g^2 over
    the first dimension (the empirical Fisher information), the same for all rows. q is such that phi % of all tensors' F, rounded up,
    reach it. In the other steps g is sent unchanged. A tensor with equal weights (such as a new BatchNorm's scale) or with a single entry
    has risk 0 and gets no noise.
    An adaptive attacker leaves out the entries that arrive as zero, as with pruning; it cannot imitate the noise. But an unchanged step
    has fewer zeros, so the attacker can take the update with the fewest zeros (of equal ones the last) of all rounds watched. If the
    weights stay the same, this is the exact gradient; the probability that all of 20 rounds are changed is 2 in 10^7 (decay 0.125).
    Chosen here, because the description leaves it open: F is computed before pruning; pruned entries get noise too; a layer is a
    parameter tensor; v * noise_base is a standard deviation, not a variance; i counts the client's local steps over all rounds.
    Unlike the code: its function returns the gradient unchanged (it assigns to a local variable); its i is epoch * batch in the round.
    Source: Wang et al. 2023 (the link: 2024, in a journal); decay, phi, prune_base and noise_base as in the notes of their code.
    """

    title = "Dropped entries and fading noise (Outpost)"
    short = "Outpost"
    plain = "In some rounds, less often with time, the phone drops small entries of the gradient and adds random numbers to others."
    hint = "It protects mostly the early rounds, when pictures leak most. Watch several rounds and attack a late round."
    imitation = "known: entries that arrive as zero are left out of the guess too; the noise cannot be computed again"
    elementwise = True
    source = "https://doi.org/10.1109/TNET.2024.3377655"

    prune_base: float = param(80, 0, 99.9, "Per cent of each layer's entries that are set to zero. 0: none.")
    noise_base: float = param(0.8, 0, 10, "Standard deviation of the noise for a layer of risk 1. 0: no noise.")
    phi: float = param(40, 0, 100, "Per cent of the entries that get noise: the entries that matter most to the model.")
    decay: float = param(
        0.125, 0, 100, "How fast the protection becomes rare: 0.125 halves its probability after 8 local steps. 0: always."
    )

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            update, state = client(weights, x, y, state)
            step, state = count_step(state, "outpost")
            rng = step_rng(step)
            if float(torch.rand((), generator=rng)) < 1 / (1 + self.decay * (step + 1)):
                update = self.perturb(update, weights, rng)
            return update, state

        return send

    def surrogate(self, client: Client, received: Params) -> Client:
        return self._pruning.surrogate(client, received)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            **super().strategies(),
            "take a clean round": AdaptiveStrategy(
                "known: of the rounds watched, the last with the fewest zeros is compared, because it was probably sent unchanged",
                self.surrogate,
                invert_update=self._cleanest,
                infer_state=lambda received, state: {
                    **state,
                    **{CLEAN + name: g for name, g in self._cleanest(received, state).items()},
                },
                averaging=True,
            ),
        }

    @staticmethod
    def _cleanest(received: Params, state: ClientState) -> Params:
        """Return what was received, or the earlier update in the state if that has fewer zeros."""
        before = {name: state[CLEAN + name] for name in received if CLEAN + name in state}
        return before if before and count_zeros(before) < count_zeros(received) else received

    def perturb(self, update: Params, weights: Params, rng: torch.Generator) -> Params:
        """Return the update, pruned and with noise; for derivatives, both masks count as constants."""
        fisher = {name: g.detach().square().mean(0) for name, g in update.items()}
        masks = self._noise_masks(fisher)
        result = Params()
        for name, g in update.items():
            noise = risk(weights[name]) * self.noise_base * torch.randn(g.shape, generator=rng).to(g)
            result[name] = g * (g.detach().abs() >= self._pruning.threshold(g.detach().abs().flatten())) + noise * masks[name]
        return result

    def _noise_masks(self, fisher: Params) -> dict[str, Tensor]:
        """Return masks of the entries that get noise: the largest `phi` percent of all entries of the Fisher information `fisher`."""
        every = torch.cat([value.flatten() for value in fisher.values()])
        below = every.numel() - math.ceil(self.phi / 100 * every.numel())
        if below == every.numel():
            return {name: torch.zeros_like(value, dtype=torch.bool) for name, value in fisher.items()}
        least = every.kthvalue(below + 1).values
        return {name: value >= least for name, value in fisher.items()}

    @property
    def _pruning(self) -> Pruning:
        return Pruning(fraction=self.prune_base / 100)


def count_zeros(update: Params) -> int:
    """Return how many entries of the update are exactly zero."""
    return sum(int((g == 0).sum()) for g in update.values())


def risk(weight: Tensor) -> float:
    """Return the risk of a parameter tensor, which scales its noise: min(variance of its entries, 1); 0 for a single entry."""
    return min(float(weight.detach().var()), 1.0) if weight.numel() > 1 else 0.0
