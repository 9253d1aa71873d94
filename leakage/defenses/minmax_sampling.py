"""MinMax sampling: a few entries of the gradient, drawn so that they are right on average."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from leakage.defenses._each import averaging, changed, drawn
from leakage.defenses._minmax import FLOOR, LEVEL, NAME, ROUNDS, TINY, kept, ranked, tallied
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, param
from leakage.engine.strategy import ACCOMPLICE

SPARSE = 0.1  # up to this ratio most of the entries that one draw sends lie below sqrt(C)
Inversion: TypeAlias = Callable[[Params, ClientState], Params]


@dataclass(frozen=True, kw_only=True)
class MinMaxSampling(Defense):
    """Send g_j + C / g_j for the k = max(1, floor(ratio * D)) entries of largest weight w_j = (1 / r_j - 1) g_j^2, r_j ~ U(0, 1); else 0.

    C is the (k+1)-th largest weight, 0 if there is none; the D entries are those of the whole gradient. An entry is sent when its weight
    exceeds C, the k-th largest of the others: with probability p_j = g_j^2 / (g_j^2 + C), and g_j / p_j = g_j + C / g_j. So what is
    sent has the mean g_j and, whatever the entry, the variance C.

    An attacker who knows it has five ways; who watches the client for N rounds uses all draws up to the attacked round.
    "solve it": C, and with it |g| of the entries that were sent, follows from what arrived: see `_minmax`. Exact (float32: within 1 %) for
    19 of 20 entries that were sent twice. Of a single draw what was sent is taken for small, at a ratio above 0.1 for what it is. What was
    never sent does not count, what was solved counts by 1 / (1 + (error / floor)^2). Where the server moves the weights, roots of different
    gradients are mixed, which their deviation shows.
    "average the rounds": the mean of what arrived is right on average, with the deviation sqrt(C / N).
    "count how often": only from how often an entry was sent, and its sign.
    "with an accomplice": GLAUS. The counts only rank the entries; their sizes are those of another phone's gradient that works with the
    attacker; so are signs of entries that were never sent.
    "what arrived": compares the entries that arrived with its own as they are; by how much they were enlarged stays an error.
    Of stand-ins, which AdaDefense makes nearly all of one size, there is nothing to solve and nothing to rank: all |v| are alike, both
    roots are |v| / 2, and what is left are the signs (benchmarks/published/ada_defense_table.py).
    Unlike the paper of GLAUS: it takes the missing signs from the sum of ten phones, of which here the accomplice is the only one known.
    Source: Zhao et al. 2022 (MinMax sampling, SIGMOD); the link is Hu et al. 2024 (AdaDefense), who attack it with GLAUS (table III;
    counts, ranks and signs as in their code). That it can be solved without an accomplice is derived here.
    """

    title = "A random share of the entries (MinMax sampling)"
    short = "MinMax sampling"
    plain = "The phone sends few entries of the gradient, drawn at random, large ones more often, and enlarges them to be right on average."
    hint = "By how much an entry was enlarged can be computed from what arrives. Watch 1 round, then 20, of a server that stands still."
    backfires = (  # benchmarks/published/matrix.py
        "Why knowing of the sampling does worse with R-GAP: it solves, and entries that are known to a few per cent ruin what it solves. "
        "Who does not know of it reads zeros where nothing came, and stays near grey. Neither shows anything."
    )
    imitation = "known in part: the entries that arrived are compared, but not by how much each was enlarged"
    elementwise = True
    source = "https://arxiv.org/abs/2410.08734"

    ratio: float = param(0.05, 1e-6, 1, "Share of the entries that are sent, one at least. 1 switches it off.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return drawn(client, step_rng, NAME, self.sampled)

    def surrogate(self, client: Client, received: Params) -> Client:
        """Keep the entries that arrived; all of them when fewer arrived than are sent, for then the other ones are zeros indeed."""
        arrived = {name: g != 0 for name, g in received.items()}
        whole = sum(int(mask.sum()) for mask in arrived.values()) < self.count(received)
        return changed(client, lambda update: {name: g * (arrived[name] | whole) for name, g in update.items()})

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        def tallying(words: str, invert_update: Inversion, **more: Any) -> AdaptiveStrategy:
            return AdaptiveStrategy(words, invert_update=invert_update, infer_state=self._tallied, **more)

        return {
            "solve it": tallying(
                "known: by how much entries were enlarged is worked out from all draws",
                self.solved,
                entry_weights=self.trusted,
                averaging=True,
            ),
            "average the rounds": averaging(NAME),
            "count how often": tallying(
                "known: how large an entry is follows from how often it was sent", self._counted, entry_weights=self._sent, averaging=True
            ),
            "with an accomplice": tallying(
                "known: entries are ranked by how often they were sent, and get the sizes of another phone's that works with the attacker",
                self._ranked,
                averaging=True,
                colluding=True,
            ),
            "what arrived": AdaptiveStrategy(self.imitation, self.surrogate),
        }

    # ------------------------------------------------------------ the attackers

    def solved(self, received: Params, state: ClientState) -> Params:
        """The gradient behind what was received now and before; 0 for what was never sent."""
        return {layer: g.to(received[layer]) for layer, (g, _) in self._roots(received, state).items()}

    def trusted(self, received: Params, state: ClientState) -> Params:
        """How much each entry that was solved counts: 1 / (1 + (error / floor)^2); the floor is a share of the gradient's rms."""
        found = self._roots(received, state)
        floor = FLOOR * torch.cat([g.flatten() for g, _ in found.values()]).square().mean().sqrt().clamp(min=TINY)
        return {layer: (1 / (1 + (wrong / floor).square())).to(received[layer]) for layer, (_, wrong) in found.items()}

    def _tallied(self, received: Params, state: ClientState) -> ClientState:
        return tallied(received, state, self.count(received))

    def _roots(self, received: Params, state: ClientState) -> dict[str, tuple[Tensor, Tensor]]:
        after = self._tallied(received, state)
        return {layer: kept(after, layer).solved(int(after[ROUNDS]), rare=self.ratio <= SPARSE) for layer in received}

    def _counted(self, received: Params, state: ClientState) -> Params:
        after = self._tallied(received, state)
        return {layer: kept(after, layer).counted(int(after[ROUNDS]), float(after[LEVEL])).to(v) for layer, v in received.items()}

    def _sent(self, received: Params, state: ClientState) -> Params:
        """Entries that were ever sent count, the others do not."""
        after = self._tallied(received, state)
        return {layer: (kept(after, layer).count > 0).to(v) for layer, v in received.items()}

    def _ranked(self, received: Params, state: ClientState) -> Params:
        after = self._tallied(received, state)
        ours = {layer: kept(after, layer) for layer in received}
        others = {layer: state[ACCOMPLICE + layer] for layer in received}
        counts = torch.cat([own.count.flatten() for own in ours.values()])  # (D,)
        sizes = ranked(counts, torch.cat([g.flatten() for g in others.values()]).abs()).split([g.numel() for g in others.values()])
        signs = {layer: torch.where(own.count > 0, own.lower.sign(), others[layer].sign()) for layer, own in ours.items()}
        return {layer: (signs[layer] * sizes[i].view(v.shape)).to(v) for i, (layer, v) in enumerate(received.items())}

    # ------------------------------------------------------------ the draw

    def count(self, update: Params) -> int:
        """How many entries are sent."""
        return max(1, int(self.ratio * sum(g.numel() for g in update.values())))

    def sampled(self, update: Params, rng: torch.Generator) -> Params:
        """One draw; what it adds to the entries is no function of the gradient, as far as derivatives go."""
        g = torch.cat([value.detach().flatten() for value in update.values()]).cpu().double()  # (D,)
        r = 1 - torch.rand(len(g), generator=rng, dtype=torch.float64)  # in (0, 1]
        weights = (1 / r - 1) * g.square()
        first = weights.topk(min(self.count(update) + 1, len(g)))
        kept, beyond = first.indices[: self.count(update)], first.values[self.count(update) :]
        c = beyond.sum()  # of one weight, or of none
        factor = torch.zeros_like(g)
        factor[kept] = 1 + torch.where(c > 0, c / g[kept].square(), 0)
        places = factor.split([value.numel() for value in update.values()])
        return {name: value * places[i].view(value.shape).to(value) for i, (name, value) in enumerate(update.items())}
