"""Central differential privacy of Flower: the server adds the noise, after it has seen every update."""

from dataclasses import dataclass

from torch import nn

from leakage.defenses._each import change_update, clip_by_norm
from leakage.engine.core import Client, Defense, Params, Received, StepRng, choice, param

SERVER, CLIENT = "by the server", "by the phone"


@dataclass(frozen=True, kw_only=True)
class FlowerCentralDP(Defense):
    """The server clips each update to norm C, adds the updates up and adds noise N(0, (z C)^2); or each client clips its own update.

    C is `clipping_norm`. The guarantee holds against all that see the model afterwards: other clients, and the public. The server
    receives every update before the noise, so there is no guarantee against the server and no epsilon is stated here; the server attacks
    the update as it would be without this defense. The server has drawn the noise that it adds to the next model, so it knows this noise;
    the noise is left out here, also where accuracies are measured.
    Source: Flower (flwr.serverapp.strategy: DifferentialPrivacyServerSideFixedClipping, ...ClientSideFixedClipping), read in 2026;
    McMahan et al. 2018 (DP-FedAvg).
    """

    title = "Noise that the server adds (central DP of Flower)"
    short = "Flower central DP"
    plain = "The server adds random noise to the sum of all updates, after it has received each of them as it is."
    hint = (
        "It protects the phones from each other and from the public, not from this server: the picture leaks as without it. "
        "Only noise on the phone, or adding up so that no single update is seen, changes that."
    )
    imitation = (
        "known: the server has the update before its own noise, so nothing hides it; if the phone shortens it, the guess is shortened too"
    )
    stage = "update"
    source = "https://flower.ai/docs/framework/how-to-use-differential-privacy.html"

    clipping: str = choice(SERVER, (SERVER, CLIENT), "Where an update is clipped. By the server: after it has received the whole update.")
    clipping_norm: float = param(1.0, 1e-6, 1e6, "The largest norm that an update may have (Flower's clipping_norm, C).")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return change_update(client, self.clip)

    def surrogate(self, client: Client, received: Params) -> Client:
        return change_update(client, self.clip)

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """Return the incoming error variances unchanged; None (unknown) where the client clips an update that is already noisy."""
        return None if incoming and self.clipping == CLIENT else incoming

    def clip(self, update: Params) -> Params:
        """Return what reaches the server: the update, clipped if the client clips it."""
        return clip_by_norm(update, self.clipping_norm) if self.clipping == CLIENT else update
