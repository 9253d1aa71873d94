"""MinMax sampling: a few entries of the gradient, drawn so that they are right on average."""

from dataclasses import dataclass

import torch
from torch import nn

from leakage.defenses._each import changed, drawn
from leakage.engine.core import Client, Defense, Params, StepRng, param


@dataclass(frozen=True, kw_only=True)
class MinMaxSampling(Defense):
    """Send g_j + C / g_j for the k = max(1, floor(ratio * D)) entries of largest weight w_j = (1 / r_j - 1) g_j^2, r_j ~ U(0, 1); else 0.

    C is the (k+1)-th largest weight, 0 if there is none; the D entries are those of the whole gradient. An entry is sent when its weight
    exceeds C, the k-th largest of the others: with probability p_j = g_j^2 / (g_j^2 + C), and g_j / p_j = g_j + C / g_j. So what is
    sent has the mean g_j and, whatever the entry, the variance C.
    An attacker who knows it learns which entries are likely to be large, and their signs. It is not told C, so it compares the entries
    that arrived with its own as they are, and by how much they were enlarged stays an error. Directions suffer less from it than lengths.
    Source: Zhao et al. 2022 (MinMax sampling, SIGMOD); the link is Hu et al. 2024 (AdaDefense), who attack it with GLAUS.
    """

    title = "A random share of the entries (MinMax sampling)"
    short = "MinMax sampling"
    plain = "The phone sends few entries of the gradient, drawn by chance, large ones more often, and enlarges them to be right on average."
    hint = "What arrives still tells which entries are large, and their signs. Lower the share and see what is left of the picture."
    imitation = "known in part: the entries that arrived are compared, but not by how much each was enlarged"
    elementwise = True
    source = "https://arxiv.org/abs/2410.08734"

    ratio: float = param(0.05, 1e-6, 1, "Share of the entries that are sent, one at least. 1 switches it off.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return drawn(client, step_rng, "minmax_sampling", self.sampled)

    def surrogate(self, client: Client, received: Params) -> Client:
        """Keep the entries that arrived; all of them when fewer arrived than are sent, for then the other ones are zeros indeed."""
        arrived = {name: g != 0 for name, g in received.items()}
        whole = sum(int(mask.sum()) for mask in arrived.values()) < self.count(received)
        return changed(client, lambda update: {name: g * (arrived[name] | whole) for name, g in update.items()})

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
