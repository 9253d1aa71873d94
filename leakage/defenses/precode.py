"""PRECODE: a narrow layer with secret random noise before the last layer of the network."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.defenses._each import count_step, keep_errors
from leakage.engine.client import join_loss
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, Update, param
from leakage.engine.random_layer import RandomLayer, draw_buffers
from leakage.engine.tensor_names import name_in_model

NAME = "bottleneck"
SEEK = "known: the gate's noise begins at 0, and attacks by Adam search for it together with the pictures from there"
NO_SEQUENCE = (
    "PRECODE goes before a last linear layer that follows other layers in a plain sequence; this model has no such layer. "
    "Choose another protection, or another model."
)
ONE_BY_ONE = "PRECODE draws noise for all pictures of a step, and another protection takes the pictures one by one. Name PRECODE before it."


class Bottleneck(RandomLayer):
    """The inserted layer: h (B, D) -> (mu, s) = encode(h) -> z = mu + softplus(s) eps (B, K) -> decode(z) (B, D); see `Precode`.

    eps is a buffer (K,) of zeros. The client replaces it by its noise (B, K), an attacker by the noise that it searches for.
    """

    eps: Tensor

    def __init__(self, inputs: int, size: int, beta: float) -> None:
        super().__init__()
        self.beta = beta
        self.encode = nn.Linear(inputs, 2 * size)
        self.decode = nn.Linear(size, inputs)
        self.register_buffer("eps", torch.zeros(size), persistent=False)

    def draw(self, pictures: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Draw eps (pictures, K) from a standard normal distribution."""
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
    """Replace the input h (B, D) of the last linear layer by h' = W z + c; z = mu + std eps, (mu, s) = V h + d, std = softplus(s).

    z has `size` entries. eps ~ N(0, I) is drawn anew for every picture and every local step and never leaves the client.
    Loss: cross-entropy + beta KL(N(mu, std^2) || N(0, I)), the mean over the pictures of -1/2 sum (1 + 2 log std - mu^2 - std^2) in bits.
    V, d, W and c belong to the model, which the server knows. In a trained model they are untrained, because it was trained without them.
    An adaptive attacker replays the client with eps = 0. This gives the exact gradient of no layer. But the layers before the gate depend
    on eps only through the derivative that comes back from the gate. By default the attacker therefore compares these layers alone
    (`names_before_gate`). "leave the noise out" compares all layers. "look for the noise" compares all layers and searches for eps,
    starting at 0, together with the pictures (only attacks that use Adam; for several local steps or clients there is one common eps).
    A first linear layer with a bias still reveals the picture: the noise only scales its gradient.
    Source: Scheliga et al. 2022, section 3; the attack on it: Balunovic et al. 2022, section 5.
    """

    title = "A noisy gate in the network (PRECODE)"
    short = "PRECODE"
    plain = "Before its last layer the network passes everything through a narrow gate, where the phone adds random noise in secret."
    hint = "It misleads attacks that compare whole gradients. Try the bias attack on the MLP: the first layer still holds the picture."
    imitation = "known: the gate is replayed without its noise, which is secret"
    elementwise = True
    needs_structure = {"sequence": NO_SEQUENCE}
    needs_step = ONE_BY_ONE
    source = "https://arxiv.org/abs/2108.04725"

    size: int = param(256, 1, 2048, "How many numbers pass the gate (K).")
    beta: float = param(0.001, 0, 10, "How strongly training keeps these numbers close to pure noise (weight of the KL term, in bits).")

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
                "known: only the layers before the gate are compared", entry_weights=_weigh_before_gate, title="compare before the gate"
            ),
            "leave the noise out": AdaptiveStrategy(self.imitation),
            "look for the noise": AdaptiveStrategy(
                SEEK, latent_init=_zero_noise, optimize_latents=True, latent_per_picture=True, errors=keep_errors
            ),
        }

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            step, state = count_step(state, "precode")
            return client({**weights, **draw_buffers(model, x, step_rng(step))}, x, y, state)

        return send


def _zero_noise(model: nn.Module) -> Params:
    """Return zeros for the noise eps of the inserted layer (`Bottleneck`), by the name of its buffer."""
    return {f"{name}.eps": torch.zeros_like(layer.eps) for name, layer in model.named_modules() if isinstance(layer, Bottleneck)}


def _weigh_before_gate(received: Params, _state: ClientState) -> Params:
    compared = names_before_gate(received)
    return {name: torch.zeros_like(g) for name, g in received.items() if name_in_model(name) not in compared}


def names_before_gate(names: Iterable[str]) -> list[str]:
    """Return the names of the tensors before the inserted layer (`Bottleneck`); `names` are those of an update, in the model's order.

    >>> names_before_gate(["linear1.weight", "linear1.bias", "bottleneck.encode.weight", "linear.weight"])
    ['linear1.weight', 'linear1.bias']
    """
    before = list[str]()
    for name in names:
        if NAME in name.split("."):
            break
        before.append(name)
    return before
