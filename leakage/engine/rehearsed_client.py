"""A client as the attacker rehearses it: gradients of the attacker's own go through protections whose random numbers are drawn anew."""

from functools import partial

from torch import Tensor, nn

from leakage.engine.core import Client, ClientState, Params, Update, generator
from leakage.engine.federation import STAGES, Federation


def rehearsed_client(federation: Federation, model: nn.Module, gradients: Params, received: Params, *, seed: int) -> Client:
    """A client whose picture number y has the gradient in row y of `gradients`, protected with the randomness of another seed.

    Args:
        federation: whose protocol and protections are rehearsed
        model: as the client got it
        gradients: name -> (G, ...), one row for each picture; picture number y has row y modulo G
        received: the update that arrived, for protections that are rehearsed by what it shows
        seed: of the protections' random numbers
    """
    rows = len(next(iter(gradients.values())))

    def alike(_weights: Params, _x: Tensor, y: Tensor, state: ClientState) -> Update:
        return {name: g[y % rows].mean(0) if rows > 1 else g[0] for name, g in gradients.items()}, state

    def member(number: int) -> Client:
        client: Client = alike
        for stage in STAGES:
            for own in federation.protections:
                if own.defense.stage == stage:
                    step_rng = partial(generator, seed, "rehearsal", own.place, own.defense.id, number)
                    client = own.defense.rehearse(client, model, step_rng, received)
            if stage == "gradient":
                client = federation.protocol.client(client, partial(generator, seed, "rehearsal", number))
        return client

    return federation.aggregation.merge_clients([member(number) for number in range(federation.aggregation.members)])
