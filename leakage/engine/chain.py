"""A network as a chain of linear maps with a bend behind each: what closed-form attacks climb from the output to the picture."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.core import Normalise
from leakage.networks.k_curve import Loss

NOTHING = 1e-6  # what came out of a ReLU was worked out: below this share of the largest it counts as 0
BENDS = (nn.ReLU, nn.LeakyReLU, nn.Sigmoid, nn.Tanh)


class TwoClasses(nn.Module):
    """Behind a network of one output z: logits (0, z), whose cross-entropy is the logistic loss log(1 + exp(-z)) of class 1.

    loss  what the network is trained by, and whoever replays it: see `engine.losses`
    """

    def __init__(self, loss: Loss = "cross-entropy") -> None:
        super().__init__()
        self.loss: Loss = loss

    def forward(self, z: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(z), z], 1)  # (B, 2)


@dataclass(frozen=True)
class Link:
    """One map x -> z -> bend(z). Shapes are those of one picture: (C, H, W), or (n,); a linear layer flattens what it is given.

    name      its weight is `name`.weight
    activation  the activation behind it, or None
    """

    name: str
    layer: nn.Conv2d | nn.Linear
    x: tuple[int, ...]
    z: tuple[int, ...]
    activation: nn.Module | None = None

    @property
    def stride(self) -> int:
        return self.layer.stride[0] if isinstance(self.layer, nn.Conv2d) else 1

    @property
    def padding(self) -> int:
        return int(self.layer.padding[0]) if isinstance(self.layer, nn.Conv2d) else 0

    def before(self, out: Tensor) -> Tensor:
        """z, from what came out of the bend; values that it cannot give count as the nearest that it can. Behind a ReLU 0 stays 0."""
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

    def slope(self, z: Tensor) -> Tensor:
        """bend'(z)."""
        if isinstance(self.activation, nn.LeakyReLU):
            return torch.where(z >= 0, torch.ones_like(z), self.activation.negative_slope)
        if isinstance(self.activation, nn.Sigmoid):
            return z.sigmoid() * (1 - z.sigmoid())
        if isinstance(self.activation, nn.Tanh):
            return 1 - z.tanh().square()
        return (z > 0).to(z) if isinstance(self.activation, nn.ReLU) else torch.ones_like(z)

    def pull(self, weight: Tensor, k: Tensor) -> Tensor:
        """dL/dx (of shape x) from k = dL/dz (of shape z): W^T k, without what falls on the padding."""
        if isinstance(self.layer, nn.Linear):
            return (k @ weight).view(self.x)
        reach = [(out - 1) * self.stride - 2 * self.padding + weight.shape[-1] for out in self.z[1:]]
        missed = [side - reached for side, reached in zip(self.x[1:], reach, strict=True)]
        return F.conv_transpose2d(k[None], weight, stride=self.stride, padding=self.padding, output_padding=missed)[0]


def chain(model: nn.Module, image_shape: tuple[int, int, int]) -> list[Link]:
    """The links of a model from picture to outputs. Raises ValueError naming the first layer that has no place in a chain."""
    links: list[Link] = []
    shape: tuple[int, ...] = image_shape
    for name, layer in leaves(model):
        if isinstance(layer, nn.Linear):
            links.append(Link(name, layer, shape, (layer.out_features,)))
        elif isinstance(layer, nn.Conv2d) and _plain(layer):
            sides = [_side(side, layer) for side in shape[1:]]
            links.append(Link(name, layer, shape, (layer.out_channels, *sides)))
        elif isinstance(layer, BENDS) and links and links[-1].activation is None:
            links[-1] = Link(links[-1].name, links[-1].layer, links[-1].x, links[-1].z, layer)
        elif not isinstance(layer, Normalise | nn.Flatten | TwoClasses):
            raise ValueError(f"{name} ({type(layer).__name__})".strip())
        shape = links[-1].z if links else shape
    return links


def leaves(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The layers of nested nn.Sequential in their order, by name; one that is used twice comes twice."""
    if isinstance(module, nn.Sequential):
        for name, child in zip(module._modules, module, strict=True):
            yield from leaves(child, f"{prefix}{name}.")
    else:
        yield prefix.removesuffix("."), module


def _plain(layer: nn.Conv2d) -> bool:
    """Zeros around it, square, and nothing that normalises behind it."""
    same = layer.kernel_size[0] == layer.kernel_size[1] and layer.groups == 1 and layer.dilation[0] == 1
    return same and layer.padding_mode == "zeros" and isinstance(getattr(layer, "norm", nn.Identity()), nn.Identity)


def _side(side: int, layer: nn.Conv2d) -> int:
    return (side + 2 * int(layer.padding[0]) - layer.kernel_size[0]) // layer.stride[0] + 1
