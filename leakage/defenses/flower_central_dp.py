"""Central differential privacy of Flower: the server adds the noise, after it has seen every update."""

from dataclasses import dataclass

from torch import nn

from leakage.defenses._each import changed, shortened
from leakage.engine.core import Client, Defense, Params, Received, StepRng, choice, param

SERVER, CLIENT = "by the server", "by the phone"


@dataclass(frozen=True, kw_only=True)
class FlowerCentralDP(Defense):
    """The server shortens each update to `clip`, adds them up and adds noise N(0, (z clip)^2); or the phone shortens its own.

    What is promised holds against those who see the model afterwards: other phones, and the public. The server itself gets every update
    before there is noise: to it nothing is promised, so no epsilon is stated here, and it attacks what it would get without protection.
    Noise on the model that it sends next is its own, and known to it; here it is left out, also where accuracies are measured.
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
        "known: the server holds the update before its own noise, so nothing hides it; where the phone shortens it, so does the guess"
    )
    stage = "update"
    source = "https://flower.ai/docs/framework/how-to-use-differential-privacy.html"

    clipping: str = choice(SERVER, (SERVER, CLIENT), "Who shortens an update. By the server: after it has received it whole.")
    clip: float = param(1.0, 1e-6, 1e6, "The longest that an update may be.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        return changed(client, self.sent)

    def surrogate(self, client: Client, received: Params) -> Client:
        return changed(client, self.sent)

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """None of its own; how much shorter a phone makes those of a noisy update is not known."""
        return None if incoming and self.clipping == CLIENT else incoming

    def sent(self, update: Params) -> Params:
        """What reaches the server."""
        return shortened(update, self.clip) if self.clipping == CLIENT else update
