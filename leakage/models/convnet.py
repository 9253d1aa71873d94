"""The ConvNet of Inverting Gradients, with a variable width."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from leakage.engine.core import Model, choice, param
from leakage.models._layers import NORM_HELP, NORMS, PADDING_HELP, PADDINGS, Style
from leakage.models._parts import activation_field, initialisation_field, initialise, normalisation, normalise_field


@dataclass(frozen=True, kw_only=True)
class ConvNet(Model):
    """Eight times conv 3 - BatchNorm - ReLU with w, 2w, 2w, 4w, 4w, 4w channels, max-pool 3, 4w, 4w, max-pool 3, then linear.

    2,904,970 parameters for width 64, 3x32x32 pictures and 10 classes. PyTorch's default initialisation. Unless the experiment says
    otherwise, BatchNorm uses its stored statistics (eval mode) for client and attack, as in Geiping et al.; in an untrained network these
    are 0 and 1, and BatchNorm does nothing. GroupNorm has at most 32 groups of at least 4 channels.
    Source: Geiping et al. 2020, figure 8 ("ConvNet").
    """

    title = "Deep network (ConvNet)"
    short = "ConvNet"
    plain = "A deeper network of the kind used in practice: eight layers of small filters, with the activations (ReLU) that phones use."
    hint = "Wider networks leak more: more numbers describe the same picture. Needs Inverting Gradients; DLG and iDLG get stuck."
    source = "https://arxiv.org/abs/2003.14053"

    width: int = param(16, 4, 128, "Filters of the first layer; the other layers have two or four times as many. The paper uses 64.")
    activation: str = activation_field("relu")
    norm: str = choice("batch", NORMS, NORM_HELP)
    padding: str = choice("zeros", PADDINGS, PADDING_HELP)
    initialisation: str = initialisation_field("default", ("default", "kaiming_normal"))
    normalise: str = normalise_field("cifar10")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        channels, height, width = image_shape
        layers = OrderedDict(normalisation(self.normalise, channels))
        before, style = channels, Style(self.activation, self.norm, self.padding, bias=True)
        for number, times in enumerate((1, 2, 2, 4, 4, 4, 4, 4)):
            after = times * self.width
            layers[f"conv{number}"] = style.conv(before, after, 3)
            layers[f"act{number}"] = style.activation_layer()
            if number in (5, 7):
                layers[f"pool{number}"] = nn.MaxPool2d(3)
            before = after
        layers["flatten"] = nn.Flatten()  # (B, 4w * (H // 9) * (W // 9))
        layers["linear"] = nn.Linear(before * (height // 3 // 3) * (width // 3 // 3), num_classes)
        return initialise(nn.Sequential(layers), self.initialisation)
