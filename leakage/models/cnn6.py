"""CNN6 and CNN6-d, the networks of R-GAP."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from leakage.engine.core import Model, param
from leakage.models._layers import Conv2d
from leakage.models._parts import ACTIVATIONS, activation_field, bias_field, normalisation, normalise_field


@dataclass(frozen=True, kw_only=True)
class CNN6(Model):
    """conv 4@12 /2 - conv 3@36 /2 - conv 3@36 - conv 3@36 - conv 3@64 /2 - conv 3@128 - linear, an activation after each convolution.

    Padding 2, then 1. No biases; LeakyReLU with the factor 0.2 for negative inputs; PyTorch's default initialisation. For 3x32x32 pictures
    and one output the network has 125,456 parameters; with 20 channels in the second layer (CNN6-d) 118,544. Unlike the paper: one output
    per class, not a single output.
    Source: Zhu and Blaschko 2021, table 1, and their code.
    """

    title = "Network for equations (CNN6)"
    short = "CNN6"
    plain = "Six convolutions without biases, chosen so that a picture can be computed layer by layer from the gradient."
    hint = "CNN6-d (a preset) has too few filters in its second layer: the equations of that layer no longer suffice."
    source = "https://arxiv.org/abs/2010.07733"
    presets = {"CNN6-d (Zhu and Blaschko 2021)": {"second": 20}}

    second: int = param(36, 4, 64, "Filters of the second layer: 36 is CNN6, 20 is CNN6-d.")
    activation: str = activation_field("leaky_relu")
    bias: bool = bias_field(False)
    normalise: str = normalise_field("none")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        channels, *sides = image_shape
        layers = OrderedDict(normalisation(self.normalise, channels))
        sizes = ((4, 12, 2, 2), (3, self.second, 2, 1), (3, 36, 1, 1), (3, 36, 1, 1), (3, 64, 2, 1), (3, 128, 1, 1))
        for number, (size, after, stride, padding) in enumerate(sizes, 1):
            layers[f"conv{number}"] = Conv2d(channels, after, size, stride=stride, padding=padding, bias=self.bias)
            layers[f"act{number}"] = ACTIVATIONS[self.activation]()
            channels, sides = after, [(side + 2 * padding - size) // stride + 1 for side in sides]
        layers["flatten"] = nn.Flatten()  # (B, 128 * 5 * 5) for 32 pixels
        layers["linear"] = nn.Linear(channels * sides[0] * sides[1], num_classes, bias=self.bias)
        return nn.Sequential(layers)
