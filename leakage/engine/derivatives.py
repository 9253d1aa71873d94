"""The derivatives of a network's steps, written out: of z by x, and of both along a direction in the weights.

A step x -> z of a forward pass has four parts, given d = dL/dz, and a direction v in the weights, which may differ from guess to guess:

    forward    z                     along            R z, given R x
    backward   dL/dx, given d        backward along   R dL/dx, given R d

R is the derivative along v. Pictures and guesses are arranged as in `layer_maps`.
Source: Pearlmutter 1994, "Fast exact multiplication by the Hessian".
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.chain_layer import ChainLayer
from leakage.engine.core import Params
from leakage.engine.layer_maps import Columns, Convolution, FullyConnected, Geometry, Map
from leakage.engine.vjp import vjp

aten = torch.ops.aten
SMALL = 20_000  # a convolution that reads at most this many numbers (with repetitions) of a guess is faster as a matrix product


@dataclass(frozen=True)
class Affine:
    """The weights W (m, ...) and biases (m,) of a linear layer or a convolution, with those of a BatchNorm behind it folded into them.

    With gamma, beta, and the stored mean and deviation of the BatchNorm, the weight is W scale, where scale = gamma / deviation. The bias
    is beta + gamma shift, where shift = (b - mean) / deviation.
    """

    weight: Tensor
    bias: Tensor | None
    scale: Tensor | None = None
    shift: Tensor | None = None
    unscaled: Tensor | None = None
    """W / deviation."""
    forms: dict[type, Tensor] = field(default_factory=dict, init=False)
    """The weight in the forms in which maps took it."""

    def in_form(self, map: Map) -> Tensor:
        """Return the weight in the form in which a map takes it."""
        if type(map) not in self.forms:
            self.forms[type(map)] = map.matrix(self.weight)
        return self.forms[type(map)]


@dataclass(frozen=True)
class WeightedLayer:
    """The parameters of a linear layer or a convolution, and those of a BatchNorm behind it."""

    layer: ChainLayer
    biased: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters."""
        name, norm = self.layer.name, self.layer.norm
        own = (f"{name}.weight", f"{name}.bias") if self.biased else (f"{name}.weight",)
        return (*own, f"{norm.name}.weight", f"{norm.name}.bias") if norm else own

    def fold(self, weights: Params) -> Affine:
        """Return the weights of the map, given the model's parameters."""
        weight, bias = weights[f"{self.layer.name}.weight"], weights.get(f"{self.layer.name}.bias")
        if self.layer.norm is None:
            return Affine(weight, bias)
        norm, gamma = self.layer.norm.module, weights[f"{self.layer.norm.name}.weight"]
        assert norm.running_mean is not None
        assert norm.running_var is not None
        inverse = (norm.running_var + norm.eps).rsqrt()
        shift = inverse * (-norm.running_mean if bias is None else bias - norm.running_mean)
        unscaled, scale = weight * inverse.view(-1, 1, 1, 1), gamma * inverse
        return Affine(weight * scale.view(-1, 1, 1, 1), weights[f"{self.layer.norm.name}.bias"] + gamma * shift, scale, shift, unscaled)

    def unfold(self, at: Affine, weight: Tensor, bias: Tensor) -> Params:
        """Return dL/dw of the parameters, (S, ...), given the derivatives of L by the weight (S, ...) and by the bias (S, m) of the map."""
        name, norm = self.layer.name, self.layer.norm
        gradient = {f"{name}.weight": weight, f"{name}.bias": bias} if self.biased else {f"{name}.weight": weight}
        if norm is None or at.scale is None or at.shift is None or at.unscaled is None:
            return gradient
        by_gamma = (weight * at.unscaled).flatten(2).sum(2) + bias * at.shift
        scaled = {each: value * at.scale.view(-1, *[1] * (value.dim() - 2)) for each, value in gradient.items()}
        return {**scaled, f"{norm.name}.weight": by_gamma, f"{norm.name}.bias": bias}

    def fold_along(self, at: Affine, v: Params) -> tuple[Tensor, Tensor | None]:
        """Return R of the weight, (S, ...), and R of the bias, (S, m), of the map, given the direction v by parameter, (S, ...)."""
        weight, bias = v[f"{self.layer.name}.weight"], v.get(f"{self.layer.name}.bias")
        if self.layer.norm is None or at.scale is None or at.shift is None or at.unscaled is None:
            return weight, bias
        gamma, beta = v[f"{self.layer.norm.name}.weight"], v[f"{self.layer.norm.name}.bias"]
        weight = torch.addcmul(weight * at.scale.view(-1, 1, 1, 1), gamma.view(*gamma.shape, 1, 1, 1), at.unscaled)
        beta = torch.addcmul(beta, gamma, at.shift)
        return weight, beta if bias is None else torch.addcmul(beta, bias, at.scale)

    def map(self, x: Tensor, lanes: int) -> Map:
        """Return the way in which the layer is computed for pictures with the input x (N, ...)."""
        if x.dim() == 2:
            return FullyConnected(lanes)
        side, stride, padding = self.layer.size, self.layer.stride, self.layer.padding
        height, width = ((length + 2 * padding - side) // stride + 1 for length in x.shape[2:])
        at = Geometry(side, stride, padding, (x.shape[2], x.shape[3]), (height, width))
        small = x.shape[1] * side**2 * height * width * len(x) // lanes <= SMALL
        return Columns(lanes, at) if small else Convolution(lanes, at)


class StepCall:
    """One computation of a step, z for x: it keeps what the later parts need. Here z is x in another shape."""

    z: Tensor

    def __init__(self, x: Tensor, shape: tuple[int, ...]) -> None:
        self.x_shape, self.z = x.shape, x.reshape(len(x), *shape)

    def backward(self, d: Tensor) -> Tensor:
        """Return dL/dx, given dL/dz."""
        return d.reshape(self.x_shape)

    def along(self, r: Tensor) -> Tensor:
        """Return R z, given R x."""
        return r.reshape(self.z.shape)

    def backward_along(self, rd: Tensor) -> Tensor:
        """Return R dL/dx, given R dL/dz; `backward` and `along` were called before."""
        return self.backward(rd)


class GlobalMeanCall(StepCall):
    """The mean of every channel, in a given shape."""

    def __init__(self, x: Tensor, shape: tuple[int, ...]) -> None:
        super().__init__(x.mean((2, 3)), shape)
        self.picture = x.shape

    def backward(self, d: Tensor) -> Tensor:
        return (d.reshape(*self.picture[:2], 1, 1) / prod(self.picture[2:])).expand(self.picture)

    def along(self, r: Tensor) -> Tensor:
        return r.mean((2, 3)).reshape(self.z.shape)


class MeanCall(StepCall):
    """The mean of adjacent squares of pixels."""

    def __init__(self, x: Tensor, side: int) -> None:
        self.x, self.side, self.z = x, side, F.avg_pool2d(x, side)

    def backward(self, d: Tensor) -> Tensor:
        back: Tensor = aten.avg_pool2d_backward(d, self.x, (self.side,) * 2, (self.side,) * 2, (0, 0), False, True, None)
        return back

    def along(self, r: Tensor) -> Tensor:
        return F.avg_pool2d(r, self.side)


class MaxCall(StepCall):
    """The maxima of windows of pixels."""

    def __init__(self, x: Tensor, window: tuple[int, int, int]) -> None:
        side, stride, padding = window
        self.window = ((side,) * 2, (stride,) * 2, (padding,) * 2, (1, 1), False)
        self.x = x
        self.z, self.index = aten.max_pool2d_with_indices(x, *self.window)

    def backward(self, d: Tensor) -> Tensor:
        back: Tensor = aten.max_pool2d_with_indices_backward(d, self.x, *self.window, self.index)
        return back

    def along(self, r: Tensor) -> Tensor:
        return r.flatten(2).gather(2, self.index.flatten(2)).view(self.index.shape)


class LinearCall(StepCall):
    """Any linear step without weights; `function` computes it, and autograd its transpose."""

    def __init__(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> None:
        self.shape, self.function, self.z = x.shape, function, function(x)

    def backward(self, d: Tensor) -> Tensor:
        with torch.enable_grad():
            x = d.new_zeros(self.shape, requires_grad=True)
            return vjp([self.function(x)], [x], [d])[0]

    def along(self, r: Tensor) -> Tensor:
        return self.function(r)


class ReluCall(StepCall):
    """ReLU, or LeakyReLU with a factor for negative numbers: their second derivative is 0."""

    def __init__(self, x: Tensor, negative: float) -> None:
        self.x, self.negative, self.z = x, negative, F.leaky_relu(x, negative) if negative else x.relu()

    def backward(self, d: Tensor) -> Tensor:
        back: Tensor = aten.leaky_relu_backward(d, self.x, self.negative, False) if self.negative else aten.threshold_backward(d, self.x, 0)
        return back

    def along(self, r: Tensor) -> Tensor:
        return self.backward(r)


class SmoothCall(StepCall):
    """Sigmoid or tanh, a(x) = z. For sigmoid a' = z (1 - z) and a'' = a' (1 - 2 z); for tanh a' = 1 - z^2 and a'' = -2 z a'."""

    def __init__(self, x: Tensor, activation: nn.Module) -> None:
        self.logistic = isinstance(activation, nn.Sigmoid)
        self.z = x.sigmoid() if self.logistic else x.tanh()

    def _times(self, d: Tensor) -> Tensor:
        """Return a'(x) d."""
        product: Tensor = aten.sigmoid_backward(d, self.z) if self.logistic else aten.tanh_backward(d, self.z)
        return product

    def backward(self, d: Tensor) -> Tensor:
        self.d = d
        return self._times(d)

    def along(self, r: Tensor) -> Tensor:
        self.r = r
        return self._times(r)

    def backward_along(self, rd: Tensor) -> Tensor:
        """Return R dL/dx = a'' R x d + a' R d, where a'' = a' times a factor."""
        if self.logistic:
            return self._times(torch.addcmul(rd, self.r * self.d, 1 - 2 * self.z))
        return self._times(torch.addcmul(rd, self.r * self.d, self.z, value=-2))


class WeightedCall(StepCall):
    """A linear layer or a convolution, z = W x + b."""

    def __init__(self, x: Tensor, layer: WeightedLayer, at: Affine, lanes: int) -> None:
        self.layer, self.at, self.map = layer, at, layer.map(x, lanes)
        self.matrix, self.entered = at.in_form(self.map), self.map.entered(x)
        self.z = self.map.forward(self.matrix, at.bias, self.entered)

    def backward_weights(self, d: Tensor, *, needed: bool) -> tuple[Params, Tensor | None]:
        """Return dL/dw of the layer's parameters, (S, ...), and, where it is needed, dL/dx, given dL/dz."""
        self.d = d
        weight, bias, back = self.map.backward(self.matrix, self.entered, d, needed=needed)
        return self.layer.unfold(self.at, weight.view(-1, *self.at.weight.shape), bias), back

    def along_weights(self, r: Tensor | None, v: Params) -> Tensor:
        """Return R z, given R x (None: 0) and the direction v."""
        weight, bias = self.layer.fold_along(self.at, v)
        self.v = self.map.direction(self.matrix, weight)
        return self.map.along(self.matrix, self.entered, r, self.v, bias)

    def backward_along(self, rd: Tensor) -> Tensor:
        return self.map.backward_along(self.matrix, self.d, rd, self.v)
