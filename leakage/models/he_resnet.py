"""He's residual networks for CIFAR; their skips have no weights."""

from collections import OrderedDict
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.chain_layer import GlobalMean
from leakage.engine.core import Model, choice
from leakage.models._layers import NORM_HELP, NORMS, PADDING_HELP, PADDINGS, ConvNorm, Style
from leakage.models._parts import activation_field, normalisation, normalise_field

DEPTHS = {"resnet20": 3, "resnet32": 5}  # blocks per stage


@dataclass(frozen=True, kw_only=True)
class HeResNet(Model):
    """conv 3@16 - three stages of residual blocks with 16, 32 and 64 filters - global average - linear.

    A block is conv 3 - conv 3 without biases, each followed by BatchNorm (or GroupNorm, or nothing). At the beginning of a stage the skip
    takes every second pixel and adds zero channels (option A). Weights are normal, Kaiming's fan-in. ResNet-20 has 269,722 parameters
    (10 classes), ResNet-32 has 464,154.
    Source: He et al. 2016, section 4.2.
    """

    title = "Deep network with skips and few filters (ResNet-20 / ResNet-32)"
    short = "ResNet-20 / ResNet-32"
    plain = "The classic deep network for 32-pixel pictures: 20 or 32 layers with skips that carry features past them."
    hint = "Small filters, many layers: hard for the attacker. Compare it with the wide ResNet."
    source = "https://arxiv.org/abs/1512.03385"

    kind: str = choice("resnet20", tuple(DEPTHS), "The variant, by its number of layers.")
    activation: str = activation_field("relu")
    norm: str = choice("batch", NORMS, NORM_HELP)
    padding: str = choice("zeros", PADDINGS, PADDING_HELP)
    normalise: str = normalise_field("cifar10")

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        style = Style(self.activation, self.norm, self.padding)
        layers = OrderedDict(normalisation(self.normalise, image_shape[0]))
        layers["stem"] = nn.Sequential(style.conv(image_shape[0], 16, 3), style.activation_layer())
        before = 16
        for stage, after in enumerate((16, 32, 64), 1):
            for index in range(1, DEPTHS[self.kind] + 1):
                layers[f"block{stage}-{index}"] = _Block(style, before, after)
                before = after
        layers["pool"] = GlobalMean()  # (B, 64)
        layers["linear"] = nn.Linear(64, num_classes)
        net = nn.Sequential(layers)
        for layer in net.modules():
            if isinstance(layer, ConvNorm | nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
        return net


class _Block(nn.Module):
    """The block activation(conv(activation(conv(x))) + x); x is subsampled and padded with zero channels if the shape changes."""

    def __init__(self, style: Style, before: int, after: int) -> None:
        super().__init__()
        self.stride, self.more = (1, 0) if before == after else (2, after - before)
        self.body = nn.Sequential(style.conv(before, after, 3, self.stride), style.activation_layer(), style.conv(after, after, 3))
        self.activation = style.activation_layer()

    def forward(self, x: Tensor) -> Tensor:
        skip = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.more // 2, self.more // 2))
        activated: Tensor = self.activation(self.body(x) + skip)
        return activated
