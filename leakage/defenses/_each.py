"""What defenses share: updates changed, with or without fresh randomness, and the mean over rounds; gradients shortened; rounding."""

from collections.abc import Callable

import torch
from torch import Tensor

from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Params, Received, StepRng, Update
from leakage.engine.strategy import Errors


def changed(client: Client, change: Callable[[Params], Params]) -> Client:
    """The client, its update changed in the same way every time."""

    def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        update, state = client(weights, x, y, state)
        return change(update), state

    return send


def drawn(client: Client, step_rng: StepRng, name: str, change: Callable[[Params, torch.Generator], Params]) -> Client:
    """The client, its update changed with the randomness of this local step, which the client's state counts under `name`."""

    def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        update, state = client(weights, x, y, state)
        step, state = counted(state, name)
        return change(update, step_rng(step)), state

    return send


def at_random(client: Client, step_rng: StepRng, name: str, change: Callable[[Tensor, torch.Generator], Tensor]) -> Client:
    """The client, every tensor changed by itself with that randomness."""
    return drawn(client, step_rng, name, lambda update, rng: {layer: change(g, rng) for layer, g in update.items()})


def within(client: Client, received: Params, below: Params, above: Params | None = None) -> Client:
    """The client whose entries count as those in `received` while they are not further from them, and by the rest beyond.

    `below` and `above` say how much smaller and how much larger an entry may be; without `above` as much as smaller.
    """

    def nearer(name: str, g: Tensor) -> Tensor:
        gap = g - received[name]
        return received[name] + gap - gap.clamp(-below[name], (above or below)[name])

    return changed(client, lambda update: {name: nearer(name, g) for name, g in update.items()})


def as_before(incoming: Params, _received: Received) -> Params:
    """The errors behind a protection that an adaptive attacker imitates exactly, entry by entry: only those that came in."""
    return incoming


def none_added(incoming: Params, received: Received) -> Params | None:
    """Those of one that is imitated exactly as long as the gradient that it acts on is exact, and what it made of it arrived by itself."""
    return {} if received.single and not incoming else None


def added(incoming: Params, received: Received, variance: float) -> Params:
    """The errors that came in, and independent ones of this variance in every entry."""
    return {name: incoming.get(name, torch.zeros(())) + variance for name in received.update}


def counted(state: ClientState, name: str) -> tuple[int, ClientState]:
    """How many local steps the client has taken, which its state counts under `name`, and the state after one more."""
    step = int(state.get(f"{name}.step", torch.tensor(0)))
    return step, {**state, f"{name}.step": torch.tensor(step + 1)}


def averaging(
    name: str,
    surrogate: Callable[[Client, Params], Client] = lambda client, _received: client,
    errors: Errors = lambda _incoming, _received: None,
) -> AdaptiveStrategy:
    """The answer to noise that is fresh in every round: the mean of all that was received so far.

    Noise of deviation s is left with s / sqrt(rounds). It takes the pictures and the weights to stay the same: as far as the server moves
    the weights between rounds, the mean is of other gradients too. `surrogate`: what the mean is compared with, where it is not the
    gradient itself, as after clipping. `errors`: those of one round, each round's independent of the others'.
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

    words = "known: it is averaged over the rounds watched, right as far as pictures and weights stay the same"
    return AdaptiveStrategy(words, surrogate, invert_update=invert_update, infer_state=infer_state, averaging=True, errors=of_the_mean)


def clip_by_norm(update: Params, max_norm: float) -> Params:
    """Return g min(1, max_norm / ||g||) with the norm of the whole update; differentiable, also at zero."""
    norm = torch.stack([torch.linalg.vector_norm(g) for g in update.values()])
    factor = max_norm / torch.linalg.vector_norm(norm).clamp(min=max_norm)
    return {name: g * factor for name, g in update.items()}


def clip_each_by_norm(update: Params, max_norm: float) -> Params:
    """Return every tensor of the update, clipped by its norm alone."""
    return {name: clip_by_norm({name: g}, max_norm)[name] for name, g in update.items()}
