"""Gradient pruning: send the largest entries only."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import changed
from leakage.engine.core import Client, Defense, Draws, Params, param


@dataclass(frozen=True, kw_only=True)
class Pruning(Defense):
    """Per tensor, the `share` of entries of smallest magnitude is set to zero: g~ = g * [|g| >= t].

    The threshold t is such that floor(share * n) of the tensor's n entries lie below it.
    Source: Zhu et al. 2019, section 5.2; per tensor as in Li et al. 2022 (GGL) and Sun et al. 2021 (Soteria).
    """

    title = "Pruning"
    plain = "The phone sends only the largest entries of each layer's gradient and sets the others to zero."
    hint = "An attacker who knows it compares the surviving entries only. Try 90 % with and without that knowledge."
    elementwise = True
    source = "https://arxiv.org/abs/1906.08935"

    share: float = param(0.9, 0, 0.999, "Share of the entries set to zero in every layer. 0 switches it off.")

    def guard(self, client: Client, model: nn.Module, draws: Draws) -> Client:
        return changed(client, lambda update: {name: g * (g.detach().abs() >= self.threshold(g)) for name, g in update.items()})

    def adapt(self, client: Client, received: Params) -> Client:
        """Keep the entries that survived in `received`.

        Unlike a plain mask of the nonzero entries, a tensor with more zeros than pruning makes is kept whole: its threshold was 0,
        so its zeros are real (black pixels, dead units) and tell the attacker something.
        """
        masks = {name: (g != 0) if int((g == 0).sum()) <= self.dropped(g) else torch.ones_like(g) for name, g in received.items()}
        return changed(client, lambda update: {name: g * masks[name] for name, g in update.items()})

    def dropped(self, g: Tensor) -> int:
        """How many entries of this tensor pruning sets to zero."""
        return int(self.share * g.numel())

    def threshold(self, g: Tensor) -> Tensor:
        """The smallest magnitude that is kept."""
        return g.detach().abs().flatten().kthvalue(self.dropped(g) + 1).values
