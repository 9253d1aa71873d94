"""PercentilePrivacy of NVIDIA FLARE: the smallest entries left out, the others cut off at a limit."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import changed, none_added, within
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, StepRng, param

STEPS = "Local steps that the phone reports with its update; the limit counts for each. FLARE takes 1 where none are reported."


@dataclass(frozen=True, kw_only=True)
class PercentilePrivacy(Defense):
    """u = Delta / steps; u_j = 0 where |u_j| < the percentile of all |u|; u = clip(u, -gamma, gamma); u * steps is sent.

    Delta is what the protocol sends: a difference of weights, or with FedSGD the gradient (a step of rate 1). The percentile lies between
    two sorted values, as in numpy: of n entries without ties, ceil(percentile / 100 * (n - 1)) become 0.
    There is no noise, so there is no epsilon, whatever its name says. It is pruning followed by clipping of single entries.
    An attacker who knows it has the entries between, exactly; of one at the limit that it is at least so large; and of one that is 0 that
    it is smaller than the smallest that arrived.
    Source: Shokri and Shmatikov 2015, section 5 (selective sharing), as NVIDIA FLARE 2.x has it, with its defaults.
    """

    title = "Small entries left out and large ones cut (PercentilePrivacy of NVFlare)"
    short = "PercentilePrivacy"
    plain = "The phone leaves out the smallest tenth of the changes and cuts off the largest. Nothing random is added."
    hint = (
        "There is no noise, so nine entries of ten arrive, most of them exactly, and no privacy budget (epsilon) can be stated. "
        "Compare it with pruning."
    )
    imitation = "known: the guess is cut off at the same limit, and only the entries that arrived are compared"
    stage = "update"
    elementwise = True
    source = "https://github.com/NVIDIA/NVFlare/blob/2.5/nvflare/app_common/filters/percentile_privacy.py"

    percentile: float = param(10, 0, 99.9, "Per cent of all entries, the smallest ones, that are set to zero.")
    gamma: float = param(0.01, 1e-9, 1e6, "No entry is larger than this after one local step (gamma).")
    steps: int = param(1, 1, 10000, STEPS)

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return changed(client, self.filtered)

    def surrogate(self, client: Client, received: Params) -> Client:
        arrived = self.arrived(received)
        return changed(client, lambda update: {name: self.cut(g) * arrived[name] for name, g in update.items()})

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "what arrived, and bounds": AdaptiveStrategy(
                "known: what arrived is compared, an entry at the limit may be larger, and one left out must be small",
                lambda client, received: within(client, received, *self.slack(received)),
                exact=True,
                errors=none_added,
            ),
            "what arrived": AdaptiveStrategy(self.imitation, self.surrogate, errors=none_added),
        }

    def filtered(self, update: Params) -> Params:
        """What is sent."""
        sizes = torch.cat([g.detach().abs().flatten() for g in update.values()])  # (n,)
        least = sizes.kthvalue(self.dropped(len(sizes)) + 1).values
        return {name: self.cut(g * (g.detach().abs() >= least)) for name, g in update.items()}

    def dropped(self, count: int) -> int:
        """How many of `count` entries, all different, are set to zero."""
        return math.ceil(round(self.percentile / 100 * (count - 1), 9))  # 9 digits: 0.1 * 10 is not to be rounded up to 2

    def cut(self, g: Tensor) -> Tensor:
        """Entries within the limit."""
        return g.clamp(-self.gamma * self.steps, self.gamma * self.steps)

    def arrived(self, received: Params) -> dict[str, Tensor]:
        """Which entries were not set to zero; all where more are zero than the filter makes: then its threshold was 0."""
        zeros = sum(int((g == 0).sum()) for g in received.values())
        real = zeros > self.dropped(sum(g.numel() for g in received.values()))
        return {name: (g != 0) | real for name, g in received.items()}

    def slack(self, received: Params) -> tuple[Params, Params]:
        """By how much an entry may have been smaller, and larger, than the one received."""
        arrived = self.arrived(received)
        least = min(float(g.abs().where(g != 0, torch.inf).min()) for g in received.values())
        around = {name: torch.where(kept, 0.0, least).to(received[name]) for name, kept in arrived.items()}
        limit = {name: self.cut(torch.full_like(g, torch.inf)) for name, g in received.items()}
        below = {name: around[name].where(g > -limit[name], torch.inf) for name, g in received.items()}
        return below, {name: around[name].where(g < limit[name], torch.inf) for name, g in received.items()}
