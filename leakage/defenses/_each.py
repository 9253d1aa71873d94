"""What defenses share: updates changed, with or without fresh randomness, and the mean over rounds; gradients shortened; rounding."""

from collections.abc import Callable

import torch
from torch import Tensor

from leakage.engine.core import Client, Counter, Draws, Memory, Params, Update


def changed(client: Client, change: Callable[[Params], Params]) -> Client:
    """The client, its update changed in the same way every time."""

    def send(weights: Params, x: Tensor, y: Tensor, memory: Memory) -> Update:
        update, memory = client(weights, x, y, memory)
        return change(update), memory

    return send


def drawn(client: Client, draws: Draws, name: str, change: Callable[[Params, torch.Generator], Params]) -> Client:
    """The client, its update changed with the randomness of this local step, which the client's memory counts under `name`."""

    def send(weights: Params, x: Tensor, y: Tensor, memory: Memory) -> Update:
        update, memory = client(weights, x, y, memory)
        step, memory = counted(memory, name)
        return change(update, draws(step)), memory

    return send


def at_random(client: Client, draws: Draws, name: str, change: Callable[[Tensor, torch.Generator], Tensor]) -> Client:
    """The client, every tensor changed by itself with that randomness."""
    return drawn(client, draws, name, lambda update, rng: {layer: change(g, rng) for layer, g in update.items()})


def within(client: Client, received: Params, slack: Params) -> Client:
    """The client whose entries count as those in `received` while they are no further from them than `slack`, and by the rest beyond."""

    def nearer(name: str, g: Tensor) -> Tensor:
        gap = g - received[name]
        return received[name] + gap.sign() * (gap.abs() - slack[name]).clamp(min=0)

    return changed(client, lambda update: {name: nearer(name, g) for name, g in update.items()})


def counted(memory: Memory, name: str) -> tuple[int, Memory]:
    """How many local steps the client has taken, which its memory counts under `name`, and the memory after one more."""
    step = int(memory.get(f"{name}.step", torch.tensor(0)))
    return step, {**memory, f"{name}.step": torch.tensor(step + 1)}


def averaging(name: str) -> Counter:
    """The answer to noise that is fresh in every round: the mean of all that was received so far.

    Noise of deviation s is left with s / sqrt(rounds). It takes the pictures and the weights to stay the same: as far as the server moves
    the weights between rounds, the mean is of other gradients too.
    """

    def total(received: Params, memory: Memory) -> Memory:
        return {f"{name}.sum.{layer}": g + memory.get(f"{name}.sum.{layer}", 0) for layer, g in received.items()}

    def read(received: Params, memory: Memory) -> Params:
        rounds = int(memory.get(f"{name}.rounds", 0)) + 1
        return {layer: value / rounds for layer, value in zip(received, total(received, memory).values(), strict=True)}

    def track(received: Params, memory: Memory) -> Memory:
        rounds = torch.tensor(int(memory.get(f"{name}.rounds", 0)) + 1)
        return {**memory, **total(received, memory), f"{name}.rounds": rounds}

    words = "known: it is averaged over the rounds watched, right as far as pictures and weights stay the same"
    return Counter(words, read=read, track=track)


def shortened(update: Params, bound: float) -> Params:
    """g min(1, bound / ||g||) with the norm of the whole gradient; differentiable, also where it is zero."""
    norm = torch.stack([torch.linalg.vector_norm(g) for g in update.values()])
    share = bound / torch.linalg.vector_norm(norm).clamp(min=bound)
    return {name: g * share for name, g in update.items()}


def each_shortened(update: Params, bound: float) -> Params:
    """The same with every tensor by itself."""
    return {name: shortened({name: g}, bound)[name] for name, g in update.items()}
