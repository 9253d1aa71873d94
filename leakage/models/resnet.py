"""Residual networks for small pictures, with a variable width and removable skips."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from leakage.engine.chain_layer import GlobalMean
from leakage.engine.core import Model, choice, param
from leakage.models._layers import NORM_HELP, NORMS, PADDING_HELP, PADDINGS, ConvNorm, ResidualBlock, Style
from leakage.models._parts import activation_field, normalisation, normalise_field

STAGES = {  # name -> blocks per stage, whether they are bottlenecks
    "resnet18": ((2, 2, 2, 2), False),
    "resnet34": ((3, 4, 6, 3), False),
    "resnet50": ((3, 4, 6, 3), True),
    "resnet101": ((3, 4, 23, 3), True),
    "resnet20-4": ((3, 3, 3), False),
    "resnet32-10": ((5, 5, 5), False),
}


@dataclass(frozen=True, kw_only=True)
class ResNet(Model):
    """conv 3 - stages of residual blocks, each stage twice as wide and (from the second on) half as large - global average - linear.

    A basic block is conv 3 - conv 3, a bottleneck conv 1 - conv 3 - conv 1 with four times as many filters at its end. Every convolution
    has no bias and is followed by BatchNorm (or GroupNorm, or nothing). If the shape changes, the skip is a convolution of size 1.
    Weights are normal, Kaiming's fan-out. GroupNorm has at most 32 groups of at least 4 channels.
    Millions of parameters, 10 classes: ResNet18 of width 16, 64 and 128 has 0.70, 11.17 and 44.66, ResNet34 21.28, ResNet50 23.52,
    ResNet20-4 (width 64) 4.33; ResNet32-10 (width 160, 100 classes) 46.4; ResNet101 of width 16 2.68.
    Source: He et al. 2016; Geiping et al. 2020, their code; cut skips: Zhu and Blaschko 2021, figure 4.
    """

    title = "Deep network with skips (ResNet)"
    short = "ResNet"
    plain = "The kind of deep network used in practice: every few layers a skip carries the picture's features past them."
    hint = "A wider network leaks more. Cut a skip (block 3 or 8 of ResNet18) to see how much the skips help the attacker."
    source = "https://arxiv.org/abs/2003.14053"
    presets = {
        "ResNet20-4 (Geiping et al. 2020)": {"kind": "resnet20-4", "width": 64},
        "ResNet32-10 (Geiping et al. 2020)": {"kind": "resnet32-10", "width": 160},
        "skip of block 3 cut (Zhu and Blaschko 2021)": {"cut": 3, "normalise": "none"},
        "skip of block 8 cut (Zhu and Blaschko 2021)": {"cut": 8, "normalise": "none"},
    }

    kind: str = choice("resnet18", tuple(STAGES), "The variant, which sets how many blocks each stage has.")
    width: int = param(16, 4, 160, "Filters of the first stage; each stage after it has twice as many.")
    cut: int = param(0, 0, 33, "The block that loses its skip, counted from 1; 0 cuts none.")
    activation: str = activation_field("relu")
    norm: str = choice("batch", NORMS, NORM_HELP)
    padding: str = choice("zeros", PADDINGS, PADDING_HELP)
    normalise: str = normalise_field("cifar10")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        stages, bottleneck = STAGES[self.kind]
        channels = image_shape[0]
        style = Style(self.activation, self.norm, self.padding)
        layers = OrderedDict(normalisation(self.normalise, channels))
        layers["stem"] = nn.Sequential(style.conv(channels, self.width, 3), style.activation_layer())
        before, number = self.width, 0
        for stage, blocks in enumerate(stages):
            inner = self.width * 2**stage
            for index in range(blocks):
                number += 1
                stride = 2 if stage and not index else 1
                block = ResidualBlock(style, before, inner, stride, bottleneck=bottleneck, skip=number != self.cut)
                layers[f"block{number}"] = block
                before = block.width
        layers["pool"] = GlobalMean()  # (B, filters of the last stage)
        layers["linear"] = nn.Linear(before, num_classes)
        net = nn.Sequential(layers)
        for layer in net.modules():
            if isinstance(layer, ConvNorm):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        return net
