"""The expected size of the errors that protections add to an update, as far as an adaptive attacker can compute it."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.engine.core import Client, ClientState, Params, Received, Round, Update
from leakage.engine.federation import Federation
from leakage.engine.tensor_names import OF, name_in_model


@dataclass(frozen=True)
class Sent:
    """A client's update, and the gradients of its local steps, as numbers: what becomes of an error in each step follows by derivatives.

    steps    how many pictures each step had, and its gradient
    update   what the protocol makes of these
    leaf     the same, as what goes on from there
    """

    steps: tuple[tuple[int, Params], ...]
    update: Params
    leaf: Params
    pictures: int


@torch.enable_grad()
def expected_errors(federation: Federation, attacked: Round, inverted: Params, state: ClientState) -> Params | None:
    """The expected squared error of each entry of the average gradient in what the attacker works with.

    The variances of independent errors are added up: each protection says what becomes of them, and what it adds (`Defense.errors`). How
    much an error in one local step counts follows from the protocol with one number for each tensor, and from `to_gradient`: to first
    order, that is as if the errors of one local step did not move the next one's gradient.

    Args:
        federation: the setting, as the attacker knows it.
        attacked: the round.
        inverted: what the attacker works with in place of its update.
        state: what the client carried before, as far as the server can compute that.

    Returns:
        By parameter, of its shape or (); {} where the replay of the true pictures is exact, None where the attacker does not know.
    """
    if not federation.adaptive:
        return None
    if not federation.protections:
        return {}
    every = list[Sent]()
    scalars = {name: torch.zeros(()) for name in attacked.weights}
    count = attacked.count
    client = federation.aggregation.merge_clients([_noting(federation, every)] * federation.aggregation.members)
    update, _ = client(scalars, torch.zeros(count, 1), torch.zeros(count, dtype=torch.long), {})
    members, number = federation.aggregation.members, federation.attacked_round
    received = Received(inverted, attacked.weights, state, count, number, single=members == 1)
    try:
        arrived = [_of_one_client(federation, sent, received) for sent in every]
        total = Params()
        for name, value in federation.to_gradient(update, Round(scalars, update, {}, count)).items():
            of = name_in_model(name)
            leaf_gradients = torch.autograd.grad(value, [sent.leaf[of] for sent in every], retain_graph=True, allow_unused=True)
            for leaf_gradient, variances in zip(leaf_gradients, arrived, strict=True):
                if leaf_gradient is not None and of in variances:
                    total[name] = total.get(name, torch.zeros(())) + leaf_gradient.detach().square().to(variances[of]) * variances[of]
    except _UnknownError:
        return None
    return total


class _UnknownError(Exception):
    """A protection whose errors the attacker does not know."""


def _noting(federation: Federation, every: list[Sent]) -> Client:
    """A client whose gradients are numbers, which notes what it sends."""

    def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        steps = list[tuple[int, Params]]()

        def gradient(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            steps.append((len(x), {name: torch.zeros((), requires_grad=True) for name in weights}))
            return steps[-1][1], state

        update, state = federation.protocol.client(gradient)(weights, x, y, state)
        leaf = {name: torch.zeros((), requires_grad=True) for name in update}
        every.append(Sent(tuple(steps), update, leaf, len(x)))
        return leaf, state

    return send


def _of_one_client(federation: Federation, sent: Sent, received: Received) -> Params:
    """The variances in what one client sends. Raises _UnknownError."""
    whole = {name: value for name, value in received.update.items() if OF not in name}
    gradient = federation.to_gradient(whole, Round(received.weights, whole, received.state, received.pictures))
    total = Params()
    for number, (pictures, leaf) in enumerate(sent.steps):
        single = received.single and len(sent.steps) == 1
        step = replace(received, update={n: g.detach() for n, g in gradient.items()}, pictures=pictures, step=number, single=single)
        for name, variance in _through(federation, "gradient", {}, step).items():
            (leaf_gradient,) = torch.autograd.grad(sent.update[name], leaf[name], retain_graph=True)
            total[name] = total.get(name, torch.zeros(())) + leaf_gradient.square().to(variance) * variance
    return _through(federation, "update", total, replace(received, update=whole, pictures=sent.pictures))


def _through(federation: Federation, stage: str, incoming: Params, received: Received) -> Params:
    """The variances behind the protections of that stage. Raises _UnknownError."""
    for own in federation.protections:
        if own.defense.stage == stage:
            left = own.strategy.errors(incoming, received)
            if left is None:
                raise _UnknownError
            incoming = left
    return incoming
