"""A fully connected network."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from leakage.engine.core import Model, param
from leakage.models._parts import ACTIVATIONS, activation_field, normalisation, normalise_field


@dataclass(frozen=True, kw_only=True)
class MLP(Model):
    """flatten - [linear(width) - activation] x depth - linear(classes), with biases, PyTorch's default initialisation.

    Width 1024, depth 2 and ReLU is the MLP of Scheliga et al. 2022 (PRECODE).
    """

    title = "Fully connected network (MLP)"
    short = "MLP"
    plain = "Every pixel is connected to every unit; no convolution. Its first layer's gradient is a copy of the picture, scaled."
    hint = "With a bias in the first layer a single picture can even be computed by division. Try a wider network."
    source = "https://arxiv.org/abs/2108.04725"

    width: int = param(256, 8, 2048, "Units in each hidden layer.")
    depth: int = param(2, 1, 6, "The number of hidden layers.")
    activation: str = activation_field("relu")
    normalise: str = normalise_field("none")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        channels, height, width = image_shape
        layers = OrderedDict(normalisation(self.normalise, channels), flatten=nn.Flatten())  # (B, C * H * W)
        units = channels * height * width
        for number in range(1, self.depth + 1):
            layers[f"linear{number}"] = nn.Linear(units, self.width)
            layers[f"act{number}"] = ACTIVATIONS[self.activation]()
            units = self.width
        layers["linear"] = nn.Linear(units, num_classes)
        return nn.Sequential(layers)
