"""What defenses share that treat every tensor of an update: a client whose update is changed, with or without fresh randomness."""

from collections.abc import Callable

import torch
from torch import Tensor

from leakage.engine.core import Client, Draws, Memory, Params, Update


def changed(client: Client, change: Callable[[Params], Params]) -> Client:
    """The client, its update changed in the same way every time."""

    def send(weights: Params, x: Tensor, y: Tensor, memory: Memory) -> Update:
        update, memory = client(weights, x, y, memory)
        return change(update), memory

    return send


def at_random(client: Client, draws: Draws, name: str, change: Callable[[Tensor, torch.Generator], Tensor]) -> Client:
    """The client, every tensor changed with the randomness of this local step, which the client's memory counts under `name`."""
    counter = f"{name}.step"

    def send(weights: Params, x: Tensor, y: Tensor, memory: Memory) -> Update:
        update, memory = client(weights, x, y, memory)
        step = int(memory.get(counter, torch.tensor(0)))
        rng = draws(step)
        return {layer: change(g, rng) for layer, g in update.items()}, {**memory, counter: torch.tensor(step + 1)}

    return send
