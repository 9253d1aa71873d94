"""Gradient clipping: limits the norm of an update."""

from dataclasses import dataclass

from torch import nn

from leakage.defenses._each import change_update, clip_by_norm, clip_each_by_norm
from leakage.engine.core import Client, Defense, Params, Received, StepRng, choice, param

SCOPES = ("whole gradient", "each layer")


@dataclass(frozen=True, kw_only=True)
class Clipping(Defense):
    """Send g~ = g * min(1, bound / ||g||_2), with the norm of the whole gradient or of each tensor.

    Clipping alone hides next to nothing, because the direction stays. Together with noise it gives differential privacy, because it
    limits the influence of one update. An adaptive attacker clips the gradient of its guess in the same way.
    Source: Abadi et al. 2016, algorithm 1, there for every example; for a whole update as in Li et al. 2022 (GGL), bound 4.
    """

    title = "Shortened updates (clipping)"
    short = "Clipping"
    plain = "An update that is too long is shortened before it is sent. Its direction stays the same."
    hint = "Attacks that compare directions do not notice it. Clip each layer to change the direction too."
    source = "https://arxiv.org/abs/1607.00133"

    bound: float = param(4.0, 1e-6, 1e6, "The largest norm that an update, or each of its layers, may have.")
    scope: str = choice("whole gradient", SCOPES, "Whether the whole gradient is shortened at once, or each layer by itself.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return change_update(client, self.clip)

    def surrogate(self, client: Client, received: Params) -> Client:
        return change_update(client, self.clip)

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """Return {} (no errors) for an exact gradient; None for a noisy gradient, because the clipping of its errors is not known."""
        return None if incoming else {}

    def clip(self, update: Params) -> Params:
        """Return the clipped update."""
        return (clip_each_by_norm if self.scope == "each layer" else clip_by_norm)(update, self.bound)
