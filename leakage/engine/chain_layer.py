"""A layer of a chain: one linear map of a network and the activation behind it.

A map is a convolution, alone or with a BatchNorm of stored statistics folded into it, a linear layer, a mean of pixels, or a residual
block: convolutions and a skip past them, whose outputs are added.
"""

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.core import Params

NOTHING = 1e-6  # what came out of a ReLU was worked out: below this share of the largest it counts as 0


class GlobalMean(nn.Module):
    """The mean of every channel: (B, C, H, W) -> (B, C). nn.AdaptiveAvgPool2d has no fast path for several guesses at once."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


class Residual(nn.Module):
    """A residual block: activation(body(x) + skip(x)); without a skip activation(body(x)).

    body  convolutions with activations between them
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
    """BatchNorm with its stored statistics, a map of every channel: z = gamma (y - mean) / deviation + beta. `name`.weight is gamma."""

    name: str
    module: nn.BatchNorm2d

    @property
    def mean(self) -> Tensor:
        """(C,), float64. The statistics are part of the model that the server sends out."""
        assert self.module.running_mean is not None
        return self.module.running_mean.detach().cpu().double()

    @property
    def deviation(self) -> Tensor:
        """(C,), float64."""
        assert self.module.running_var is not None
        return (self.module.running_var.detach().cpu().double() + self.module.eps).sqrt()


@dataclass(frozen=True)
class ChainLayer:
    """One map and its activation a: x -> z -> a(z). Shapes are those of one picture: (C, H, W), or (n,); a linear layer flattens its input.

    name        its weight is `name`.weight
    activation  the activation behind it, or None
    norm        the BatchNorm that follows a convolution, as part of the map
    body        of a residual block: its convolutions; z is what its last one and the skip add up to
    skip        of a residual block: the convolution of the skip; None: x itself
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
        """Whether it averages pixels."""
        return isinstance(self.module, nn.AvgPool2d | GlobalMean)

    @property
    def is_convolution(self) -> bool:
        """Whether it is one, alone or with a norm."""
        return isinstance(self.module, nn.Conv2d)

    @property
    def size(self) -> int:
        """A side of a convolution's kernel, or of the squares of a mean."""
        if isinstance(self.module, nn.AvgPool2d):
            return one_side(self.module.kernel_size)
        return self.module.kernel_size[0] if isinstance(self.module, nn.Conv2d) else 1

    @property
    def stride(self) -> int:
        return self.module.stride[0] if isinstance(self.module, nn.Conv2d) else 1

    @property
    def padding(self) -> int:
        return int(self.module.padding[0]) if isinstance(self.module, nn.Conv2d) else 0

    @property
    def weighted(self) -> tuple["ChainLayer", ...]:
        """The maps in it that have weights: itself, or those of a residual block; of a mean none."""
        if self.body:
            return (*self.body, self.skip) if self.skip else self.body
        return () if self.is_mean else (self,)

    @property
    def names(self) -> tuple[str, ...]:
        """Its parameters, as far as a model can have them."""
        modules = [one.name for part in self.weighted for one in (part, part.norm) if one]
        return tuple(f"{name}.{kind}" for name in modules for kind in ("weight", "bias"))

    def inverse(self, out: Tensor) -> Tensor:
        """z, from the output of the activation; values that it cannot give count as the nearest that it can. Behind a ReLU 0 stays 0."""
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
        """The derivative of its activation below 0, where that is a kink; None: it has none."""
        below = self.activation.negative_slope if isinstance(self.activation, nn.LeakyReLU) else 0.0
        return below if isinstance(self.activation, nn.ReLU | nn.LeakyReLU) else None

    def activate(self, z: Tensor, soft: float = 0.0) -> Tensor:
        """The output of the activation; never in place. `soft`: a kink is rounded over so many root mean squares of z."""
        if self.kink is None:
            return z if self.activation is None else self.activation(z)
        if not soft:
            return F.leaky_relu(z, self.kink)
        width = soft * z.square().mean().sqrt()
        return self.kink * z + (1 - self.kink) * width * F.softplus(z / width)

    def known(self, z: Tensor) -> Tensor:
        """Which entries of z are known from the output of the activation: all but the zeros of a ReLU."""
        return z > 0 if isinstance(self.activation, nn.ReLU) else torch.ones_like(z, dtype=torch.bool)

    def derivative(self, z: Tensor) -> Tensor:
        """a'(z), the derivative of the activation."""
        if isinstance(self.activation, nn.LeakyReLU):
            return torch.where(z >= 0, torch.ones_like(z), self.activation.negative_slope)
        if isinstance(self.activation, nn.Sigmoid):
            return z.sigmoid() * (1 - z.sigmoid())
        if isinstance(self.activation, nn.Tanh):
            return 1 - z.tanh().square()
        return (z > 0).to(z) if isinstance(self.activation, nn.ReLU) else torch.ones_like(z)

    def scale(self, weights: Params) -> Tensor | None:
        """gamma / deviation (C,) of its norm: what folding multiplies every filter by. None: it has no norm."""
        return weights[f"{self.norm.name}.weight"] / self.norm.deviation if self.norm else None

    def weight(self, weights: Params) -> Tensor:
        """Its weight; that of a convolution with the norm folded into it."""
        weight, scale = weights[f"{self.name}.weight"], self.scale(weights)
        return weight if scale is None else weight * scale.view(-1, 1, 1, 1)

    def bias(self, weights: Params) -> Tensor | None:
        """Its bias, with the norm folded into it, or None."""
        bias, scale = weights.get(f"{self.name}.bias"), self.scale(weights)
        if scale is None or self.norm is None:
            return bias
        off = -self.norm.mean if bias is None else bias - self.norm.mean
        return weights[f"{self.norm.name}.bias"] + off * scale

    def map(self, weights: Params, x: Tensor, soft: float = 0.0) -> Tensor:
        """z of x, of these shapes and in float64; differentiable in both. `soft`: of the activations within a block."""
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
        """dL/dx (of shape x) from k = dL/dz (of shape z): W^T k, without what falls on the padding. Not of a residual block."""
        if self.is_mean:
            return self._spread(k)
        weight = self.weight(weights)
        if weight.dim() == 2:
            return (k @ weight).view(self.x)
        reach = [(out - 1) * self.stride - 2 * self.padding + weight.shape[-1] for out in self.z[1:]]
        missed = [side - reached for side, reached in zip(self.x[1:], reach, strict=True)]
        return F.conv_transpose2d(k[None], weight, stride=self.stride, padding=self.padding, output_padding=missed)[0]

    def shortest(self, z: Tensor) -> Tensor:
        """Of a mean: the shortest x with this z: every pixel is the mean of its square, and 0 where no square holds it."""
        return self._spread(z) * (self.size**2 if len(self.z) == 3 else prod(self.x[1:]))

    def _spread(self, k: Tensor) -> Tensor:
        """The transposed mean."""
        if len(self.z) == 1:
            return (k / prod(self.x[1:])).view(-1, 1, 1).expand(self.x).clone()
        spread = k.repeat_interleave(self.size, 1).repeat_interleave(self.size, 2) / self.size**2
        return F.pad(spread, (0, self.x[2] - spread.shape[2], 0, self.x[1] - spread.shape[1]))


def one_side(size: int | tuple[int, ...]) -> int:
    """Of a square that is given by one side or by both; 0: it is no square."""
    return size if isinstance(size, int) else size[0] if len(set(size)) == 1 else 0
