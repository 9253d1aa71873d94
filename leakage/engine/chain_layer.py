"""A layer of a chain: one linear map of a network and the activation behind it.

The map is a convolution (alone, or with a BatchNorm of stored statistics folded into it), a linear layer, a mean of pixels, or a residual
block: the sum of convolutions and a skip.
"""

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.core import Params

NOTHING = 1e-6  # outputs of a ReLU are computed, not exact: an output below this fraction of the largest counts as 0


class GlobalMean(nn.Module):
    """The mean of every channel: (B, C, H, W) -> (B, C). nn.AdaptiveAvgPool2d has no fast path for several guesses at once."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


class Residual(nn.Module):
    """A residual block: activation(body(x) + skip(x)), or activation(body(x)) without a skip.

    Args:
        body: convolutions with activations between them
        skip: the layer of the skip, or None
        activation: the activation behind the sum
    """

    body: nn.Sequential
    skip: nn.Module | None
    activation: nn.Module

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.body(x)
        activated: Tensor = self.activation(out if self.skip is None else out + self.skip(x))
        return activated


@dataclass(frozen=True)
class Norm:
    """BatchNorm with stored statistics, a map of each channel: z = gamma (y - mean) / deviation + beta.

    Args:
        name: name of the layer; the parameter `name`.weight is gamma
        module: the layer itself
    """

    name: str
    module: nn.BatchNorm2d

    @property
    def mean(self) -> Tensor:
        """The stored mean (C,), float64. The statistics are part of the model that the server sends out."""
        assert self.module.running_mean is not None
        return self.module.running_mean.detach().cpu().double()

    @property
    def deviation(self) -> Tensor:
        """The stored standard deviation (C,), float64."""
        assert self.module.running_var is not None
        return (self.module.running_var.detach().cpu().double() + self.module.eps).sqrt()


@dataclass(frozen=True)
class ChainLayer:
    """One linear map and its activation a: x -> z -> a(z), for a single picture.

    Args:
        name: name of the layer in the model; its weight is the parameter `name`.weight
        module: the layer of the model
        x: shape of the input, (C, H, W) or (n,); a linear layer flattens its input
        z: shape of the output
        activation: the activation behind the map, or None
        norm: the BatchNorm that follows a convolution, as part of the map
        body: the convolutions of a residual block; z is the sum of the last convolution's output and the skip
        skip: the convolution in the skip of a residual block; None where the skip is x itself
    """

    name: str
    module: nn.Module
    x: tuple[int, ...]
    z: tuple[int, ...]
    activation: nn.Module | None = None
    norm: Norm | None = None
    body: tuple["ChainLayer", ...] = ()
    skip: "ChainLayer | None" = None

    @property
    def is_mean(self) -> bool:
        """Whether the map averages pixels."""
        return isinstance(self.module, nn.AvgPool2d | GlobalMean)

    @property
    def is_convolution(self) -> bool:
        """Whether the map is a convolution, alone or with a norm."""
        return isinstance(self.module, nn.Conv2d)

    @property
    def size(self) -> int:
        """Side of a convolution's kernel, or of the squares that a mean averages."""
        if isinstance(self.module, nn.AvgPool2d):
            return square_side(self.module.kernel_size)
        return self.module.kernel_size[0] if isinstance(self.module, nn.Conv2d) else 1

    @property
    def stride(self) -> int:
        return self.module.stride[0] if isinstance(self.module, nn.Conv2d) else 1

    @property
    def padding(self) -> int:
        return int(self.module.padding[0]) if isinstance(self.module, nn.Conv2d) else 0

    @property
    def weighted(self) -> tuple["ChainLayer", ...]:
        """The maps with weights: the layer itself, the convolutions of a residual block, none for a mean."""
        if self.body:
            return (*self.body, self.skip) if self.skip else self.body
        return () if self.is_mean else (self,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters that the layer can have; a model may lack some of them."""
        modules = [module.name for part in self.weighted for module in (part, part.norm) if module]
        return tuple(f"{name}.{kind}" for name in modules for kind in ("weight", "bias"))

    def inverse(self, out: Tensor) -> Tensor:
        """Return z, given the output of the activation.

        An output outside the activation's range counts as the nearest value inside. Where the output of a ReLU is 0, z is returned as 0.
        """
        edge = torch.finfo(out.dtype).eps
        if isinstance(self.activation, nn.LeakyReLU):
            return torch.where(out >= 0, out, out / self.activation.negative_slope)
        if isinstance(self.activation, nn.Sigmoid):
            return out.clamp(edge, 1 - edge).logit()
        if isinstance(self.activation, nn.Tanh):
            return out.clamp(edge - 1, 1 - edge).atanh()
        if isinstance(self.activation, nn.ReLU):
            return torch.where(out > NOTHING * out.abs().max(), out, torch.zeros_like(out))
        return out

    @property
    def kink(self) -> float | None:
        """Derivative of the activation below 0 where the activation has a kink at 0 (ReLU, LeakyReLU); None for other activations."""
        below = self.activation.negative_slope if isinstance(self.activation, nn.LeakyReLU) else 0.0
        return below if isinstance(self.activation, nn.ReLU | nn.LeakyReLU) else None

    def activate(self, z: Tensor, soft: float = 0.0) -> Tensor:
        """Return the output of the activation; z itself without an activation.

        Args:
            z: the input of the activation.
            soft: width over which a kink is rounded, in root mean squares of z; 0 keeps the kink.
        """
        if self.kink is None:
            return z if self.activation is None else self.activation(z)
        if not soft:
            return F.leaky_relu(z, self.kink)
        width = soft * z.square().mean().sqrt()
        return self.kink * z + (1 - self.kink) * width * F.softplus(z / width)

    def known(self, z: Tensor) -> Tensor:
        """Return which entries of z the output of the activation determines: all of them, except where a ReLU gives 0."""
        return z > 0 if isinstance(self.activation, nn.ReLU) else torch.ones_like(z, dtype=torch.bool)

    def derivative(self, z: Tensor) -> Tensor:
        """Return a'(z), the derivative of the activation."""
        if isinstance(self.activation, nn.LeakyReLU):
            return torch.where(z >= 0, torch.ones_like(z), self.activation.negative_slope)
        if isinstance(self.activation, nn.Sigmoid):
            return z.sigmoid() * (1 - z.sigmoid())
        if isinstance(self.activation, nn.Tanh):
            return 1 - z.tanh().square()
        return (z > 0).to(z) if isinstance(self.activation, nn.ReLU) else torch.ones_like(z)

    def scale(self, weights: Params) -> Tensor | None:
        """Return gamma / deviation (C,), by which folding the norm multiplies each filter; None for a layer without a norm."""
        return weights[f"{self.norm.name}.weight"] / self.norm.deviation if self.norm else None

    def weight(self, weights: Params) -> Tensor:
        """Return the weight of the layer, with the norm folded into it where there is a norm."""
        weight, scale = weights[f"{self.name}.weight"], self.scale(weights)
        return weight if scale is None else weight * scale.view(-1, 1, 1, 1)

    def bias(self, weights: Params) -> Tensor | None:
        """Return the bias of the layer, with the norm folded into it where there is a norm; None where the map adds no bias."""
        bias, scale = weights.get(f"{self.name}.bias"), self.scale(weights)
        if scale is None or self.norm is None:
            return bias
        off = -self.norm.mean if bias is None else bias - self.norm.mean
        return weights[f"{self.norm.name}.bias"] + off * scale

    def map(self, weights: Params, x: Tensor, soft: float = 0.0) -> Tensor:
        """Return z, the output of the map; it is differentiable in the weights and in x.

        Args:
            weights: the model's parameters, by name, float64.
            x: the input of the layer, of shape `self.x`, float64.
            soft: as in `activate`, for the activations within a residual block.
        """
        if self.body:
            out = x
            for part in self.body:
                out = part.activate(part.map(weights, out), soft)
            return out + (x if self.skip is None else self.skip.map(weights, x))
        if self.is_mean:
            return x.mean((1, 2)) if len(self.z) == 1 else F.avg_pool2d(x[None], self.size)[0]
        weight, bias = self.weight(weights), self.bias(weights)
        if weight.dim() == 2:
            return weight @ x.flatten() if bias is None else weight @ x.flatten() + bias
        columns = F.unfold(x[None], self.size, padding=self.padding, stride=self.stride)[0]  # (Ci s^2, Ho Wo)
        z = weight.flatten(1) @ columns
        return (z if bias is None else z + bias.unsqueeze(1)).view(self.z)

    def input_gradient(self, weights: Params, k: Tensor) -> Tensor:
        """Return dL/dx (of shape x) = W^T k, given k = dL/dz (of shape z).

        Entries that fall on the padding are left out. The method must not be called on a residual block, which has no single W.
        """
        if self.is_mean:
            return self._spread(k)
        weight = self.weight(weights)
        if weight.dim() == 2:
            return (k @ weight).view(self.x)
        reach = [(out - 1) * self.stride - 2 * self.padding + weight.shape[-1] for out in self.z[1:]]
        missed = [side - reached for side, reached in zip(self.x[1:], reach, strict=True)]
        return F.conv_transpose2d(k[None], weight, stride=self.stride, padding=self.padding, output_padding=missed)[0]

    def shortest(self, z: Tensor) -> Tensor:
        """Return the input x of smallest norm for which a layer that averages pixels gives z.

        Each pixel gets the value of the square of pixels that it is averaged with; pixels outside all squares are 0.
        """
        return self._spread(z) * (self.size**2 if len(self.z) == 3 else prod(self.x[1:]))

    def _spread(self, k: Tensor) -> Tensor:
        """Return the transpose of a layer that averages pixels, applied to k: (shape z) -> (shape x), k spread evenly over the pixels."""
        if len(self.z) == 1:
            return (k / prod(self.x[1:])).view(-1, 1, 1).expand(self.x).clone()
        spread = k.repeat_interleave(self.size, 1).repeat_interleave(self.size, 2) / self.size**2
        return F.pad(spread, (0, self.x[2] - spread.shape[2], 0, self.x[1] - spread.shape[1]))


def square_side(size: int | tuple[int, ...]) -> int:
    """Return the side of a square that is given by one or two lengths; 0 where the lengths differ."""
    return size if isinstance(size, int) else size[0] if len(set(size)) == 1 else 0
