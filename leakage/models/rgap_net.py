"""The five small networks of R-GAP's rank analysis."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from leakage.engine.core import Model, choice
from leakage.models._layers import Conv2d
from leakage.models._parts import ACTIVATIONS, activation_field, normalisation, normalise_field

NETS = {  # name -> convolutions (size, filters), hidden linear units
    "A": (((4, 4),), ()),
    "B": (((4, 3),), ()),
    "C": (((4, 3),), (500,)),
    "D": (((3, 4), (3, 4)), ()),
    "E": (((5, 4), (4, 4)), ()),
}


@dataclass(frozen=True, kw_only=True)
class RGapNet(Model):
    """One or two convolutions (stride 1, no padding), then one or two linear layers, without biases and with LeakyReLU between them.

    A: conv 4@4. B: conv 4@3. C: conv 4@3, linear 500. D: conv 3@4 twice. E: conv 5@4, conv 4@4. For 3x32x32 pictures and one output they
    have 3,556; 2,667; 1,264,144; 3,388 and 3,056 parameters. LeakyReLU has the factor 0.2 for negative inputs. Unlike the paper: one
    output per class; the paper does not state the activation.
    Source: Zhu and Blaschko 2021, figure 2.
    """

    title = "Network for equations (R-GAP's nets A to E)"
    short = "R-GAP's nets A to E"
    plain = "Five tiny networks that show when a gradient suffices: some have more equations than pixels, some fewer."
    hint = "A and D determine the picture, B, C and E do not. C has over three hundred times as many parameters as A, and still leaks less."
    source = "https://arxiv.org/abs/2010.07733"

    net: str = choice("A", tuple(NETS), "Which of the five networks of figure 2.")
    activation: str = activation_field("leaky_relu")
    normalise: str = normalise_field("none")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        before, height, width = image_shape
        convolutions, hidden = NETS[self.net]
        layers = OrderedDict(normalisation(self.normalise, before))
        for number, (size, after) in enumerate(convolutions, 1):
            layers[f"conv{number}"] = Conv2d(before, after, size, bias=False)
            layers[f"act{number}"] = ACTIVATIONS[self.activation]()
            before, height, width = after, height - size + 1, width - size + 1
        layers["flatten"] = nn.Flatten()
        units = before * height * width
        for after in hidden:
            layers["linear1"] = nn.Linear(units, after, bias=False)
            layers["act"] = ACTIVATIONS[self.activation]()
            units = after
        layers["linear"] = nn.Linear(units, num_classes, bias=False)
        return nn.Sequential(layers)
