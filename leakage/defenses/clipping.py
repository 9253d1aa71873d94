"""Gradient clipping: no update is longer than a bound."""

from dataclasses import dataclass

from torch import nn

from leakage.defenses._each import changed, clip_by_norm, clip_each_by_norm
from leakage.engine.core import Client, Defense, Params, Received, StepRng, choice, param

SCOPES = ("whole gradient", "each layer")


@dataclass(frozen=True, kw_only=True)
class Clipping(Defense):
    """g~ = g * min(1, bound / ||g||_2), with the norm of the whole gradient or of each tensor.

    By itself it hides next to nothing: the direction stays. It is what makes noise differential privacy, by bounding what one upload says.
    An attacker who knows it clips its own gradient likewise.
    Source: Abadi et al. 2016, algorithm 1, there for every example; for a whole update as in Li et al. 2022 (GGL), bound 4.
    """

    title = "Shortened updates (clipping)"
    short = "Clipping"
    plain = "An update that is too long is shortened before it is sent. Its direction stays the same."
    hint = "Attacks that compare directions do not notice it. Clip each layer to change the direction too."
    source = "https://arxiv.org/abs/1607.00133"

    bound: float = param(4.0, 1e-6, 1e6, "The longest that an update, or each of its layers, may be.")
    scope: str = choice("whole gradient", SCOPES, "Whether the whole gradient is shortened at once, or each layer by itself.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return changed(client, self.clip)

    def surrogate(self, client: Client, received: Params) -> Client:
        return changed(client, self.clip)

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """None of its own; how much shorter it makes those of a noisy gradient is not known."""
        return None if incoming else {}

    def clip(self, update: Params) -> Params:
        """The shortened update."""
        return (clip_each_by_norm if self.scope == "each layer" else clip_by_norm)(update, self.bound)
