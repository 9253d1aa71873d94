"""FCN3, the fully connected network of R-GAP."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from leakage.engine.core import Model
from leakage.models._parts import ACTIVATIONS, activation_field, bias_field, normalisation, normalise_field


@dataclass(frozen=True, kw_only=True)
class FCN3(Model):
    """flatten - linear(1000) - linear(100) - linear(classes), an activation after every layer, the last one as well.

    No biases; LeakyReLU with the factor 0.2 for negative inputs; PyTorch's default initialisation. 884,100 parameters for 1x28x28 pictures
    and one output.
    Unlike the paper: one output per class, not a single output. Source: Zhu and Blaschko 2021, their code.
    """

    title = "Fully connected network for digits (FCN3)"
    short = "FCN3"
    plain = "Three fully connected layers without biases. The first layer's gradient is one picture, scaled, row by row."
    hint = "Meant for handwritten digits (28 px, grey). Compare it with the MLP, which has biases."
    source = "https://arxiv.org/abs/2010.07733"

    activation: str = activation_field("leaky_relu")
    bias: bool = bias_field(False)
    normalise: str = normalise_field("none")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        channels, height, width = image_shape
        units = (channels * height * width, 1000, 100, num_classes)
        layers = OrderedDict(normalisation(self.normalise, channels), flatten=nn.Flatten())
        for number in (1, 2, 3):
            layers[f"linear{number}"] = nn.Linear(units[number - 1], units[number], bias=self.bias)
            layers[f"act{number}"] = ACTIVATIONS[self.activation]()
        return nn.Sequential(layers)
