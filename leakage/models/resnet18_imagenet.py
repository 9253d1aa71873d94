"""ResNet-18 for large pictures, torchvision's."""

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

from torch import nn

from leakage.engine.core import Model, choice
from leakage.models._layers import NORM_HELP, NORMS, normalising
from leakage.models._parts import Colour, normalisation, normalise_field


@dataclass(frozen=True, kw_only=True)
class ResNet18ImageNet(Model):
    """conv 7@64 /2 - max-pool 3 /2 - four stages of two residual blocks with 64, 128, 256, 512 filters - global average - linear.

    11,689,512 parameters for 1000 classes, 11,181,642 for 10. Made for 224 pixels, where the last stage has 7x7 positions; at 32 pixels it
    has one. Weights as torchvision draws them (normal, Kaiming's fan-out). A grey picture enters three times, as red, green and blue.
    Source: He et al. 2016, table 1; Geiping et al. 2020 attack it on ImageNet.
    """

    title = "Deep network with skips for photographs (ResNet-18)"
    short = "ResNet-18"
    plain = "The standard network for photographs of 224 pixels: it halves the picture twice before the first block."
    hint = "Choose 224 px. Its early halving and global average throw detail away; compare it with the ResNet for small pictures."
    source = "https://arxiv.org/abs/1512.03385"
    smallest_alone = 33  # 32 pixels, halved five times, are one position
    structure = ("linear",)  # torchvision's network is no plain sequence

    norm: str = choice("batch", NORMS, NORM_HELP)
    normalise: str = normalise_field("imagenet")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        from torchvision.models import resnet18  # imported here, because the import takes two seconds

        layers = OrderedDict(normalisation(self.normalise, image_shape[0]))
        if image_shape[0] == 1:
            layers["colour"] = Colour()  # (B, 3, H, W)
        layers["net"] = resnet18(weights=None, num_classes=num_classes, norm_layer=partial(normalising, self.norm))
        return nn.Sequential(layers)
