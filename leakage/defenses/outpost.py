"""Outpost: prune, and add noise where it counts, now and then, less and less often."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import counted
from leakage.defenses.pruning import Pruning
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, Update, param

CLEAN = "outpost.clean."  # in a state: of the rounds before, the last of those with the fewest zeros, by parameter


@dataclass(frozen=True, kw_only=True)
class Outpost(Defense):
    """In local step i = 1, 2, ..., with probability 1 / (1 + decay * i): g~ = g * [|g| >= t] + N(0, (v * noise_base)^2) * [F >= q].

    By tensor: v = min(Var(theta), 1), the risk; t such that floor(prune_base % of n) of its n entries lie below it; F = the mean of g^2
    over the first dimension (the empirical Fisher), the same for all rows. q: such that phi % of all tensors' F, rounded up, reach it.
    In the other steps g is sent as it is. A tensor of equal weights, such as BatchNorm's first scale, has risk 0 and gets no noise; nor
    does one of a single number. An attacker who knows it leaves out what arrives as zero, as with pruning; the noise it cannot imitate.
    But it need not: a step that was left as it is has fewer zeros, so of the rounds watched it takes the last of those with the fewest.
    That is the gradient itself, bit by bit, where the weights stand still; all of 20 rounds are disturbed twice in 10^7 (decay 0.125).
    The description leaves open, and here is chosen: F is taken before pruning; noise falls on pruned entries too; a layer is a parameter
    tensor; v * noise_base is a deviation, not a variance; i counts the client's local steps over all rounds.
    Unlike the code: its function returns the gradient unchanged (it assigns to a local variable); its i is epoch * batch in the round.
    Source: Wang et al. 2023 (the link: 2024, in a journal); decay, phi, prune_base and noise_base as in the notes of their code.
    """

    title = "Dropped entries and fading noise (Outpost)"
    short = "Outpost"
    plain = "Now and then, and less often with time, the phone drops small entries of the gradient and adds random numbers to others."
    hint = "It protects early rounds most, when pictures leak most. Watch several rounds and attack a late one."
    imitation = "what arrives as zero is left out of the guess too; the noise cannot be computed again"
    elementwise = True
    source = "https://doi.org/10.1109/TNET.2024.3377655"

    prune_base: float = param(80, 0, 99.9, "Per cent of each layer's entries that are set to zero. 0: none.")
    noise_base: float = param(0.8, 0, 10, "Deviation of the noise for a layer of risk 1. 0: no noise.")
    phi: float = param(40, 0, 100, "Per cent of the entries that get noise: those that matter most to the model.")
    decay: float = param(0.125, 0, 100, "How fast it becomes rare: 0.125 halves its probability after 8 local steps. 0: always.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            update, state = client(weights, x, y, state)
            step, state = counted(state, "outpost")
            rng = step_rng(step)
            if float(torch.rand((), generator=rng)) < 1 / (1 + self.decay * (step + 1)):
                update = self.perturbed(update, weights, rng)
            return update, state

        return send

    def surrogate(self, client: Client, received: Params) -> Client:
        return self._pruning.surrogate(client, received)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            **super().strategies(),
            "take a clean round": AdaptiveStrategy(
                "known: of the rounds watched it takes the last that was left as it is, which has the fewest zeros",
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
        """What was received, or what was before if that had fewer zeros."""
        before = {name: state[CLEAN + name] for name in received if CLEAN + name in state}
        return before if before and zeros(before) < zeros(received) else received

    def perturbed(self, update: Params, weights: Params, rng: torch.Generator) -> Params:
        """The update, pruned and with noise; where either goes counts as constant."""
        fisher = {name: g.detach().square().mean(0) for name, g in update.items()}
        matters = self._matters(fisher)
        result = Params()
        for name, g in update.items():
            noise = risk(weights[name]) * self.noise_base * torch.randn(g.shape, generator=rng).to(g)
            result[name] = g * (g.detach().abs() >= self._pruning.threshold(g.detach().abs().flatten())) + noise * matters[name]
        return result

    def _matters(self, fisher: Params) -> dict[str, Tensor]:
        """Where F is among the top phi % of all: masks of the shapes of `fisher`."""
        every = torch.cat([value.flatten() for value in fisher.values()])
        below = every.numel() - math.ceil(self.phi / 100 * every.numel())
        if below == every.numel():
            return {name: torch.zeros_like(value, dtype=torch.bool) for name, value in fisher.items()}
        least = every.kthvalue(below + 1).values
        return {name: value >= least for name, value in fisher.items()}

    @property
    def _pruning(self) -> Pruning:
        return Pruning(fraction=self.prune_base / 100)


def zeros(update: Params) -> int:
    """How many entries are exactly zero."""
    return sum(int((g == 0).sum()) for g in update.values())


def risk(weight: Tensor) -> float:
    """min(Var, 1) of a tensor's entries; 0 for a single one."""
    return min(float(weight.detach().var()), 1.0) if weight.numel() > 1 else 0.0
