"""The small network for handwritten digits that GLAUS attacks."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from leakage.engine.core import Model
from leakage.models._layers import Conv2d
from leakage.models._parts import ACTIVATIONS, activation_field, initialisation_field, initialise, normalisation, normalise_field


@dataclass(frozen=True, kw_only=True)
class MnistCNN(Model):
    """conv 5@10 - sigmoid - conv 5@20 - sigmoid - conv 5@10 - sigmoid - linear; no padding; all weights and biases ~ U(-0.5, 0.5).

    35,900 parameters for 1x28x28 pictures and 10 classes; the picture shrinks from 28 to 24, 20 and 16 pixels.
    Source: the link is Hu et al. 2024 (AdaDefense), where GLAUS (gradient leakage attack using sampling) attacks this network; the layers
    are those of the attack's public code.
    """

    title = "Small network for digits (MNIST-CNN)"
    short = "MNIST-CNN"
    plain = "Three small convolutions without padding for handwritten digits, the network that the attack GLAUS was shown on."
    hint = "Meant for digits (28 px, grey). Smooth like LeNet, but its last layer sees every position: compare the two."
    source = "https://arxiv.org/abs/2410.08734"

    activation: str = activation_field("sigmoid")
    initialisation: str = initialisation_field("wide_uniform")
    normalise: str = normalise_field("none")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        channels, height, width = image_shape
        layers = OrderedDict(normalisation(self.normalise, channels))
        for number, filters in enumerate((10, 20, 10), 1):
            layers[f"conv{number}"] = Conv2d(channels, filters, 5)
            layers[f"act{number}"] = ACTIVATIONS[self.activation]()
            channels = filters
        layers["flatten"] = nn.Flatten()  # (B, 10 * (H - 12) * (W - 12))
        layers["linear"] = nn.Linear(channels * (height - 12) * (width - 12), num_classes)
        return initialise(nn.Sequential(layers), self.initialisation)
