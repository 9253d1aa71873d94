"""VGG-16, torchvision's."""

from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import nn

from leakage.engine.core import Model, param
from leakage.models._parts import Colour, normalisation, normalise_field


@dataclass(frozen=True, kw_only=True)
class VGG16(Model):
    """Thirteen times conv 3 - ReLU, in five stages with 64, 128, 256, 512, 512 filters, max-pool 2 after each; average-pool to 7x7; linear.

    The linear layers are 25088 - 4096 - 4096 - classes with ReLU and dropout, which is off here (eval mode). 134,301,514 parameters for 10
    classes, nine tenths of them in the linear layers. Weights as torchvision draws them: convolutions Kaiming's fan-out, linear layers
    N(0, 0.01^2). A grey picture enters three times, as red, green and blue.
    Source: Simonyan and Zisserman 2015, table 1, configuration D.
    """

    title = "Deep network with a very wide end (VGG-16)"
    short = "VGG-16"
    plain = "A classic network of sixteen layers, very wide at its end: its gradient has 134 million numbers."
    hint = "Needs about 4 GB of memory and seconds per step without a GPU. With fewer units at its end it needs less."
    source = "https://arxiv.org/abs/1409.1556"
    smallest = 32

    units: int = param(4096, 16, 4096, "Units in each of the two hidden linear layers. The paper uses 4096.")
    normalise: str = normalise_field("imagenet")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        from torchvision.models import vgg16  # imported here, because the import takes two seconds

        with torch.device("meta"):  # allocates no memory and draws no weights; they are drawn once, below
            net = vgg16(weights=None, init_weights=False)
            for index, before, after in ((0, 512 * 7 * 7, self.units), (3, self.units, self.units), (6, self.units, num_classes)):
                net.classifier[index] = nn.Linear(before, after)
        net.to_empty(device=torch.get_default_device())
        for layer in net.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, 0, 0.01)
            if isinstance(layer, nn.Conv2d | nn.Linear) and layer.bias is not None:
                nn.init.zeros_(layer.bias)
        layers = OrderedDict(normalisation(self.normalise, image_shape[0]))
        if image_shape[0] == 1:
            layers["colour"] = Colour()  # (B, 3, H, W)
        layers["net"] = net
        return nn.Sequential(layers)
