"""FedKL: every channel is scaled and shifted by numbers that only the phone's own key opens."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import as_before
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, Update, choice, generator, param

SEEK = "known: all secret scales and shifts begin at their mean, from where attacks by Adam look for the true ones"
ACTIVATIONS = {"relu": torch.relu, "sigmoid": torch.sigmoid}


class Locked(nn.BatchNorm2d):
    """BatchNorm whose scale and shift are not weights of the model but buffers, 1 and 0, in place of which the client puts its own."""

    def __init__(self, norm: nn.BatchNorm2d) -> None:
        super().__init__(norm.num_features, norm.eps, norm.momentum, affine=False, track_running_stats=norm.track_running_stats)
        for name, value in (("weight", torch.ones(norm.num_features)), ("bias", torch.zeros(norm.num_features))):
            del self._parameters[name]
            self.register_buffer(name, value, persistent=False)
        if norm.running_mean is not None and norm.running_var is not None:
            self.running_mean, self.running_var = norm.running_mean, norm.running_var
        self.train(norm.training)


@dataclass(frozen=True, kw_only=True)
class FedKL(Defense):
    """After every BatchNorm, which loses its own scale and shift: gamma x + beta, gamma = act(W k + b), beta = act(V k' + c) per channel.

    The keys k, k' ~ U(0, 1)^length and the lock layers (W, b), (V, c), with PyTorch's initialisation U(-1, 1) / sqrt(length), are the
    client's own, two of each for every BatchNorm: neither they nor their gradients are sent. The other gradients depend on them.
    An attacker who knows it takes the mean of what keys and locks can make (relu: 0.14, sigmoid: 0.5) for every gamma and beta, and from
    there looks for all of them together with the pictures ("look for the scales"; attacks by Adam alone do); or replays the client with
    gamma = 1 and beta = 0, as the server holds the model ("no scales"), or with those means ("expected scales").
    Trained weights lose the scales and shifts that BatchNorm learned.
    Unlike the paper: the client does not train its lock layers, and every BatchNorm is locked; its code takes keys of 1024 numbers.
    Source: Ren et al. 2023 ("Gradient leakage defense with key-lock module for federated learning"); lengths: Hu et al. 2024.
    """

    title = "Secret scales in the network (FedKL)"
    short = "FedKL"
    plain = "The phone scales and shifts every channel of its network by numbers that follow from a key of its own, and keeps both secret."
    hint = "Needs a model with BatchNorm. Who does not know of it searches in vain; who does can look for the secret numbers too."
    elementwise = True
    needs = {"norm": "batch"}
    source = "https://arxiv.org/abs/2305.04095"

    length: int = param(16, 1, 1024, "Numbers in each key: 16 for ResNet-20 and ResNet-32, 64 for larger ones.")
    activation: str = choice("relu", tuple(ACTIVATIONS), "The activation of scales and shifts: relu makes half of them 0, sigmoid none.")

    def change(self, model: nn.Module) -> nn.Module:
        norms = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, nn.BatchNorm2d)]
        if not norms:
            raise ValueError("FedKL locks BatchNorm layers; this model has none. Choose a model with BatchNorm, or another protection.")
        for name, norm in norms:
            model.set_submodule(name, Locked(norm))
        return model

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        secret = self.secret(model, step_rng(0))  # the same in every step and every round

        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            return client({**weights, **{name: value.to(x) for name, value in secret.items()}}, x, y, state)

        return send

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "look for the scales": AdaptiveStrategy(SEEK, latent_init=self.expect, optimize_latents=True, errors=as_before),
            "no scales": AdaptiveStrategy("known: the model is replayed without the secret scales and shifts"),
            "expected scales": AdaptiveStrategy(
                "known: the model is replayed with the mean of all that keys can make of them", latent_init=self.expect
            ),
        }

    def expect(self, model: nn.Module) -> Params:
        """The mean of gamma, which is that of beta, in the place of every one."""
        rng = generator(0)
        mean = float(torch.stack([self._opened(1000, rng) for _ in range(100)]).mean())
        return _filled(model, lambda channels: torch.full((channels,), mean))

    def secret(self, model: nn.Module, rng: torch.Generator) -> Params:
        """gamma and beta (C,) of every BatchNorm, under the names of the buffers that hold 1 and 0."""
        return _filled(model, lambda channels: self._opened(channels, rng))

    def _opened(self, channels: int, rng: torch.Generator) -> Tensor:
        """act(W k + b), all drawn: (channels,)."""
        key, bound = torch.rand(self.length, generator=rng), self.length**-0.5
        weight, bias = ((2 * torch.rand(shape, generator=rng) - 1) * bound for shape in ((channels, self.length), (channels,)))
        return ACTIVATIONS[self.activation](weight @ key + bias)


def _filled(model: nn.Module, values: Callable[[int], Tensor]) -> Params:
    """Values (C,) for every gamma and beta, under the names of the buffers that stand for them."""
    locked = [(name, layer.num_features) for name, layer in model.named_modules() if isinstance(layer, Locked)]
    return {f"{name}.{part}": values(channels) for name, channels in locked for part in ("weight", "bias")}
