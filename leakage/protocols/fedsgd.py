"""FedSGD: the client sends one gradient of its batch."""

from dataclasses import dataclass

from leakage.engine.core import Client, Params, Protocol


@dataclass(frozen=True, kw_only=True)
class FedSGD(Protocol):
    """The client computes the mean gradient over its batch and sends it as it is.

    Source: McMahan et al. 2017, "FederatedSGD" (section 2).
    """

    title = "FedSGD: one gradient"
    plain = "The phone looks at its pictures once and sends the gradient: how each weight of the model should change."
    hint = "The server receives the gradient itself, the easiest case for an attacker."
    source = "https://arxiv.org/abs/1602.05629"

    def client(self, gradient: Client) -> Client:
        return gradient

    def average(self, update: Params) -> Params:
        return update
