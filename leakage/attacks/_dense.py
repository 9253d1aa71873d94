"""The inversion of a fully connected network, layer by layer, from the gradient of one picture, in float64.

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
from leakage.attacks._rows import estimate, rank_one, used_rows
from leakage.engine.core import Params
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.tensor_names import OF, name_in_model
from leakage.networks.k_curve import Loss

ALIKE = 1e-4  # two sums have the same row for a unit if the rows differ by less than this fraction
DERIVATIVES: dict[type[nn.Module], Callable[[Any, Tensor], Tensor]] = {  # act' as a function of what act returned
    nn.ReLU: lambda _, x: (x > 0).to(x),
    nn.LeakyReLU: lambda activation, x: torch.where(x > 0, 1.0, activation.negative_slope).to(x),
    nn.Sigmoid: lambda _, x: (x * (1 - x)).clamp(min=0),
    nn.Tanh: lambda _, x: (1 - x * x).clamp(min=0),
}
SCALES = torch.logspace(-8, 8, 6401, dtype=torch.float64)  # lengths tried for the last layer's input; neighbors are 0.6 % apart
TOGETHER = 256  # scales evaluated at a time: for 10,000 classes all at once would take gigabytes
HALVINGS = 60  # from 0.6 % down to float64's rounding
NOTHING = "receives no gradient (dead units, nothing left to learn, or its phone keeps it): nothing can be read off."


@dataclass(frozen=True)
class Dense:
    """A linear layer and the activation of its output.

    weight       (m, n)
    bias         whether the layer has a bias
    activation   None: the output has no activation
    """

    name: str
    weight: Tensor
    bias: bool
    activation: nn.Module | None = None

    def derivative(self, x: Tensor) -> Tensor:
        """Compute act'(z) from the output x = act(z)."""
        return torch.ones_like(x) if self.activation is None else DERIVATIVES[type(self.activation)](self.activation, x)


def exact(value: Tensor) -> Tensor:
    """Copy a tensor to the CPU as float64, which some accelerators do not have."""
    return value.detach().cpu().double()


def received(gradient: Params, name: str) -> Tensor:
    """Return the gradient of one parameter in float64 on the CPU; raise DoesNotApplyError if it is not finite."""
    return exact(finite(gradient, name))


def finite(gradient: Params, name: str) -> Tensor:
    """Return the gradient of one parameter; raise DoesNotApplyError if it is not finite."""
    if not gradient[name].isfinite().all():
        raise DoesNotApplyError(f"The gradient of {name} holds numbers that are not finite, so nothing can be read off.")
    return gradient[name]


def rows_of(gradient: Params, name: str, threshold: float) -> tuple[Tensor, Tensor]:
    """Return the usable rows of a layer's gradient: of dL/dW (m, n) and dL/db (m,); raise DoesNotApplyError if dL/db is 0.

    A row is usable if its entry of |dL/db| is not 0 and at least `threshold` times the largest.
    """
    weight_gradient, d = received(gradient, f"{name}.weight"), received(gradient, f"{name}.bias")
    if not d.any():
        raise DoesNotApplyError(f"The bias of {name} {NOTHING}")
    used = used_rows(d, threshold)
    return weight_gradient[used], d[used]


