"""FedSGD: the client sends one gradient of its batch."""

from dataclasses import dataclass

from leakage.engine.core import Client, Params, Protocol, Round, StepRng, Travels, param


@dataclass(frozen=True, kw_only=True)
class FedSGD(Protocol):
    """The client computes the mean gradient over its batch and sends it as it is; the server steps along it.

    Source: McMahan et al. 2017, "FederatedSGD" (section 2).
    """

    title = "One step (FedSGD)"
    short = "FedSGD"
    plain = "The phone looks at its pictures once and sends the gradient: how each weight of the model should change."
    hint = "The server receives the gradient itself, the easiest case for an attacker."
    source = "https://arxiv.org/abs/1602.05629"
    elementwise = True
    sends_gradient = True
    travels = Travels("gradient", without_steps="one look", imitated="it computes the gradient as the phone does")

    rate: float = param(0.1, 1e-6, 10, "How far the server steps along the gradient: what the next round starts from.")

    def client(self, gradient: Client, step_rng: StepRng | None = None) -> Client:
        return gradient

    def to_gradient(self, update: Params, seen: Round) -> Params:
        return update

    def server_update(self, seen: Round) -> Params:
        return {name: weight - self.rate * seen.update[name] for name, weight in seen.weights.items()}
