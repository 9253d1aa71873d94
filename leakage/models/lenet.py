"""LeNet as Zhu et al. changed it for gradient leakage."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from leakage.engine.core import Model
from leakage.models._layers import Conv2d
from leakage.models._parts import (
    ACTIVATIONS,
    activation_field,
    bias_field,
    initialisation_field,
    initialise,
    normalisation,
    normalise_field,
)


@dataclass(frozen=True, kw_only=True)
class LeNet(Model):
    """conv 5@12 /2 - sigmoid - conv 5@12 /2 - sigmoid - conv 5@12 /1 - sigmoid - linear; all weights and biases ~ U(-0.5, 0.5).

    15,826 parameters for 3x32x32 pictures and 10 classes, 13,426 for 1x28x28. LeNet* (a preset): LeakyReLU, no biases, PyTorch's
    initialisation; 15,780 parameters. Unlike its paper: one output per class, not a single output; LeakyReLU has the factor 0.2 for
    negative inputs, as in R-GAP's code.
    Source: Zhu et al. 2019 (section 4: sigmoid instead of ReLU, so that the gradient can be differentiated again); sizes as in their code;
    LeNet*: Zhu and Blaschko 2021, table 2.
    """

    title = "Small network (LeNet)"
    short = "LeNet"
    plain = "A tiny network of three smooth layers, the classic victim: its gradient describes a picture almost completely."
    hint = "Smooth (sigmoid) layers make matching easy. Pictures come back nearly perfect from a single gradient."
    source = "https://arxiv.org/abs/1906.08935"

    presets = {
        "LeNet* (Zhu and Blaschko 2021)": {"activation": "leaky_relu", "bias": False, "initialisation": "default"},
    }

    activation: str = activation_field("sigmoid")
    bias: bool = bias_field(True)
    initialisation: str = initialisation_field("wide_uniform")
    normalise: str = normalise_field("none")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        channels, height, width = image_shape
        side = (-(-height // 4)) * (-(-width // 4))  # two strides of 2, rounded up
        layers = OrderedDict(normalisation(self.normalise, channels))
        for number, stride in enumerate((2, 2, 1), 1):
            layers[f"conv{number}"] = Conv2d(channels, 12, 5, stride=stride, padding=2, bias=self.bias)
            layers[f"act{number}"] = ACTIVATIONS[self.activation]()
            channels = 12
        layers["flatten"] = nn.Flatten()  # (B, 12 * side)
        layers["linear"] = nn.Linear(12 * side, num_classes, bias=self.bias)
        return initialise(nn.Sequential(layers), self.initialisation)
