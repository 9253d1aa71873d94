"""The two steps of differentially private training: each picture's gradient is clipped, and noise is added to their sum."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import vmap

from leakage.defenses._each import add_variance, average_rounds, count_step
from leakage.engine.client import Gradient
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, Received, StepRng, Update
from leakage.spec.words import MIXED

AT_ONCE = 2**24  # numbers in the gradients that are computed together


class PerExampleNoise(Defense):
    """Base class of defenses that clip the gradient of each picture to C_t and add noise N(0, z^2 C_t^2) to the sum in local step t.

    z is `noise_multiplier`. An adaptive attacker clips the gradients of its guess in the same way, without noise.
    """

    imitation = "known: the gradients of the guess are clipped in the same way; the noise cannot be computed again"
    one_by_one = True
    noise_multiplier: float

    def bound_at(self, step: int) -> float:
        """Return the largest norm C_t of a picture's clipped gradient in local step `step`, counted from 0."""
        raise NotImplementedError

    def clip(self, g: Params, step: int) -> Params:
        """Return the gradient `g` of one picture, clipped to the bound of the local step `step`."""
        raise NotImplementedError

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        refuse_mixed_pictures(model, self.short)
        return clip_each_example(
            client, self.id, self.clip, noise=lambda step: self.noise_multiplier * self.bound_at(step), step_rng=step_rng
        )

    def surrogate(self, client: Client, received: Params) -> Client:
        return clip_each_example(client, self.id, self.clip)

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """Return the error variance (z C / B)^2 of every entry; None (unknown) where noise comes before the clipping.

        z is the noise multiplier, C the bound of this local step in the first round, B the number of pictures.
        """
        if incoming:
            return None
        return add_variance({}, received, (self.noise_multiplier * self.bound_at(received.step) / received.pictures) ** 2)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {**super().strategies(), "average the rounds": average_rounds(self.id, self.surrogate, self.errors)}


def clip_each_example(
    client: Client,
    name: str,
    clip: Callable[[Params, int], Params],
    *,
    noise: Callable[[int], float] = lambda _step: 0.0,
    step_rng: StepRng | None = None,
) -> Client:
    """Return a client that sends (1/B) (sum_b clip(g_b, t) + N(0, noise(t)^2)); g_b is what `client` sends for picture b alone.

    If `client` is a plain gradient and the model can be vectorised, as many of the B gradients as memory allows are computed together;
    otherwise one after the other.

    Args:
        client: computes the gradient of given pictures.
        name: the client's state counts the local steps t under this name.
        clip: clips the gradient of one picture in local step t.
        noise: returns the standard deviation of the noise on the sum in local step t.
        step_rng: the random generator of each local step; None: no noise.
    """

    def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        step, state = count_step(state, name)
        total: Params = {}
        vectorised = isinstance(client, Gradient) and client.vectorised
        together = min(len(x), AT_ONCE // sum(weight.numel() for weight in weights.values())) if vectorised else 1
        for pictures, labels in zip(x.split(max(1, together)), y.split(max(1, together)), strict=True):
            if isinstance(client, Gradient) and together > 1:
                every = vmap(lambda g: clip(g, step))(client.each(weights, pictures, labels))
                clipped = {layer: g.sum(0) for layer, g in every.items()}
            else:
                gradient, state = client(weights, pictures, labels, state)
                clipped = clip(gradient, step)
            total = {layer: total[layer] + g for layer, g in clipped.items()} if total else clipped
        if step_rng is not None:
            rng, deviation = step_rng(step), noise(step)
            total = {layer: g + deviation * torch.randn(g.shape, generator=rng).to(g) for layer, g in total.items()}
        return {layer: g / len(x) for layer, g in total.items()}, state

    return send


def refuse_mixed_pictures(model: nn.Module, title: str) -> None:
    """Raise ValueError if a BatchNorm layer uses the statistics of the batch, because then no picture has a gradient of its own."""
    if any(isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.training for layer in model.modules()):
        raise ValueError(MIXED.format(title))