def rows_of_sums(gradient: Params, name: str, threshold: float) -> list[tuple[Tensor, Tensor]]:
    """Return the usable rows of a layer's gradient, dL/dW (m, n) and dL/db (m,), for each sum of clients' updates that arrived.

    The first sum is that over all clients; each nonzero sum over fewer clients follows. A row is usable if its entry of |dL/db| is not 0
    and at least `threshold` times the largest. If a unit is active for none of the clients that the smaller sum lacks, both sums have the
    same row for it; then only the row of the smaller sum is used.
    """
    weight, bias = f"{name}.weight", f"{name}.bias"
    fronts = [name.removesuffix(weight) for name in gradient if OF in name and name_in_model(name) == weight]
    prefixes = [prefix for prefix in fronts if prefix + bias in gradient and gradient[prefix + bias].any()]
    sums = [(received(gradient, prefix + weight), received(gradient, prefix + bias)) for prefix in ("", *prefixes)]
    used = [used_rows(d, threshold) for _, d in sums]
    for index, (weight_gradient, d) in enumerate(sums):
        for smaller in range(index + 1, len(sums)):
            left, right = weight_gradient * sums[smaller][1][:, None], sums[smaller][0] * d[:, None]  # equal where dW / d are
            used[index] &= ~(used[smaller] & ((left - right).norm(dim=1) <= ALIKE * right.norm(dim=1)))
    return [(weight_gradient[rows], d[rows]) for (weight_gradient, d), rows in zip(sums, used, strict=True)]


def invert_layers(layers: Sequence[Dense], gradient: Params, x: Tensor, d: Tensor) -> Tensor:
    """Compute the input (n,) of the first of `layers` from the input x of the last layer and its gradient d = dL/dz.

    Raises DoesNotApplyError if dead units let no gradient through.
    """
    for below, layer in reversed(list(pairwise(layers))):
        d = (d @ exact(layer.weight)) * below.derivative(x)
        if not d.any():
            raise DoesNotApplyError(f"No gradient passes through {below.name}: its units are dead, so the layers below cannot be read off.")
        x = estimate("least squares", received(gradient, f"{below.name}.weight"), d)
    return x


def invert_last_layer(layer: Dense, weight_gradient: Tensor, loss: Loss = "cross-entropy") -> list[tuple[Tensor, Tensor]]:
    """Compute the input x and the gradient d = dL/dz of a last layer without a bias, from its gradient d x^T and the loss.

    The gradient (K, n) is s k h^T with unit vectors k, h: x = t h and d = k s / t, up to a common sign and the scale t. For cross-entropy
    d = act'(z) * (softmax(act(z)) - e_y) at z = W x; its most negative entry is the label's. For either sign t is a root of
    <d(t) - k s / t, k>. The likeliest root is the one with the smallest ||t d(t) - k s||.
    Source: Zhu and Blaschko 2021, section 3.1, for one output.

    Args:
        layer: the last layer.
        weight_gradient: (K, n).
        loss: the loss of a network with one output; a network with several outputs has cross-entropy.

    Returns:
        Candidates (x, d), the likeliest first.

    Raises:
        DoesNotApplyError: if the gradient is 0.
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
            """Compute t d(t) - s k (T, K), which is 0 at the right one of the scales t (T,) of the layer's input; s is `size`."""
            t = t.unsqueeze(1)
            out = t * z if layer.activation is None else layer.activation(t * z)
            return t * layer.derivative(out) * (out.softmax(1) - label) - size * k

        def along(t: Tensor, gap: Callable[[Tensor], Tensor] = gap, k: Tensor = k) -> Tensor:
            return gap(t) @ k

        for t in roots(along, SCALES):
            found.append((float(gap(t.view(1)).norm()), sign * t * right, k * size / t))
    return [(x, d) for _, x, d in sorted(found, key=lambda candidate: candidate[0])]


def roots(f: Callable[[Tensor], Tensor], grid: Tensor) -> list[Tensor]:
    """Find the roots of f by bisection between neighbors of the rising, positive grid (T,) where f changes sign.

    If f changes sign nowhere, the result is the grid's point with the smallest |f|.
    """
    values = torch.cat([f(part) for part in grid.split(TOGETHER)])
    indices = (values[:-1].sign() != values[1:].sign()).nonzero().flatten()
    if not len(indices):
        return [grid[values.abs().argmin()]]
    low, high, before = grid[indices], grid[indices + 1], values[indices].sign()
    for _ in range(HALVINGS):
        middle = (low * high).sqrt()
        same = f(middle).sign() == before
        low, high = torch.where(same, middle, low), torch.where(same, high, middle)
    return list((low + high) / 2)
