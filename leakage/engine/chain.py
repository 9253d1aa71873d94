"""A network as a chain of links, from picture to outputs: what closed-form attacks climb from the output to the picture."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeGuard

import torch
from torch import Tensor, nn

from leakage.engine.core import Normalise
from leakage.engine.link import GlobalMean, Link, Norm, Residual, one_side
from leakage.networks.k_curve import Loss

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


def chain(model: nn.Module, image_shape: tuple[int, int, int]) -> list[Link]:
    """The links of a model from picture to outputs. Raises ValueError naming the first layer that has no place in a chain."""
    return _links(leaves(model), image_shape)


def leaves(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The layers of nested nn.Sequential in their order, by name; one that is used twice comes twice."""
    if isinstance(module, nn.Sequential):
        for name, child in zip(module._modules, module, strict=True):
            yield from leaves(child, f"{prefix}{name}.")
    else:
        yield prefix.removesuffix("."), module


def _links(layers: Iterable[tuple[str, nn.Module]], shape: tuple[int, ...]) -> list[Link]:
    links: list[Link] = []
    for name, layer in layers:
        last = links[-1] if links else None
        if isinstance(layer, Residual) and layer.skip is None:
            links += _links([*leaves(layer.body, f"{name}.body."), (name, layer.activation)], shape)
        elif made := _link(name, layer, shape):
            links.append(made)
        elif isinstance(layer, BENDS) and last and last.activation is None:
            links[-1] = replace(last, activation=layer)
        elif _stored(layer) and last and isinstance(last.layer, nn.Conv2d) and not (last.norm or last.activation):
            links[-1] = replace(last, norm=Norm(name, layer))
        elif not isinstance(layer, Normalise | nn.Flatten | nn.Identity | TwoClasses):
            raise ValueError(f"{name} ({type(layer).__name__})".strip())
        shape = links[-1].z if links else shape
    return links


def _link(name: str, layer: nn.Module, shape: tuple[int, ...]) -> Link | None:
    """The link that a layer makes of what has this shape; None: it makes none of its own."""
    if isinstance(layer, nn.Linear):
        return Link(name, layer, shape, (layer.out_features,))
    if isinstance(layer, nn.Conv2d) and _plain(layer):
        norm = getattr(layer, "norm", None)
        folded = Norm(f"{name}.norm", norm) if isinstance(norm, nn.BatchNorm2d) else None
        return Link(name, layer, shape, (layer.out_channels, *(_side(side, layer) for side in shape[1:])), norm=folded)
    if isinstance(layer, GlobalMean):
        return Link(name, layer, shape, shape[:1])
    if isinstance(layer, nn.AvgPool2d) and _in_squares(layer):
        return Link(name, layer, shape, (shape[0], *(side // one_side(layer.kernel_size) for side in shape[1:])))
    if isinstance(layer, Residual):
        body = tuple(_links(leaves(layer.body, f"{name}.body."), shape))
        past = None if layer.skip is None or isinstance(layer.skip, nn.Identity) else _link(f"{name}.skip", layer.skip, shape)
        if (past or isinstance(layer.skip, nn.Identity)) and all(isinstance(part.layer, nn.Conv2d) for part in body):
            return Link(name, layer, shape, body[-1].z, layer.activation, body=body, skip=past)
    return None


def _plain(layer: nn.Conv2d) -> bool:
    """Zeros around it, square, and nothing that normalises behind it but BatchNorm with its stored statistics."""
    norm = getattr(layer, "norm", nn.Identity())
    same = layer.kernel_size[0] == layer.kernel_size[1] and layer.groups == 1 and layer.dilation[0] == 1
    return same and layer.padding_mode == "zeros" and (isinstance(norm, nn.Identity) or _stored(norm))


def _in_squares(layer: nn.AvgPool2d) -> bool:
    """Whether it takes the means of squares side by side; what is left over at the edges it leaves out."""
    bare = layer.padding == 0 and not layer.ceil_mode and layer.divisor_override is None
    return bare and one_side(layer.kernel_size) == one_side(layer.stride) > 0


def _stored(layer: nn.Module) -> TypeGuard[nn.BatchNorm2d]:
    """Whether it is BatchNorm that uses its stored statistics, and scale and shift that are weights."""
    return isinstance(layer, nn.BatchNorm2d) and layer.affine and not layer.training and layer.running_mean is not None


def _side(side: int, layer: nn.Conv2d) -> int:
    return (side + 2 * int(layer.padding[0]) - layer.kernel_size[0]) // layer.stride[0] + 1
