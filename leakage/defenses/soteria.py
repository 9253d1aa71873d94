"""Soteria: the client hides the inputs of the last layer that a reconstruction needs most."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import change_update, exact_errors
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, Update, param
from leakage.engine.stateless import StatelessModel
from leakage.engine.tensor_names import OF, name_in_model

SMALL = 1e-10  # added to |r_f|; the code adds 0.1, 1e-10 or nothing
AT_ONCE = 2**20  # the most numbers in the derivatives that are computed together
FEATURES = 64  # the most features for which the derivatives are computed together
NO_TABLE = "Soteria hides inputs of a linear last layer; this model has no such layer. Choose another protection or another model."


@dataclass(frozen=True, kw_only=True)
class Soteria(Defense):
    """Set the floor(fraction * D) columns of smallest score in dL/dW (K, D) of the last linear layer to zero.

    score_f = sum over pictures b of ||d r_f(x_b) / d x_b||_2 / (|r_f(x_b)| + 1e-10), with r (B, D) the input of that layer.
    Everything else is sent unchanged. For derivatives, the scores count as constants; they cost D backward passes.
    An adaptive attacker finds the hidden columns as zeros in what it received, and leaves the same columns of its guess out; or it leaves
    out the whole matrix, as Balunovic et al. 2022 do.
    A feature that is 0 for every picture (a dead ReLU) has score 0 and is hidden first, although its column is zero anyway.
    Unlike the code, which divides by r_f with its sign and takes the absolute value of the sum, pictures cannot cancel each other here.
    Source: Sun et al. 2021; the default fraction is that of Li et al. 2022 (GGL).
    """

    title = "Zeros in the last layer (Soteria)"
    short = "Soteria"
    plain = "In the gradient of the last layer the phone sets the columns to zero that a reconstruction needs most."
    hint = "All other layers are sent as they are, and they are enough: compare a naive and an adaptive attacker."
    imitation = "known: the columns that arrive as zeros are left out of the guess too"
    elementwise = True
    needs_structure = {"linear": NO_TABLE}
    source = "https://arxiv.org/abs/2012.06043"
    presets = {"Sun et al. 2021, against DLG": {"fraction": 0.01}, "Sun et al. 2021, against Inverting Gradients": {"fraction": 0.6}}

    fraction: float = param(0.1, 0, 0.99, "Fraction of the last layer's inputs that are hidden. 0 switches it off.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        layer = last_linear(model)
        weight = f"{layer}.weight"

        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            update, state = client(weights, x, y, state)
            hidden = scores(model, layer, weights, x).argsort(stable=True)[: self.count_hidden(update[weight])]  # (count,)
            mask = torch.ones_like(update[weight][0]).index_fill(0, hidden, 0)  # (D,)
            return {**update, weight: update[weight] * mask}, state

        return send

    def surrogate(self, client: Client, received: Params) -> Client:
        """Return the imitated client with zeros in the columns that are zero in `received`.

        If more columns are zero than the defense hides, hiding changed nothing, and the client stays as it is.
        """
        weight = _last_weight(received)
        mask = (received[weight] != 0).any(0)  # (D,)
        if int((~mask).sum()) > self.count_hidden(received[weight]):
            return client
        return change_update(client, lambda update: {**update, weight: update[weight] * mask})

    def rehearse(self, client: Client, model: nn.Module, step_rng: StepRng, received: Params) -> Client:
        return self.surrogate(client, received)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "same columns": AdaptiveStrategy(self.imitation, self.surrogate, errors=exact_errors),
            "without that layer": AdaptiveStrategy(
                "known: the weights of the last layer are not compared at all",
                entry_weights=_weigh_without_last,
                errors=lambda incoming, received: incoming if received.single else None,
            ),
        }

    def count_hidden(self, weight: Tensor) -> int:
        """Return how many columns of this weight (K, D) are set to zero."""
        return int(self.fraction * weight.shape[-1])


def _last_weight(received: Params) -> str:
    """Return the name of the last linear layer's weight in an update; tensors of single clients, such as "1/name", are passed over."""
    return [name for name, g in received.items() if g.dim() == 2 and OF not in name][-1]


def _weigh_without_last(received: Params, _state: ClientState) -> Params:
    weight = _last_weight(received)
    return {name: torch.zeros_like(g) for name, g in received.items() if name_in_model(name) == weight}


def last_linear(model: nn.Module) -> str:
    """Return the name of the model's last linear layer; raise ValueError if there is none."""
    names: list[str] = [name for name, layer in model.named_modules() if isinstance(layer, nn.Linear)]
    if not names:
        raise ValueError(NO_TABLE)
    return names[-1]


def scores(model: nn.Module, layer: str, weights: Params, x: Tensor) -> Tensor:
    """Compute the score of every input of the linear layer (D,), summed over the pictures x (B, C, H, W); no derivative passes through.

    The derivatives of several features are computed together, as many as memory allows. BatchNorm's stored statistics do not change.
    """
    seen = list[Tensor]()
    values = {name: value.clone() for name, value in model.named_buffers()} | {name: value.detach() for name, value in weights.items()}
    pictures = x.detach().requires_grad_()  # (B, C, H, W)
    with model.get_submodule(layer).register_forward_pre_hook(lambda _layer, given: seen.append(given[0])), torch.enable_grad():
        StatelessModel(model)(values, pictures)
    (r,) = seen  # (B, D)
    count, chunk = r.shape[1], max(1, min(FEATURES, AT_ONCE // x.numel()))
    lengths = list[Tensor]()
    for start in range(0, count, chunk):
        chosen = torch.eye(count, dtype=r.dtype, device=r.device)[start : start + chunk]  # (c, D)
        directions = chosen.unsqueeze(1).expand(-1, *r.shape)  # (c, B, D)
        (gradients,) = torch.autograd.grad(r, pictures, directions, retain_graph=True, is_grads_batched=True)
        lengths.append(gradients.flatten(2).norm(dim=2))  # (c, B), from (c, B, C, H, W)
    total: Tensor = (torch.cat(lengths).T / (r.detach().abs() + SMALL)).sum(0)  # (D,)
    return total
