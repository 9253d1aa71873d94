"""What defenses share that bound every picture's part of a gradient before noise is added: differential privacy's two steps."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import vmap

from leakage.defenses._each import counted
from leakage.engine.client import Gradient
from leakage.engine.core import Client, ClientState, Params, StepRng, Update
from leakage.spec.words import MIXED

AT_ONCE = 2**24  # numbers in the gradients that are computed together


def one_by_one(
    client: Client,
    name: str,
    clip: Callable[[Params, int], Params],
    *,
    noise: Callable[[int], float] = lambda _step: 0.0,
    step_rng: StepRng | None = None,
) -> Client:
    """(1/B) (sum_b clip(g_b, t) + N(0, noise(t)^2)), g_b what the client sends for picture b alone; without `step_rng`, without noise.

    t counts the client's local steps, under `name` in its state. Costs B gradients of one picture instead of one of B: together where
    nothing acts before this and the model can be vectorised, as many as memory allows, else one after the other.
    """

    def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        step, state = counted(state, name)
        total: Params = {}
        vectorised = isinstance(client, Gradient) and client.vectorised
        together = min(len(x), AT_ONCE // sum(weight.numel() for weight in weights.values())) if vectorised else 1
        for mine, labels in zip(x.split(max(1, together)), y.split(max(1, together)), strict=True):
            if isinstance(client, Gradient) and together > 1:
                every = vmap(lambda g: clip(g, step))(client.each(weights, mine, labels))
                short = {layer: g.sum(0) for layer, g in every.items()}
            else:
                alone, state = client(weights, mine, labels, state)
                short = clip(alone, step)
            total = {layer: total[layer] + g for layer, g in short.items()} if total else short
        if step_rng is not None:
            rng, deviation = step_rng(step), noise(step)
            total = {layer: g + deviation * torch.randn(g.shape, generator=rng).to(g) for layer, g in total.items()}
        return {layer: g / len(x) for layer, g in total.items()}, state

    return send


def refuse_mixed_pictures(model: nn.Module, title: str) -> None:
    """Raise ValueError when a BatchNorm of the model takes the statistics of the batch: then no picture has a gradient of its own."""
    if any(isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.training for layer in model.modules()):
        raise ValueError(MIXED.format(title))
