"""MinMax sampling: the client sends a random part of the entries, enlarged so that the mean is right."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from leakage.defenses._each import average_rounds, change_tensors, change_update_at_random
from leakage.defenses._minmax import FLOOR, LEVEL, NAME, ROUNDS, TINY, add_draw, assign_sizes, read_sums
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, param
from leakage.engine.strategy import ACCOMPLICE

SPARSE = 0.1  # up to this ratio, most of the entries that a draw sends are smaller than sqrt(C)
Inversion: TypeAlias = Callable[[Params, ClientState], Params]


@dataclass(frozen=True, kw_only=True)
class MinMaxSampling(Defense):
    """Send g_j + C / g_j for the k = max(1, floor(ratio * D)) entries of largest weight w_j = (1 / r_j - 1) g_j^2, r_j ~ U(0, 1); else 0.

    C is the (k+1)-th largest weight, 0 if there is none; the D entries are those of the whole gradient. An entry is sent if its weight
    exceeds C, the k-th largest weight of the others. This has the probability p_j = g_j^2 / (g_j^2 + C), and g_j / p_j = g_j + C / g_j.
    So what is sent has the mean g_j and, for every entry, the variance C.

    An adaptive attacker has five strategies. If it watches the client for N rounds, it uses all draws up to the attacked round.
    "solve it": C, and with it |g| of every entry that was sent, follows from what arrived (see `_minmax`). This is exact (within 1 % in
    float32) for 19 of 20 entries that were sent twice. After a single draw the attacker takes the lower root, or, at a ratio above 0.1,
    what was sent. An entry that was never sent has weight 0, an entry that was solved 1 / (1 + (error / floor)^2). If the server changes
    the weights, the roots belong to different gradients, and their deviation shows it.
    "average the rounds": the mean of what arrived is unbiased, with the standard deviation sqrt(C / N).
    "count how often": uses only how often an entry was sent, and its sign.
    "with an accomplice": the attack GLAUS. The counts only rank the entries; the sizes, and the signs of entries that were never sent,
    come from the gradient of another client that works with the attacker.
    "what arrived": compares the guess with the entries that arrived, unchanged; the amount by which they were enlarged stays as an error.
    If AdaDefense acts before, nearly all entries have the same size: all |v| are alike and both roots are |v| / 2, so that only the
    signs are left (benchmarks/published/ada_defense_table.py).
    Unlike the paper of GLAUS, which takes the missing signs from the sum of ten clients: here the attacker knows one other client.
    Source: Zhao et al. 2022 (MinMax sampling, SIGMOD); the link is Hu et al. 2024 (AdaDefense), where GLAUS attacks it (table III;
    counts, ranks and signs as in their code). The solution without an accomplice is derived here.
    """

    title = "A random part of the entries (MinMax sampling)"
    short = "MinMax sampling"
    plain = "The phone sends few entries of the gradient, chosen at random, and enlarges them so that the mean is right."
    hint = "An attacker can compute by how much an entry was enlarged. Watch 1 round, then 20, while the server keeps the model as it is."
    backfires = (  # benchmarks/published/matrix.py
        "Why the adaptive attacker does worse with R-GAP: R-GAP solves equations, and errors of a few per cent in the entries ruin the "
        "solution. The naive attacker reads zeros where nothing arrived, and its answer stays near grey. Neither shows anything."
    )
    imitation = "known in part: the entries that arrived are compared, but not by how much each was enlarged"
    elementwise = True
    source = "https://arxiv.org/abs/2410.08734"

    ratio: float = param(0.05, 1e-6, 1, "Fraction of the entries that are sent, at least one entry. 1 switches it off.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return change_update_at_random(client, step_rng, NAME, self.sample)

    def surrogate(self, client: Client, received: Params) -> Client:
        """Return the imitated client with zeros where nothing arrived.

        All entries are kept if fewer arrived than are sent, because then the other entries really are zero.
        """
        arrived = {name: g != 0 for name, g in received.items()}
        whole = sum(int(mask.sum()) for mask in arrived.values()) < self.count(received)
        return change_tensors(client, lambda name, g: g * (arrived[name] | whole))

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        def from_sums(description: str, invert_update: Inversion, **more: Any) -> AdaptiveStrategy:
            return AdaptiveStrategy(description, invert_update=invert_update, infer_state=self._add_draw, **more)

        return {
            "solve it": from_sums(
                "known: the amount by which entries were enlarged is computed from all draws",
                self.invert_draws,
                entry_weights=self.weigh_entries,
                averaging=True,
            ),
            "average the rounds": average_rounds(NAME),
            "count how often": from_sums(
                "known: the size of an entry follows from how often it was sent",
                self._invert_counts,
                entry_weights=self._weigh_sent,
                averaging=True,
            ),
            "with an accomplice": from_sums(
                "known: entries are ranked by how often they were sent; the sizes come from another phone that works with the attacker",
                self._invert_ranks,
                averaging=True,
                colluding=True,
            ),
            "what arrived": AdaptiveStrategy(self.imitation, self.surrogate),
        }

    # ------------------------------------------------------------ the attackers

    def invert_draws(self, received: Params, state: ClientState) -> Params:
        """Estimate the gradient from the entries that arrived in this and in earlier rounds; 0 for an entry that was never sent.

        Args:
            received: what arrived in this round.
            state: sums over what arrived in earlier rounds (`DrawSums`); it is not changed.
        """
        return {layer: g.to(received[layer]) for layer, (g, _) in self._roots(received, state).items()}

    def weigh_entries(self, received: Params, state: ClientState) -> Params:
        """Return the weight of each entry in the attacker's distance, 1 / (1 + (error / floor)^2), from the error of its estimate.

        The floor is FLOOR times the root mean square of the estimated gradient.
        """
        roots = self._roots(received, state)
        floor = FLOOR * torch.cat([g.flatten() for g, _ in roots.values()]).square().mean().sqrt().clamp(min=TINY)
        return {layer: (1 / (1 + (error / floor).square())).to(received[layer]) for layer, (_, error) in roots.items()}

    def _add_draw(self, received: Params, state: ClientState) -> ClientState:
        return add_draw(received, state, self.count(received))

    def _roots(self, received: Params, state: ClientState) -> dict[str, tuple[Tensor, Tensor]]:
        after = self._add_draw(received, state)
        return {layer: read_sums(after, layer).solve(int(after[ROUNDS]), rare=self.ratio <= SPARSE) for layer in received}

    def _invert_counts(self, received: Params, state: ClientState) -> Params:
        after = self._add_draw(received, state)
        return {
            layer: read_sums(after, layer).estimate_from_counts(int(after[ROUNDS]), float(after[LEVEL])).to(v)
            for layer, v in received.items()
        }

    def _weigh_sent(self, received: Params, state: ClientState) -> Params:
        """Return the weight of each entry in the attacker's distance: 1 for an entry that was sent in any round, 0 for the others."""
        after = self._add_draw(received, state)
        return {layer: (read_sums(after, layer).count > 0).to(v) for layer, v in received.items()}

    def _invert_ranks(self, received: Params, state: ClientState) -> Params:
        after = self._add_draw(received, state)
        tally = {layer: read_sums(after, layer) for layer in received}
        others = {layer: state[ACCOMPLICE + layer] for layer in received}
        counts = torch.cat([sums.count.flatten() for sums in tally.values()])  # (D,)
        sizes = assign_sizes(counts, torch.cat([g.flatten() for g in others.values()]).abs()).split([g.numel() for g in others.values()])
        signs = {layer: torch.where(sums.count > 0, sums.lower.sign(), others[layer].sign()) for layer, sums in tally.items()}
        return {layer: (signs[layer] * sizes[i].view(v.shape)).to(v) for i, (layer, v) in enumerate(received.items())}

    # ------------------------------------------------------------ the draw

    def count(self, update: Params) -> int:
        """Return how many entries of an update are sent: the fraction `ratio`, at least 1."""
        return max(1, int(self.ratio * sum(g.numel() for g in update.values())))

    def sample(self, update: Params, rng: torch.Generator) -> Params:
        """Return the update with the drawn entries enlarged, the others 0; for derivatives, choice and factors count as constants."""
        g = torch.cat([value.detach().flatten() for value in update.values()]).cpu().double()  # (D,)
        r = 1 - torch.rand(len(g), generator=rng, dtype=torch.float64)  # in (0, 1]
        weights = (1 / r - 1) * g.square()
        first = weights.topk(min(self.count(update) + 1, len(g)))
        chosen, beyond = first.indices[: self.count(update)], first.values[self.count(update) :]
        c = beyond.sum()  # of one weight, or of none
        factor = torch.zeros_like(g)
        factor[chosen] = 1 + torch.where(c > 0, c / g[chosen].square(), 0)
        factors = factor.split([value.numel() for value in update.values()])
        return {name: value * factors[i].view(value.shape).to(value) for i, (name, value) in enumerate(update.items())}
