"""A client that the attacker simulates: gradients that the attacker chose pass protections with newly drawn random numbers."""

from functools import partial

from torch import Tensor, nn

from leakage.engine.client_protections import STAGES
from leakage.engine.core import Client, ClientState, Params, Update, generator
from leakage.engine.federation import Federation


def rehearsed_client(federation: Federation, model: nn.Module, gradients: Params, received: Params, *, seed: int) -> Client:
    """Build a client that returns given gradients in place of its pictures' gradients, protected with the randomness of another seed.

    Args:
        federation: the protocol and the protections of the client
        model: the model that the client received
        gradients: name -> (G, ...), one row for each picture; picture number y has row y modulo G
        received: the update that arrived; a protection may repeat choices that it shows (`Defense.rehearse`)
        seed: of the protections' random numbers

    Returns:
        A client that takes the pictures' numbers y (B,) in place of labels, and ignores pictures and weights.
    """
    rows = len(next(iter(gradients.values())))

    def given_gradient(_weights: Params, _x: Tensor, y: Tensor, state: ClientState) -> Update:
        return {name: g[y % rows].mean(0) if rows > 1 else g[0] for name, g in gradients.items()}, state

    def member(number: int) -> Client:
        client: Client = given_gradient
        for stage in STAGES:
            for protection in federation.protections:
                if protection.defense.stage == stage:
                    step_rng = partial(generator, seed, "rehearsal", protection.index, protection.defense.id, number)
                    client = protection.defense.rehearse(client, model, step_rng, received)
            if stage == "gradient":
                client = federation.protocol.client(client, partial(generator, seed, "rehearsal", number))
        return client

    return federation.aggregation.merge_clients([member(number) for number in range(federation.aggregation.members)])
