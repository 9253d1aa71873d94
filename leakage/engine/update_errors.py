"""The expected size of the errors that protections add to an update, as far as an adaptive attacker can compute it."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.engine.core import Client, ClientState, Params, Received, Round, Update
from leakage.engine.federation import Federation
from leakage.engine.imitation import Imitation
from leakage.engine.tensor_names import OF, name_in_model


@dataclass(frozen=True)
class Sent:
    """A client's computation with one number in place of each tensor: its derivatives say how an error in a step changes the update."""

    steps: tuple[tuple[int, Params], ...]
    """For each local step, its number of pictures and its gradient."""
    update: Params
    """What the protocol computes from these gradients."""
    leaf: Params
    """A leaf tensor for each parameter, which stands for `update` in what the server computes."""
    pictures: int
    """The number of the client's pictures."""


@torch.enable_grad()
def expected_errors(imitation: Imitation, attacked: Round, inverted: Params, state: ClientState) -> Params | None:
    """Compute the expected squared error of each entry of the average gradient that the attacker works with.

    The variances of independent errors add up. Each protection returns the variances behind it, given those before it
    (`AdaptiveStrategy.errors`). The factor of an error in a local step is a derivative of the protocol and of `to_gradient`, computed with
    one number for each tensor. This is a first-order approximation: the errors of a local step do not change the gradient of the next.

    Args:
        imitation: the attacker's imitation of the federation.
        attacked: the attacked round.
        inverted: the update that the attacker works with in place of the received update, by parameter.
        state: the client's state before the round, as far as the server can compute that.

    Returns:
        Variances by parameter, of its shape or (); {} without protections; None for a naive attacker, or where a protection's errors are
        unknown.
    """
    federation = imitation.federation
    if not imitation.adaptive:
        return None
    if not federation.protections:
        return {}
    sent_updates = list[Sent]()
    scalars = {name: torch.zeros(()) for name in attacked.weights}
    count = attacked.count
    client = federation.aggregation.merge_clients([_recording_client(federation, sent_updates)] * federation.aggregation.members)
    update, _ = client(scalars, torch.zeros(count, 1), torch.zeros(count, dtype=torch.long), {})
    members, number = federation.aggregation.members, federation.attacked_round
    received = Received(inverted, attacked.weights, state, count, number, single=members == 1)
    try:
        by_client = [_of_one_client(imitation, sent, received) for sent in sent_updates]
        total = Params()
        for name, value in imitation.to_gradient(update, Round(scalars, update, {}, count)).items():
            parameter = name_in_model(name)
            leaves = [sent.leaf[parameter] for sent in sent_updates]
            leaf_gradients = torch.autograd.grad(value, leaves, retain_graph=True, allow_unused=True)
            for leaf_gradient, variances in zip(leaf_gradients, by_client, strict=True):
                if leaf_gradient is not None and parameter in variances:
                    factor = leaf_gradient.detach().square().to(variances[parameter])
                    total[name] = total.get(name, torch.zeros(())) + factor * variances[parameter]
    except _UnknownError:
        return None
    return total


class _UnknownError(Exception):
    """The attacker does not know the variance of the errors that a protection adds to an update."""


def _recording_client(federation: Federation, sent_updates: list[Sent]) -> Client:
    """Return a client that computes with one number for each tensor, and appends what it sends to `sent_updates`."""

    def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        steps = list[tuple[int, Params]]()

        def gradient(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            steps.append((len(x), {name: torch.zeros((), requires_grad=True) for name in weights}))
            return steps[-1][1], state

        update, state = federation.protocol.client(gradient)(weights, x, y, state)
        leaf = {name: torch.zeros((), requires_grad=True) for name in update}
        sent_updates.append(Sent(tuple(steps), update, leaf, len(x)))
        return leaf, state

    return send


def _of_one_client(imitation: Imitation, sent: Sent, received: Received) -> Params:
    """Compute the variances of the errors in one client's update, by parameter. Raises _UnknownError."""
    whole = {name: value for name, value in received.update.items() if OF not in name}
    gradient = imitation.to_gradient(whole, Round(received.weights, whole, received.state, received.pictures))
    total = Params()
    for number, (pictures, leaf) in enumerate(sent.steps):
        single = received.single and len(sent.steps) == 1
        step = replace(received, update={n: g.detach() for n, g in gradient.items()}, pictures=pictures, step=number, single=single)
        for name, variance in _variances_behind(imitation, "gradient", {}, step).items():
            (leaf_gradient,) = torch.autograd.grad(sent.update[name], leaf[name], retain_graph=True)
            total[name] = total.get(name, torch.zeros(())) + leaf_gradient.square().to(variance) * variance
    return _variances_behind(imitation, "update", total, replace(received, update=whole, pictures=sent.pictures))


def _variances_behind(imitation: Imitation, stage: str, incoming: Params, received: Received) -> Params:
    """Compute the variances behind the protections of a stage, given those before them. Raises _UnknownError."""
    for protection in imitation.protections:
        if protection.defense.stage == stage:
            outgoing = protection.strategy.errors(incoming, received)
            if outgoing is None:
                raise _UnknownError
            incoming = outgoing
    return incoming
