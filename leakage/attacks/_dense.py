"""A fully connected network, undone layer by layer from the gradient of one picture, in float64.

z_l = A_l x_l (+ b_l), x_(l+1) = act_l(z_l), and d_l = dL/dz_l. Going back from layer l + 1 to layer l:
    d_l = (A_(l+1)^T d_(l+1)) * act_l'(z_l), which x_(l+1) = act_l(z_l) determines;    x_l = sum_j d_lj dA_lj / sum_j d_lj^2.
Source: Geiping et al. 2020, proposition 3.1, for ReLU; other activations are undone here by act'(act^-1(x)).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from leakage.attacks._logit import one_output
from leakage.attacks._rows import estimate, kept, rank_one
from leakage.engine.core import Params
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.tensor_names import OF, name_in_model
from leakage.networks.k_curve import Loss

ALIKE = 1e-4  # rows of a unit in two sums are the same one where they differ by less than this share
DERIVATIVES: dict[type[nn.Module], Callable[[Any, Tensor], Tensor]] = {  # act' as a function of what act returned
    nn.ReLU: lambda _, x: (x > 0).to(x),
    nn.LeakyReLU: lambda activation, x: torch.where(x > 0, 1.0, activation.negative_slope).to(x),
    nn.Sigmoid: lambda _, x: (x * (1 - x)).clamp(min=0),
    nn.Tanh: lambda _, x: (1 - x * x).clamp(min=0),
}
SCALES = torch.logspace(-8, 8, 6401, dtype=torch.float64)  # of the last layer's input: neighbours are 0.6 % apart
TOGETHER = 256  # of them at a time: behind 10,000 classes all at once would take gigabytes
HALVINGS = 60  # from 0.6 % down to float64's rounding
NOTHING = "receives no gradient (dead units, nothing left to learn, or its phone keeps it): nothing can be read off."


@dataclass(frozen=True)
class Dense:
    """A linear layer and the activation of its output (None: it has none).

    weight   (m, n)
    bias     whether it has one
    """

    name: str
    weight: Tensor
    bias: bool
    activation: nn.Module | None = None

    def derivative(self, x: Tensor) -> Tensor:
        """act'(z) where act(z) = x."""
        return torch.ones_like(x) if self.activation is None else DERIVATIVES[type(self.activation)](self.activation, x)


def exact(value: Tensor) -> Tensor:
    """In float64 on the CPU: some accelerators have no float64."""
    return value.detach().cpu().double()


def received(gradient: Params, name: str) -> Tensor:
    """The gradient of one parameter, `exact`. Raises DoesNotApplyError where it is not finite."""
    found = exact(gradient[name])
    if not found.isfinite().all():
        raise DoesNotApplyError(f"The gradient of {name} holds numbers that are not finite, so nothing can be read off.")
    return found


def rows_of(gradient: Params, name: str, threshold: float) -> tuple[Tensor, Tensor]:
    """The rows of a layer with a bias that are used: dL/dW (m, n) and dL/db (m,). Raises DoesNotApplyError where there are none."""
    weight_gradient, d = received(gradient, f"{name}.weight"), received(gradient, f"{name}.bias")
    if not d.any():
        raise DoesNotApplyError(f"The bias of {name} {NOTHING}")
    used = kept(d, threshold)
    return weight_gradient[used], d[used]


def rows_of_sums(gradient: Params, name: str, threshold: float) -> list[tuple[Tensor, Tensor]]:
    """`rows_of` a layer for each sum that arrived: that over all clients, then each over fewer that stands beside it and is not 0.

    A unit that is silent for all others says the same in both: then its row of the smaller sum alone is used, for it is one row.
    """
    weight, bias = f"{name}.weight", f"{name}.bias"
    fronts = [one.removesuffix(weight) for one in gradient if OF in one and name_in_model(one) == weight]
    beside = [front for front in fronts if front + bias in gradient and gradient[front + bias].any()]
    sums = [(received(gradient, front + weight), received(gradient, front + bias)) for front in ("", *beside)]
    used = [kept(d, threshold) for _, d in sums]
    for place, (weight_gradient, d) in enumerate(sums):
        for smaller in range(place + 1, len(sums)):
            left, right = weight_gradient * sums[smaller][1][:, None], sums[smaller][0] * d[:, None]  # equal where dW / d are
            used[place] &= ~(used[smaller] & ((left - right).norm(dim=1) <= ALIKE * right.norm(dim=1)))
    return [(weight_gradient[rows], d[rows]) for (weight_gradient, d), rows in zip(sums, used, strict=True)]


