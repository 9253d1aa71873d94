"""FedKL: the client scales and shifts every channel by numbers that follow from a secret key."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import keep_errors
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, Update, choice, generator, param

SEEK = "known: all secret scales and shifts begin at their mean, and attacks by Adam search for the true ones from there"
ACTIVATIONS = {"relu": torch.relu, "sigmoid": torch.sigmoid}


class Locked(nn.BatchNorm2d):
    """BatchNorm with scale and shift as buffers (values 1 and 0), not as weights; the client replaces the buffers by its secret values."""

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
    """Replace scale and shift of every BatchNorm by gamma x + beta with gamma = act(W k + b), beta = act(V k' + c) for each channel.

    The keys k, k' ~ U(0, 1)^length and the lock layers (W, b), (V, c), with PyTorch's initialisation U(-1, 1) / sqrt(length), belong to
    the client, two of each for every BatchNorm. The client sends neither keys and locks nor their gradients. The other gradients depend on
    them.
    An adaptive attacker has three strategies. "look for the scales" starts every gamma and beta at the mean over all keys and locks
    (relu: 0.14, sigmoid: 0.5) and searches for them together with the pictures (only attacks that use Adam do this). "no scales" replays
    the client with gamma = 1 and beta = 0, as in the server's model. "expected scales" replays it with the means.
    Trained weights lose the scales and shifts that BatchNorm learned.
    Unlike the paper: the client does not train its lock layers, and every BatchNorm is locked; its code takes keys of 1024 numbers.
    Source: Ren et al. 2023 ("Gradient leakage defense with key-lock module for federated learning"); lengths: Hu et al. 2024.
    """

    title = "Secret scales in the network (FedKL)"
    short = "FedKL"
    plain = "The phone scales and shifts every channel of its network by numbers that follow from a secret key. It sends neither."
    hint = "Needs a model with BatchNorm. A naive attacker searches in vain; an adaptive attacker can search for the secret numbers too."
    elementwise = True
    needs = {"norm": "batch"}
    source = "https://arxiv.org/abs/2305.04095"

    length: int = param(16, 1, 1024, "Numbers in each key: 16 for ResNet-20 and ResNet-32, 64 for larger networks.")
    activation: str = choice("relu", tuple(ACTIVATIONS), "The activation of scales and shifts: relu makes half of them 0, sigmoid none.")

    def change(self, model: nn.Module) -> nn.Module:
        norms = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, nn.BatchNorm2d)]
        if not norms:
            raise ValueError("FedKL locks BatchNorm layers; this model has none. Choose a model with BatchNorm, or another protection.")
        for name, norm in norms:
            model.set_submodule(name, Locked(norm))
        return model

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        secret = self.draw_secret(model, step_rng(0))  # the same in every step and every round

        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            return client({**weights, **{name: value.to(x) for name, value in secret.items()}}, x, y, state)

        return send

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "look for the scales": AdaptiveStrategy(SEEK, latent_init=self.mean_scales, optimize_latents=True, errors=keep_errors),
            "no scales": AdaptiveStrategy("known: the model is replayed without the secret scales and shifts"),
            "expected scales": AdaptiveStrategy(
                "known: the model is replayed with the mean of all possible scales and shifts", latent_init=self.mean_scales
            ),
        }

    def mean_scales(self, model: nn.Module) -> Params:
        """Return gamma and beta (C,) of every BatchNorm, filled with their common mean over keys and locks, by the names of their buffers.

        gamma and beta are the secret scale and shift that the client computes from its keys.
        """
        rng = generator(0)
        mean = float(torch.stack([self._draw_scales(1000, rng) for _ in range(100)]).mean())
        return _fill_scales(model, lambda channels: torch.full((channels,), mean))

    def draw_secret(self, model: nn.Module, rng: torch.Generator) -> Params:
        """Draw the client's secret: scale gamma and shift beta (C,) of every BatchNorm, by the names of their buffers."""
        return _fill_scales(model, lambda channels: self._draw_scales(channels, rng))

    def _draw_scales(self, channels: int, rng: torch.Generator) -> Tensor:
        """Return act(W k + b) (channels,) for a random key k and a random lock layer (W, b)."""
        key, bound = torch.rand(self.length, generator=rng), self.length**-0.5
        weight, bias = ((2 * torch.rand(shape, generator=rng) - 1) * bound for shape in ((channels, self.length), (channels,)))
        return ACTIVATIONS[self.activation](weight @ key + bias)


def _fill_scales(model: nn.Module, values: Callable[[int], Tensor]) -> Params:
    """Return values for the scale and the shift of every BatchNorm, by the names of their buffers.

    `values` computes the values (C,) of one buffer from the number of channels C.
    """
    locked = [(name, layer.num_features) for name, layer in model.named_modules() if isinstance(layer, Locked)]
    return {f"{name}.{part}": values(channels) for name, channels in locked for part in ("weight", "bias")}
