"""A network that the user writes as a text, layer by layer."""

from collections import OrderedDict
from dataclasses import dataclass
from math import prod

from torch import nn

from leakage.engine.chain_layer import GlobalMean
from leakage.engine.core import Model, text
from leakage.models._layers import Conv2d, ConvNorm, ResidualBlock, Style
from leakage.models._parts import ACTIVATIONS, activation_field, bias_field, normalisation, normalise_field
from leakage.networks.grammar import Block, Conv, Linear, Pool, Step, parse, unroll
from leakage.networks.templates import TEMPLATES


@dataclass(frozen=True, kw_only=True)
class Custom(Model):
    """The steps of a text in their order, an activation after each convolution, block and linear layer; then a linear layer to the outputs.

    Padding is black. Convolutions and residual blocks have no norm unless their step says so. If the shape changes, the skip is a
    convolution of size 1. PyTorch's default initialisation. At most 50 million weights. The default is LeNet* without its last convolution.
    Source: designed here; residual blocks and bottlenecks: He et al. 2016, section 3.3; the presets: Zhu and Blaschko 2021.
    """

    title = "Your own network"
    plain = "A network that you write: convolutions, residual blocks, pooling and linear layers, step by step."
    hint = "R-GAP can solve small networks without max pooling. The page Architecture counts whether the equations suffice."
    source = "https://arxiv.org/abs/2010.07733"
    presets = {
        "R-GAP's net A": {"network": TEMPLATES["R-GAP's net A"]},
        "CNN6": {"network": TEMPLATES["CNN6"]},
        "ResNet18, width 16": {"network": TEMPLATES["ResNet18, width 16"], "activation": "relu"},
        "ResNet18, width 16, skip 3 cut": {"network": TEMPLATES["ResNet18, width 16, skip 3 cut"], "activation": "relu"},
        "Convolutions that keep the size": {"network": "conv 3@12 p1 - conv 3@12 p1 - linear 500", "activation": "relu", "bias": True},
    }

    network: str = text("conv 5@12 /2 p2 - conv 5@12 /2 p2", "network", "The layers between the picture and the outputs.")
    activation: str = activation_field("leaky_relu")
    bias: bool = bias_field(False)
    normalise: str = normalise_field("none")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        steps = (*parse(self.network), Linear(num_classes))
        shapes = {layer.step: layer.x for layer in reversed(unroll(steps[:-1], image_shape, num_classes))}  # step -> its input shape
        styles = {normed: Style(self.activation, "batch" if normed else "none", "zeros", bias=self.bias) for normed in (False, True)}
        layers = OrderedDict(normalisation(self.normalise, image_shape[0]))
        for index, step in enumerate(steps):
            shape, number, last = shapes[index], index + 1, index == len(steps) - 1
            if isinstance(step, Conv):
                layers[f"conv{number}"] = _conv(step, shape[0], bias=self.bias)
            elif isinstance(step, Block):
                layers[f"block{number}"] = ResidualBlock(
                    styles[step.norm], shape[0], step.filters, step.stride, bottleneck=step.deep, skip=step.skip
                )
            elif isinstance(step, Pool):
                layers[f"{step.kind}{number}"] = _pool(step, shape, steps[index + 1])
            else:
                if len(shape) == 3:
                    layers["flatten"] = nn.Flatten()  # (B, C * H * W)
                layers["linear" if last else f"linear{number}"] = nn.Linear(prod(shape), step.units, bias=self.bias)
            if isinstance(step, Conv | Linear) and not last:
                layers[f"act{number}"] = ACTIVATIONS[self.activation]()
        return nn.Sequential(layers)


def _conv(step: Conv, before: int, *, bias: bool) -> nn.Module:
    """Make a convolution with `before` input channels, followed by BatchNorm if the step says so."""
    if step.norm:
        return ConvNorm(before, step.filters, step.size, stride=step.stride, padding=step.padding, bias=bias)
    return Conv2d(before, step.filters, step.size, stride=step.stride, padding=step.padding, bias=bias)


def _pool(step: Pool, shape: tuple[int, ...], then: Step) -> nn.Module:
    """Make a pooling layer for inputs of this shape; a mean over the whole picture drops height and width before a linear step."""
    if step.kind == "max":
        return nn.MaxPool2d(step.size)
    if step.size:
        return nn.AvgPool2d(step.size)
    return GlobalMean() if isinstance(then, Linear) else nn.AvgPool2d((shape[1], shape[2]))  # (B, C), or (B, C, 1, 1)