def back(layers: Sequence[Dense], gradient: Params, x: Tensor, d: Tensor) -> Tensor:
    """The input (n,) of the first of `layers`, given the input x and the gradient d = dL/dz of the last. Raises DoesNotApplyError."""
    for below, layer in reversed(list(pairwise(layers))):
        d = (d @ exact(layer.weight)) * below.derivative(x)
        if not d.any():
            raise DoesNotApplyError(f"No gradient passes through {below.name}: its units are dead, so what is below cannot be read off.")
        x = estimate("least squares", received(gradient, f"{below.name}.weight"), d)
    return x


def from_loss(layer: Dense, weight_gradient: Tensor, loss: Loss = "cross-entropy") -> list[tuple[Tensor, Tensor]]:
    """Input x and gradient d = dL/dz of a last layer without a bias, from its gradient d x^T and the loss: candidates, the likeliest first.

    The gradient (K, n) is s k h^T with unit vectors k, h: x = t h and d = k s / t, up to a common sign and the scale t. Cross-entropy says
    d = act'(z) * (softmax(act(z)) - e_y) at z = W x, whose most negative entry is the label's. For either sign t is a root of
    <d(t) - k s / t, k>, the likelier the more of d(t) - k s / t vanishes with it.
    `loss` is that of one output. Raises DoesNotApplyError where the gradient is 0.
    Source: Zhu and Blaschko 2021, section 3.1, for one output.
    """
    if not weight_gradient.any():
        raise DoesNotApplyError(f"{layer.name} {NOTHING}")
    if len(weight_gradient) == 1:
        return [
            (last_layer.x, last_layer.k) for last_layer in one_output(exact(layer.weight), weight_gradient, [0, 1], layer.derivative, loss)
        ]
    left, size, right = rank_one(weight_gradient)
    found: list[tuple[float, Tensor, Tensor]] = []
    for sign in (1, -1):
        k, z = sign * left, exact(layer.weight) @ (sign * right)
        label = torch.zeros_like(k).scatter(0, k.argmin().view(1), 1.0)

        def gap(t: Tensor, k: Tensor = k, z: Tensor = z, label: Tensor = label) -> Tensor:
            """t d(t) - s k for scales (T,): (T, K)."""
            t = t.unsqueeze(1)
            out = t * z if layer.activation is None else layer.activation(t * z)
            return t * layer.derivative(out) * (out.softmax(1) - label) - size * k

        def along(t: Tensor, gap: Callable[[Tensor], Tensor] = gap, k: Tensor = k) -> Tensor:
            return gap(t) @ k

        for t in crossings(along, SCALES):
            found.append((float(gap(t.view(1)).norm()), sign * t * right, k * size / t))
    return [(x, d) for _, x, d in sorted(found, key=lambda one: one[0])]


def crossings(f: Callable[[Tensor], Tensor], grid: Tensor) -> list[Tensor]:
    """Where f changes sign between neighbours of the rising, positive grid (T,), by halving; if nowhere, where |f| is least on it."""
    values = torch.cat([f(part) for part in grid.split(TOGETHER)])
    places = (values[:-1].sign() != values[1:].sign()).nonzero().flatten()
    if not len(places):
        return [grid[values.abs().argmin()]]
    low, high, before = grid[places], grid[places + 1], values[places].sign()
    for _ in range(HALVINGS):
        middle = (low * high).sqrt()
        same = f(middle).sign() == before
        low, high = torch.where(same, middle, low), torch.where(same, high, middle)
    return list((low + high) / 2)
