"""PRECODE: before its last layer the network passes everything through a narrow, noisy gate; the noise stays on the phone."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.defenses._each import as_before, counted
from leakage.engine.client import join_loss
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, Update, param
from leakage.engine.random_layer import RandomLayer, drawn
from leakage.engine.tensor_names import name_in_model

NAME = "bottleneck"
SEEK = "known: the gate's noise begins at 0, from where attacks by Adam look for it together with the pictures"
NO_SEQUENCE = (
    "PRECODE goes before a last linear layer that follows others in a plain sequence; this model has none. "
    "Choose another protection, or a model with one."
)
ONE_BY_ONE = "PRECODE draws noise for all pictures of a step, and another protection takes them one by one. Name PRECODE before it."


class Bottleneck(RandomLayer):
    """h (B, D) -> (mu, s) = encode(h) -> z = mu + softplus(s) eps (B, K) -> decode(z) (B, D); see `Precode`.

    eps is a buffer (K,) of zeros, in place of which the client puts its own, (B, K), and an attacker what it searches.
    """

    eps: Tensor

    def __init__(self, inputs: int, size: int, beta: float) -> None:
        super().__init__()
        self.beta = beta
        self.encode = nn.Linear(inputs, 2 * size)
        self.decode = nn.Linear(size, inputs)
        self.register_buffer("eps", torch.zeros(size), persistent=False)

    def draw(self, pictures: int, rng: torch.Generator) -> dict[str, Tensor]:
        """eps (pictures, K), from a normal distribution."""
        return {"eps": torch.randn((pictures, len(self.eps)), generator=rng)}

    def forward(self, h: Tensor) -> Tensor:
        eps = self.eps[: len(h)] if self.eps.requires_grad else self.eps  # what is searched has a row for every picture of the client
        if eps.dim() == 2 and len(eps) != len(h):
            raise ValueError(ONE_BY_ONE)
        mu, s = self.encode(h).chunk(2, 1)
        std = F.softplus(s)
        bits = (mu.square() + std.square() - 1 - 2 * std.log()).sum(1) / (2 * math.log(2))  # (B,)
        join_loss(self.beta * bits.mean())
        out: Tensor = self.decode(mu + std * eps)
        return out


@dataclass(frozen=True, kw_only=True)
class Precode(Defense):
    """What enters the last linear layer, h (B, D), is replaced by h' = W z + c with z = mu + std eps, (mu, s) = V h + d, std = softplus(s).

    z has `size` entries; eps ~ N(0, I) is drawn afresh for every picture and every local step and never leaves the phone.
    Loss: cross-entropy + beta KL(N(mu, std^2) || N(0, I)), the mean over the pictures of -1/2 sum (1 + 2 log std - mu^2 - std^2) in bits.
    V, d, W and c belong to the model, which the server knows. With trained weights they are untrained: the model was trained without them.
    An attacker who knows it replays the client with eps = 0. That is right for no gradient, but those before the gate depend on eps only
    through what reaches them from above, so it compares these alone (`before`), unless told otherwise. Or it looks for eps, from 0 on,
    together with the pictures, and compares all layers (attacks by Adam alone do; of several local steps or phones it looks for one eps).
    A first linear layer with a bias is scaled by it and says the picture all the same.
    Source: Scheliga et al. 2022, section 3; the attack on it: Balunovic et al. 2022, section 5.
    """

    title = "A noisy gate in the network (PRECODE)"
    short = "PRECODE"
    plain = "Before its last layer the network passes everything through a narrow gate, where the phone adds random noise in secret."
    hint = "It troubles those who compare whole gradients. On the MLP try the bias attack: the first layer still holds the picture."
    imitation = "known: the gate is replayed without its noise, which is secret"
    elementwise = True
    needs_structure = {"sequence": NO_SEQUENCE}
    needs_step = ONE_BY_ONE
    source = "https://arxiv.org/abs/2108.04725"

    size: int = param(256, 1, 2048, "How many numbers pass the gate (K).")
    beta: float = param(0.001, 0, 10, "How strongly they are kept close to pure noise while training (weight of the KL term, in bits).")

    def change(self, model: nn.Module) -> nn.Module:
        names = [name for name, layer in model.named_modules() if isinstance(layer, nn.Linear)]
        parent = model.get_submodule(names[-1].rpartition(".")[0]) if names else model
        if not names or not isinstance(parent, nn.Sequential):
            raise ValueError(NO_SEQUENCE)
        last = names[-1].rpartition(".")[2]
        layers = list(parent.named_children())
        for name, _ in layers:
            delattr(parent, name)
        for name, layer in layers:
            if name == last:
                assert isinstance(layer, nn.Linear)
                parent.add_module(NAME, Bottleneck(layer.in_features, self.size, self.beta))
            parent.add_module(name, layer)
        return model

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "compare what comes before the gate": AdaptiveStrategy(
                "known: only the layers before the gate are compared", entry_weights=_not_behind, title="compare before the gate"
            ),
            "leave the noise out": AdaptiveStrategy(self.imitation),
            "look for the noise": AdaptiveStrategy(
                SEEK, latent_init=_silent, optimize_latents=True, latent_per_picture=True, errors=as_before
            ),
        }

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            step, state = counted(state, "precode")
            return client({**weights, **drawn(model, x, step_rng(step))}, x, y, state)

        return send


def _silent(model: nn.Module) -> Params:
    """No noise, under the name of the gate's buffer."""
    return {f"{name}.eps": torch.zeros_like(layer.eps) for name, layer in model.named_modules() if isinstance(layer, Bottleneck)}


def _not_behind(received: Params, _state: ClientState) -> Params:
    kept = before(received)
    return {name: torch.zeros_like(g) for name, g in received.items() if name_in_model(name) not in kept}


def before(names: Iterable[str]) -> list[str]:
    """Of an update's tensors, in the model's order, those before the gate: all that an attacker should compare with a guess.

    >>> before(["linear1.weight", "linear1.bias", "bottleneck.encode.weight", "linear.weight"])
    ['linear1.weight', 'linear1.bias']
    """
    found = list[str]()
    for name in names:
        if NAME in name.split("."):
            break
        found.append(name)
    return found
