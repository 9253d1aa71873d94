"""PercentilePrivacy of NVIDIA FLARE: sets the smallest entries to zero and clamps the others."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import change_tensors, change_update, exact_errors, snap_to_received
from leakage.engine.core import AdaptiveStrategy, Client, Defense, Params, StepRng, param

STEPS = "Local steps that the phone reports with its update; the limit applies to each step. FLARE takes 1 if none are reported."


@dataclass(frozen=True, kw_only=True)
class PercentilePrivacy(Defense):
    """Set u_j to 0 where |u_j| < the percentile of all |u|, u = Delta / steps; clamp u to [-gamma, gamma]; send u * steps.

    Delta is what the protocol sends: a difference of weights, or with FedSGD the gradient (a step of rate 1). The percentile is
    interpolated between two sorted values, as in numpy: of n entries without ties, ceil(percentile / 100 * (n - 1)) become 0.
    Despite its name there is no epsilon, because there is no noise. The defense is pruning followed by clamping of single entries.
    An adaptive attacker knows an entry between 0 and the limit exactly. An entry at the limit is at least as large as the limit. An entry
    that arrived as 0 is smaller than the smallest entry that arrived.
    Source: Shokri and Shmatikov 2015, section 5 (selective sharing), as NVIDIA FLARE 2.x has it, with its defaults.
    """

    title = "Small entries left out and large ones cut (PercentilePrivacy of NVFlare)"
    short = "PercentilePrivacy"
    plain = "The phone leaves out the smallest tenth of the changes and cuts off the largest. Nothing random is added."
    hint = (
        "There is no noise, so nine entries of ten arrive, most of them exactly, and no privacy budget (epsilon) can be stated. "
        "Compare it with pruning."
    )
    imitation = "known: the guess is limited in the same way, and only the entries that arrived are compared"
    stage = "update"
    elementwise = True
    source = "https://github.com/NVIDIA/NVFlare/blob/2.5/nvflare/app_common/filters/percentile_privacy.py"

    percentile: float = param(10, 0, 99.9, "Per cent of all entries, the smallest ones, that are set to zero.")
    gamma: float = param(0.01, 1e-9, 1e6, "The largest size that an entry may have after one local step (gamma).")
    steps: int = param(1, 1, 10000, STEPS)

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return change_update(client, self.filter_update)

    def surrogate(self, client: Client, received: Params) -> Client:
        arrived = self.mask_arrived(received)
        return change_tensors(client, lambda name, g: self.clamp(g) * arrived[name])

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "what arrived, and bounds": AdaptiveStrategy(
                "known: the entries that arrived are compared; an entry at the limit may be larger, and an entry left out must be small",
                lambda client, received: snap_to_received(client, received, *self.slack(received)),
                exact=True,
                errors=exact_errors,
            ),
            "what arrived": AdaptiveStrategy(self.imitation, self.surrogate, errors=exact_errors),
        }

    def filter_update(self, update: Params) -> Params:
        """Return what is sent: the update without its smallest entries, clamped."""
        sizes = torch.cat([g.detach().abs().flatten() for g in update.values()])  # (n,)
        least = sizes.kthvalue(self.count_dropped(len(sizes)) + 1).values
        return {name: self.clamp(g * (g.detach().abs() >= least)) for name, g in update.items()}

    def count_dropped(self, count: int) -> int:
        """Return how many of `count` entries are set to zero if all entries differ."""
        return math.ceil(round(self.percentile / 100 * (count - 1), 9))  # 9 digits: 0.1 * 10 is not to be rounded up to 2

    def clamp(self, g: Tensor) -> Tensor:
        """Return the entries, clamped to the limit."""
        return g.clamp(-self.gamma * self.steps, self.gamma * self.steps)

    def mask_arrived(self, received: Params) -> dict[str, Tensor]:
        """Return masks of the entries that were not set to zero.

        All entries count if there are more zeros than the filter makes, because then its threshold was 0.
        """
        zeros = sum(int((g == 0).sum()) for g in received.values())
        real = zeros > self.count_dropped(sum(g.numel() for g in received.values()))
        return {name: (g != 0) | real for name, g in received.items()}

    def slack(self, received: Params) -> tuple[Params, Params]:
        """Return by how much each entry of the gradient may be smaller, and by how much larger, than the received entry."""
        arrived = self.mask_arrived(received)
        least = min(float(g.abs().where(g != 0, torch.inf).min()) for g in received.values())
        around = {name: torch.where(kept, 0.0, least).to(received[name]) for name, kept in arrived.items()}
        limit = {name: self.clamp(torch.full_like(g, torch.inf)) for name, g in received.items()}
        below = {name: around[name].where(g > -limit[name], torch.inf) for name, g in received.items()}
        return below, {name: around[name].where(g < limit[name], torch.inf) for name, g in received.items()}
