"""Fishing by class: the last layer is set so that the body's gradient comes from the pictures of one class alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from leakage.engine.core import Observation, Params, Round, Server, param
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.servers._fishing import Catch, separable, separated
from leakage.servers._last_layer import check_last_layer, last_layer_of
from leakage.spec.words import counted

NOTHING = "{} looked for pictures of class {}, and the gradient shows none. Choose the class of one of the pictures."


@dataclass(frozen=True, kw_only=True)
class ClassFishing(Server):
    """Set the last layer to w_t = (r, ..., r) and b_t = 0 for the class t, and to w_c = 0 and b_c = b for all other classes c.

    If b is large, each picture is predicted to be of each other class with probability 1 / (K - 1), and of class t with probability 0. The
    gradient that enters the body is sum_c w_c (p_c - [y = c]): -w_t for pictures of class t and 0 for all others. So the body's gradient of
    B pictures is n_t / B times that of the n_t pictures of class t alone. The bias gradient of class t is -n_t / B, which counts them.

    `isolate` divides by n_t / B. The row t of the last layer has the gradient -n_t / B times the mean features f of these pictures. A
    search then runs on n_t pictures with known labels, on the loss -<w_t, f>, and compares the features too.
    The entries of w_t are equal, so channels get similar gradients, which tell pictures apart less than an honest gradient does. DLG
    therefore needs more steps here than on the honest gradient of the same picture.
    After several local steps the other rows are no longer 0, so that the update separates the class approximately. A protection that
    changes the size of the update changes the count too; at least one picture is assumed.
    Source: Wen et al. 2022, section 3.2; the constants are those of the authors' code.
    """

    title = "Lets the pictures of one class through (class fishing)"
    short = "Class fishing"
    plain = "The server sets the last layer so that the pictures of one class alone leave a trace in the other layers."
    hint = "Choose many pictures, one of them alone in its class, such as the cat: the attack then works as on this picture alone."
    source = "https://arxiv.org/abs/2202.00580"
    last_layer = "bias"
    classes = ("target",)
    separates = True
    separates_by_class = True

    target: int = param(1, 0, 9999, "The number of the class that the server looks for, counted from 0.")
    row: float = param(0.5, -10, 10, "The weight of each feature in the row of this class; 0 would silence this class as well.")
    bias: float = param(1000, 1, 1e9, "The bias of the other classes; it must exceed the row's weight times the sum of the features.")

    def rebuild(self, model: nn.Module, image_shape: tuple[int, int, int], members: int) -> nn.Module:
        check_last_layer(self, model, image_shape, classes=(self.target,), bias=True)
        return model

    def hand_out(self, model: nn.Module, weights: Params, history: Sequence[Round], rng: torch.Generator) -> Params:
        layer = last_layer_of(model)
        assert layer.bias
        weight, bias = torch.zeros_like(weights[layer.weight]), torch.full_like(weights[layer.bias], self.bias)
        with torch.no_grad():
            weight[self.target], bias[self.target] = self.row, 0
        return {**weights, layer.weight: weight, layer.bias: bias}

    def isolate(self, seen: Observation, members: int) -> Observation:
        layer, size = last_layer_of(seen.model), seen.batch.size
        if layer.bias is None or not separable(seen, layer, self.short):
            return seen
        gradient = {name: g for name, g in seen.as_gradient().items() if name in seen.received.weights}
        body = {name: g for name, g in gradient.items() if name not in (layer.weight, layer.bias)}
        if not any(bool(g.any()) for g in body.values()):
            raise DoesNotApplyError(NOTHING.format(self.short, self.target))
        count = min(max(round(-size * float(gradient[layer.bias][self.target])), 1), size)
        scale = size / count
        features = -scale * gradient[layer.weight][self.target]
        labels = torch.full((count,), self.target, device=seen.device)
        words = f"{counted(count, 'picture')} of class {self.target}, counted by the gradient of the last bias, of {size}"
        alone = {name: scale * g for name, g in body.items()}
        return separated(
            seen, layer, Catch(alone, features, torch.full_like(features, -self.row), self.target, labels, scale, scale, words)
        )
