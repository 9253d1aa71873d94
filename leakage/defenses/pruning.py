"""Gradient pruning: send a part of the entries only."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import changed, counted, none_added, within
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

LATEST = "pruning.latest."  # in a state: of the rounds before, what last arrived of every entry, by parameter
SCOPES = ("each tensor", "whole gradient", "random")


@dataclass(frozen=True, kw_only=True)
class Pruning(Defense):
    """The `fraction` of entries of smallest magnitude is set to zero: g~ = g * [|g| >= t].

    The threshold t is such that floor(fraction * n) of n entries lie below it: of each tensor's, or of all that the gradient has.
    Scope "random": floor(fraction * n) entries of each tensor, drawn afresh in every step; the others are sent as they are, not enlarged.
    Feedback: what was not sent is added to the next gradient, a = g + r, send a~, r <- a - a~; all is sent in the end.
    An adaptive attacker compares the entries that arrived. Where the smallest were pruned, it also compares the others, as far as they
    are larger in its guess than the smallest that arrived. What feedback adds from earlier steps it cannot know. Where randomness
    decides, every round brings other entries: those of R rounds together are 1 - fraction^R of all.
    Source: Zhu et al. 2019, section 5.2; per tensor as in Li et al. 2022 (GGL) and Sun et al. 2021 (Soteria); feedback as in
    Lin et al. 2018 (Deep Gradient Compression), section 3, there with momentum.
    """

    title = "The largest entries only (pruning)"
    short = "Pruning"
    plain = "The phone sends only some entries of the gradient, usually the largest, and sets the others to zero."
    hint = "An attacker who knows it compares the surviving entries only. Try 90 % with and without that knowledge."
    imitation = "known, and only the entries that survived are compared"
    elementwise = True
    published = Published("Published: no picture once 20 to 30 % of the entries are left out.", "fraction", (0.2, 0.3))
    source = "https://arxiv.org/abs/1906.08935"

    fraction: float = param(0.9, 0, 0.999, "Fraction of the entries set to zero. 0 switches it off.")
    scope: str = choice("each tensor", SCOPES, "The smallest of each tensor, the smallest of the whole gradient, or any, at random.")
    feedback: bool = flag(False, "What was not sent is added to the next gradient, so that nothing is lost in the long run.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        owed = f"pruning.{step_rng(0).initial_seed()}.owed."  # of this pruning: an experiment may have two

        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            update, state = client(weights, x, y, state)
            step, after = counted(state, "pruning")
            if self.scope == "random":
                state = after
            if self.feedback:
                update = {name: g + state.get(owed + name, 0) for name, g in update.items()}
            kept = self.kept(update, step_rng(step))
            sent = {name: g * kept[name] for name, g in update.items()}
            if self.feedback:
                state = state | {owed + name: (g - sent[name]).detach() for name, g in update.items()}
            return sent, state

        return send

    def surrogate(self, client: Client, received: Params) -> Client:
        """Keep the entries that survived in `received`."""
        arrived = self.arrived(received)
        return changed(client, lambda update: {name: g * arrived[name] for name, g in update.items()})

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "what arrived": AdaptiveStrategy(self.imitation, self.surrogate, errors=self.errors),
            "what arrived, and bounds": AdaptiveStrategy(
                "known: entries that survived are compared, and the others must be smaller than those",
                lambda client, received: within(client, received, self.slack(received)),
                exact=True,
                errors=lambda incoming, received: None if self._owes(received) else none_added(incoming, received),
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
        """None of its own, and none in entries that were pruned.

        Not known of several gradients, nor what feedback adds, nor of the largest of noisy entries: their noise is larger than usual.
        """
        if self._owes(received) or not received.single or (incoming and self.scope != "random"):
            return None
        arrived = self.arrived(received.update)
        return {name: variance * arrived[name] for name, variance in incoming.items()}

    def slack(self, received: Params) -> Params:
        """How far an entry can be from the one received: 0 where it arrived, else up to the smallest that did; of random ones, anything."""
        arrived = self.arrived(received)
        least = {name: g.abs().where(g != 0, torch.inf).min() for name, g in received.items()}
        if self.scope == "whole gradient":
            least = dict.fromkeys(least, torch.stack(list(least.values())).min())
        if self.scope == "random":
            least = {name: torch.full_like(value, torch.inf) for name, value in least.items()}
        return {name: torch.where(kept, 0, least[name]) for name, kept in arrived.items()}

    def arrived(self, received: Params) -> dict[str, Tensor]:
        """Which entries were not pruned.

        Unlike a plain mask of the nonzero entries, a tensor (or gradient) with more zeros than pruning makes is kept whole: its threshold
        was 0, so its zeros are real (black pixels, dead units) and tell the attacker something. With random entries they may be either.
        """
        arrived = {name: g != 0 for name, g in received.items()}
        groups = [list(received)] if self.scope == "whole gradient" else [[name] for name in received]
        for names in groups if self.scope != "random" else []:
            zeros = sum(int((~arrived[name]).sum()) for name in names)
            if zeros > self.dropped(sum(arrived[name].numel() for name in names)):
                arrived |= {name: torch.ones_like(arrived[name]) for name in names}
        return arrived

    def kept(self, update: Params, rng: torch.Generator) -> dict[str, Tensor]:
        """Which entries are sent, as masks by name."""
        if self.scope == "random":
            return {name: self._drawn(g, rng) for name, g in update.items()}
        sizes = {name: g.detach().abs() for name, g in update.items()}
        if self.scope == "whole gradient":
            threshold = self.threshold(torch.cat([size.flatten() for size in sizes.values()]))
            return {name: size >= threshold for name, size in sizes.items()}
        return {name: size >= self.threshold(size.flatten()) for name, size in sizes.items()}

    def dropped(self, count: int) -> int:
        """How many of `count` entries pruning sets to zero."""
        return int(self.fraction * count)

    def threshold(self, sizes: Tensor) -> Tensor:
        """The smallest magnitude (n,) that is kept."""
        return sizes.kthvalue(self.dropped(len(sizes)) + 1).values

    def _owes(self, received: Received) -> bool:
        """Whether what was not sent earlier has been added to the gradient."""
        return self.feedback and received.number > 1

    def _drawn(self, g: Tensor, rng: torch.Generator) -> Tensor:
        mask = torch.ones(g.numel(), dtype=torch.bool)
        mask[torch.randperm(g.numel(), generator=rng)[: self.dropped(g.numel())]] = False
        return mask.view(g.shape).to(g.device)


def _collected(received: Params, state: ClientState) -> Params:
    """What last arrived of every entry; 0 of one that never did."""
    return {name: torch.where(g != 0, g, state.get(LATEST + name, torch.zeros_like(g))) for name, g in received.items()}
