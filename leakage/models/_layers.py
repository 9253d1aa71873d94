"""Layers that are cheap to differentiate twice, as every gradient-matching attack does. Their numbers are those of torch.nn's."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.chain_layer import Residual
from leakage.models._parts import ACTIVATIONS

SMALL = 20_000  # a convolution that reads at most so many numbers, repetitions counted, is 1.4 times as fast as one matrix product
PADDINGS = ("zeros", "circular")
PADDING_HELP = "What lies beyond the edges of a picture: black (zeros), or the picture again (circular), so that no place is special."
NORMS = ("batch", "group", "none")
NORM_HELP = "What follows every convolution: BatchNorm mixes the pictures of a batch, GroupNorm treats each alone, none changes nothing."
GROUPS = (32, 16, 8, 4, 2)  # of GroupNorm: the most that leave at least MEMBERS channels in each
MEMBERS = 4


class Conv2d(nn.Conv2d):
    """A convolution with square filters and one group, zeros or the picture itself around it; a single matrix product where it is small."""

    def forward(self, x: Tensor) -> Tensor:
        return self.convolve(x, self.weight, self.bias)

    def convolve(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """This convolution, with any weight (O, C, size, size) and bias (O,)."""
        size, step, edge = self.kernel_size[0], self.stride[0], int(self.padding[0])
        if edge and self.padding_mode == "circular":
            x, edge = F.pad(x, (edge, edge, edge, edge), mode="circular"), 0
        height, width = ((side + 2 * edge - size) // step + 1 for side in x.shape[2:])
        if weight[0].numel() * height * width * x.shape[0] > SMALL:
            return F.conv2d(x, weight, bias, step, edge)
        columns = F.unfold(x, size, padding=edge, stride=step)  # (B, C * size^2, height * width)
        out = weight.flatten(1) @ columns
        out = out if bias is None else out + bias.unsqueeze(1)
        return out.view(x.shape[0], -1, height, width)


class ConvNorm(Conv2d):
    """A convolution followed by its child `norm`: BatchNorm, GroupNorm, or nothing.

    Where BatchNorm uses its stored statistics (eval mode) both are one convolution, with scaled weights.
    """

    def __init__(  # noqa: PLR0913  (as torch.nn.Conv2d)
        self,
        before: int,
        after: int,
        size: int,
        *,
        stride: int = 1,
        padding: int = 0,
        padding_mode: Literal["zeros", "circular"] = "zeros",
        bias: bool = True,
        norm: str = "batch",
    ) -> None:
        super().__init__(before, after, size, stride=stride, padding=padding, padding_mode=padding_mode, bias=bias)
        self.norm = normalising(norm, after)

    def forward(self, x: Tensor) -> Tensor:
        norm = self.norm
        watched = bool(norm._forward_pre_hooks)  # somebody wants to see what enters the norm
        if watched or norm.training or not isinstance(norm, nn.BatchNorm2d):
            out: Tensor = norm(super().forward(x))
            return out
        assert norm.running_mean is not None
        assert norm.running_var is not None
        scale = norm.weight * (norm.running_var + norm.eps).rsqrt()  # (O,)
        mean = norm.running_mean if self.bias is None else norm.running_mean - self.bias
        return self.convolve(x, self.weight * scale.view(-1, 1, 1, 1), norm.bias - mean * scale)


@dataclass(frozen=True)
class Style:
    """How a network's convolutions and activations are made: the words of its fields. bias: whether every convolution has one."""

    activation: str
    norm: str
    padding: str
    bias: bool = False

    def activation_layer(self) -> nn.Module:
        return ACTIVATIONS[self.activation]()

    def conv(self, before: int, after: int, size: int, stride: int = 1) -> ConvNorm:
        """A convolution that keeps height and width (but for the stride), with its norm."""
        mode: Literal["zeros", "circular"] = "circular" if self.padding == "circular" else "zeros"
        return ConvNorm(before, after, size, stride=stride, padding=size // 2, padding_mode=mode, bias=self.bias, norm=self.norm)


class ResidualBlock(Residual):
    """A residual block as the networks have it.

    Two convolutions of size 3 with `inner` filters; a bottleneck has three, of size 1, 3 and 1, the last with four times as many. Where
    the shape changes the skip is a convolution of size 1.
    """

    def __init__(self, style: Style, before: int, inner: int, stride: int, *, bottleneck: bool, skip: bool) -> None:
        super().__init__()
        self.width = 4 * inner if bottleneck else inner
        if bottleneck:
            steps = [(before, inner, 1, 1), (inner, inner, 3, stride), (inner, self.width, 1, 1)]
        else:
            steps = [(before, inner, 3, stride), (inner, inner, 3, 1)]
        parts = [part for step in steps for part in (style.conv(*step), style.activation_layer())]
        self.body = nn.Sequential(*parts[:-1])
        self.skip = None
        if skip:
            self.skip = nn.Identity() if stride == 1 and before == self.width else style.conv(before, self.width, 1, stride)
        self.activation = style.activation_layer()


def normalising(name: str, channels: int) -> nn.Module:
    """BatchNorm, GroupNorm or nothing, for so many channels."""
    if name == "batch":
        return nn.BatchNorm2d(channels)
    return nn.GroupNorm(groups_for(channels), channels) if name == "group" else nn.Identity()


def groups_for(channels: int) -> int:
    """Groups of GroupNorm: 32 (Wu and He 2018), else the highest lower power of 2 that divides the channels into groups of at least 4."""
    return next((groups for groups in GROUPS if channels % groups == 0 and channels // groups >= MEMBERS), 1)
