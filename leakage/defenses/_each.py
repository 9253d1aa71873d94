"""What defenses share: clients with a changed update, error variances, the mean over rounds, and clipping by norm."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Params, Received, StepRng, Update
from leakage.engine.strategy import Errors


def change_update(client: Client, change: Callable[[Params], Params]) -> Client:
    """Return a client that applies `change`, a function without randomness, to its update before sending it."""

    def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        update, state = client(weights, x, y, state)
        return change(update), state

    return send


def change_tensors(client: Client, change: Callable[[str, Tensor], Tensor]) -> Client:
    """Return a client that replaces each tensor of its update by `change(name, tensor)`, a function without randomness."""
    return change_update(client, lambda update: {name: change(name, g) for name, g in update.items()})


def change_entries(client: Client, received: Params, change: Callable[[Tensor, Sequence[int]], Tensor]) -> Client:
    """Return a client that applies `change` to all entries of its update at once.

    On small networks this is several times as fast as `change_tensors`.

    Args:
        client: the client, or an attacker's imitation of it.
        received: the update that arrived, by parameter. It has no axes of guesses, so it says how many axes are those of a parameter.
        change: (entries (..., P) of all tensors, number of entries of each tensor) -> new entries, without randomness. The tensors lie one
            after the other; the axes before P count guesses.
    """

    def change_all(update: Params) -> Params:
        parts = [g.reshape(*g.shape[: g.dim() - received[name].dim()], -1) for name, g in update.items()]
        sizes = [part.shape[-1] for part in parts]
        changed = change(torch.cat(parts, -1), sizes).split(sizes, -1)
        return {name: part.reshape(g.shape) for (name, g), part in zip(update.items(), changed, strict=True)}

    return change_update(client, change_all)


def change_update_at_random(client: Client, step_rng: StepRng, name: str, change: Callable[[Params, torch.Generator], Params]) -> Client:
    """Return a client that applies `change` to its update with the random generator of the local step.

    The client's state counts the local steps under `name`.
    """

    def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        update, state = client(weights, x, y, state)
        step, state = count_step(state, name)
        return change(update, step_rng(step)), state

    return send


def change_tensors_at_random(client: Client, step_rng: StepRng, name: str, change: Callable[[Tensor, torch.Generator], Tensor]) -> Client:
    """Return a client that applies `change` to each tensor of its update with the random generator of the local step.

    All tensors share the generator. The client's state counts the local steps under `name`.
    """
    return change_update_at_random(client, step_rng, name, lambda update, rng: {layer: change(g, rng) for layer, g in update.items()})


def snap_to_received(client: Client, received: Params, below: Params, above: Params | None = None) -> Client:
    """Return a client whose update ignores small deviations from `received`: an entry within the bounds becomes the received entry.

    An entry outside the bounds becomes the received entry plus the part of its deviation that exceeds the bound.

    Args:
        client: the attacker's imitation of the client.
        received: the update that arrived, by parameter.
        below: by how much an entry may be smaller than the received entry, by parameter, in the shape of the parameter.
        above: by how much an entry may be larger than the received entry; None: as much as `below`.
    """

    def nearer(name: str, g: Tensor) -> Tensor:
        gap = g - received[name]
        return received[name] + gap - gap.clamp(-below[name], (above or below)[name])

    return change_tensors(client, nearer)


def keep_errors(incoming: Params, _received: Received) -> Params:
    """Return the incoming error variances unchanged, for a protection that the attacker imitates exactly, entry by entry."""
    return incoming


def exact_errors(incoming: Params, received: Received) -> Params | None:
    """Return {} (no errors) if the incoming gradient is exact and the server received it alone, otherwise None (unknown).

    These are the errors of a protection that an attacker imitates exactly only under these conditions.
    """
    return {} if received.single and not incoming else None


def add_variance(incoming: Params, received: Received, variance: float) -> Params:
    """Return the incoming error variances, by parameter, plus the `variance` of independent noise in every entry."""
    return {name: incoming.get(name, torch.zeros(())) + variance for name in received.update}


def count_step(state: ClientState, name: str) -> tuple[int, ClientState]:
    """Return the index of this local step, which the state counts under `name` from 0 on, and the state that counts one step more."""
    step = int(state.get(f"{name}.step", torch.tensor(0)))
    return step, {**state, f"{name}.step": torch.tensor(step + 1)}


def average_rounds(
    name: str,
    surrogate: Callable[[Client, Params], Client] = lambda client, _received: client,
    errors: Errors = lambda _incoming, _received: None,
) -> AdaptiveStrategy:
    """Return the adaptive strategy that averages all updates received so far, against noise that is drawn anew in every round.

    In the mean of R rounds, noise of standard deviation s has the deviation s / sqrt(R). This holds if pictures and weights stay the same:
    if the server changes the weights between rounds, the mean also contains gradients at other weights.

    Args:
        name: prefix of the keys in the attacker's state.
        surrogate: imitates the client's update without noise, such as a clipped gradient; by default the gradient itself.
        errors: computes the error variances of one round; the rounds are independent.
    """

    def total(received: Params, state: ClientState) -> ClientState:
        return {f"{name}.sum.{layer}": g + state.get(f"{name}.sum.{layer}", 0) for layer, g in received.items()}

    def invert_update(received: Params, state: ClientState) -> Params:
        rounds = int(state.get(f"{name}.rounds", 0)) + 1
        return {layer: value / rounds for layer, value in zip(received, total(received, state).values(), strict=True)}

    def infer_state(received: Params, state: ClientState) -> ClientState:
        rounds = torch.tensor(int(state.get(f"{name}.rounds", 0)) + 1)
        return {**state, **total(received, state), f"{name}.rounds": rounds}

    def of_the_mean(incoming: Params, received: Received) -> Params | None:
        once = errors(incoming, received)
        rounds = int(received.state.get(f"{name}.rounds", 0)) + 1
        return None if once is None else {layer: variance / rounds for layer, variance in once.items()}

    description = "known: it is averaged over the rounds watched, right as far as pictures and weights stay the same"
    return AdaptiveStrategy(
        description, surrogate, invert_update=invert_update, infer_state=infer_state, averaging=True, errors=of_the_mean
    )


def clip_by_norm(update: Params, max_norm: float) -> Params:
    """Return g min(1, max_norm / ||g||) with the norm of the whole update; differentiable, also at zero."""
    factor = max_norm / norm_of(update).clamp(min=max_norm)
    return {name: g * factor for name, g in update.items()}


def norm_of(update: Params) -> Tensor:
    """Return the norm of the whole update, (), as `clip_by_norm` computes it."""
    norm: Tensor = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in update.values()]))
    return norm


def clip_each_by_norm(update: Params, max_norm: float) -> Params:
    """Return the update with each tensor clipped by its own norm."""
    return {name: clip_by_norm({name: g}, max_norm)[name] for name, g in update.items()}
