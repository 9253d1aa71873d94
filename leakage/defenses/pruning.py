"""Gradient pruning: the client sends only a part of the entries."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import change_tensors, count_step, exact_errors, snap_to_received
from leakage.engine.core import (
    AdaptiveStrategy,
    Client,
    ClientState,
    Defense,
    Params,
    Published,
    Received,
    StepRng,
    Update,
    choice,
    flag,
    param,
)

LATEST = "pruning.latest."  # keys in the attacker's state, by parameter: the value of each entry that arrived last
SCOPES = ("each tensor", "whole gradient", "random")


@dataclass(frozen=True, kw_only=True)
class Pruning(Defense):
    """Set the `fraction` of entries of smallest magnitude to zero: g~ = g * [|g| >= t].

    floor(fraction * n) of n entries lie below the threshold t; the n entries are those of one tensor, or of the whole gradient.
    Scope "random" sets floor(fraction * n) entries of each tensor to zero, drawn anew in every step; the others are sent unchanged.
    With feedback, the client adds the entries that it did not send to the next gradient: a = g + r, send a~, r <- a - a~. In the end all
    is sent. An adaptive attacker compares the entries that arrived. If the smallest entries were pruned, it can also compare a pruned
    entry, where the entry of the guess is larger than the smallest entry that arrived. It does not know what feedback adds from earlier
    steps. With scope "random", other entries arrive in every round: R rounds together bring the fraction 1 - fraction^R of all.
    Source: Zhu et al. 2019, section 5.2; per tensor as in Li et al. 2022 (GGL) and Sun et al. 2021 (Soteria); feedback as in
    Lin et al. 2018 (Deep Gradient Compression), section 3, there with momentum.
    """

    title = "The largest entries only (pruning)"
    short = "Pruning"
    plain = "The phone sends only some entries of the gradient, usually the largest, and sets the others to zero."
    hint = "An attacker that knows it compares the surviving entries only. Try 90 % with and without that knowledge."
    imitation = "known, and only the entries that survived are compared"
    elementwise = True
    published = Published("Published: no picture once 20 to 30 % of the entries are left out.", "fraction", (0.2, 0.3))
    source = "https://arxiv.org/abs/1906.08935"

    fraction: float = param(0.9, 0, 0.999, "Fraction of the entries set to zero. 0 switches it off.")
    scope: str = choice(
        "each tensor",
        SCOPES,
        "Which entries are set to zero: the smallest of each tensor, the smallest of the whole gradient, or random ones.",
    )
    feedback: bool = flag(False, "Entries that were not sent are added to the next gradient, so that nothing is lost in the long run.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        owed = f"pruning.{step_rng(0).initial_seed()}.owed."  # keys of this defense alone: an experiment may have two prunings

        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            update, state = client(weights, x, y, state)
            step, after = count_step(state, "pruning")
            if self.scope == "random":
                state = after
            if self.feedback:
                update = {name: g + state.get(owed + name, 0) for name, g in update.items()}
            masks = self.masks_sent(update, step_rng(step))
            sent = {name: g * masks[name] for name, g in update.items()}
            if self.feedback:
                state = state | {owed + name: (g - sent[name]).detach() for name, g in update.items()}
            return sent, state

        return send

    def surrogate(self, client: Client, received: Params) -> Client:
        """Return the imitated client with zeros in the entries that were pruned in `received`."""
        arrived = self.mask_arrived(received)
        return change_tensors(client, lambda name, g: g * arrived[name])

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "what arrived": AdaptiveStrategy(self.imitation, self.surrogate, errors=self.errors),
            "what arrived, and bounds": AdaptiveStrategy(
                "known: entries that survived are compared, and the other entries must be smaller",
                lambda client, received: snap_to_received(client, received, self.slack(received)),
                exact=True,
                errors=lambda incoming, received: None if self._owes(received) else exact_errors(incoming, received),
            ),
            "collect the rounds": AdaptiveStrategy(
                "known: entries that survived in any of the rounds watched are put together and compared",
                self.surrogate,
                invert_update=_collected,
                infer_state=lambda received, state: {
                    **state,
                    **{LATEST + name: g for name, g in _collected(received, state).items()},
                },
                averaging=True,
                errors=self.errors,
            ),
        }

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """Return the incoming error variances of the entries that arrived; the defense adds no errors.

        None (unknown) for several gradients, after feedback, and if the largest of noisy entries were kept, because their noise is
        larger than usual.
        """
        if self._owes(received) or not received.single or (incoming and self.scope != "random"):
            return None
        arrived = self.mask_arrived(received.update)
        return {name: variance * arrived[name] for name, variance in incoming.items()}

    def slack(self, received: Params) -> Params:
        """Return how far each entry of the gradient can be from the received entry.

        0 for an entry that arrived; otherwise the smallest magnitude that arrived, or infinity with scope "random".
        """
        arrived = self.mask_arrived(received)
        least = {name: g.abs().where(g != 0, torch.inf).min() for name, g in received.items()}
        if self.scope == "whole gradient":
            least = dict.fromkeys(least, torch.stack(list(least.values())).min())
        if self.scope == "random":
            least = {name: torch.full_like(value, torch.inf) for name, value in least.items()}
        return {name: torch.where(kept, 0, least[name]) for name, kept in arrived.items()}

    def mask_arrived(self, received: Params) -> dict[str, Tensor]:
        """Return masks of the entries that were not pruned.

        A tensor (or gradient) with more zeros than pruning makes counts as a whole: its threshold was 0, so its zeros are real (black
        pixels, dead units) and inform the attacker. With scope "random" the masks are those of the nonzero entries.
        """
        arrived = {name: g != 0 for name, g in received.items()}
        groups = [list(received)] if self.scope == "whole gradient" else [[name] for name in received]
        for names in groups if self.scope != "random" else []:
            zeros = sum(int((~arrived[name]).sum()) for name in names)
            if zeros > self.count_dropped(sum(arrived[name].numel() for name in names)):
                arrived |= {name: torch.ones_like(arrived[name]) for name in names}
        return arrived

    def masks_sent(self, update: Params, rng: torch.Generator) -> dict[str, Tensor]:
        """Return masks of the entries that are sent, by parameter."""
        if self.scope == "random":
            return {name: self._drawn(g, rng) for name, g in update.items()}
        sizes = {name: g.detach().abs() for name, g in update.items()}
        if self.scope == "whole gradient":
            threshold = self.threshold(torch.cat([size.flatten() for size in sizes.values()]))
            return {name: size >= threshold for name, size in sizes.items()}
        return {name: size >= self.threshold(size.flatten()) for name, size in sizes.items()}

    def count_dropped(self, count: int) -> int:
        """Return how many of `count` entries pruning sets to zero."""
        return int(self.fraction * count)

    def threshold(self, sizes: Tensor) -> Tensor:
        """Return the smallest of the magnitudes `sizes` (n,) that is sent."""
        return sizes.kthvalue(self.count_dropped(len(sizes)) + 1).values

    def _owes(self, received: Received) -> bool:
        """Return whether the client may have added entries of earlier rounds to this gradient."""
        return self.feedback and received.number > 1

    def _drawn(self, g: Tensor, rng: torch.Generator) -> Tensor:
        mask = torch.ones(g.numel(), dtype=torch.bool)
        mask[torch.randperm(g.numel(), generator=rng)[: self.count_dropped(g.numel())]] = False
        return mask.view(g.shape).to(g.device)


def _collected(received: Params, state: ClientState) -> Params:
    """Return for each entry the value other than 0 that arrived last, now or in an earlier round; 0 for an entry that never arrived."""
    return {name: torch.where(g != 0, g, state.get(LATEST + name, torch.zeros_like(g))) for name, g in received.items()}
