"""Layers with cheap second derivatives, for gradient-matching attacks. Their outputs equal those of torch.nn."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.chain_layer import Residual
from leakage.models._parts import ACTIVATIONS

SMALL = 20_000  # a convolution that reads at most this many numbers (with repetitions) is 1.4 times as fast as a matrix product
PADDINGS = ("zeros", "circular")
PADDING_HELP = "What lies beyond the edges of a picture: black (zeros), or the picture again (circular), so that no position is special."
NORMS = ("batch", "group", "none")
NORM_HELP = "What follows every convolution: BatchNorm mixes the pictures of a batch, GroupNorm treats each alone, none changes nothing."
GROUPS = (32, 16, 8, 4, 2)  # possible numbers of groups in GroupNorm; each group has at least MEMBERS channels
MEMBERS = 4


class Conv2d(nn.Conv2d):
    """A convolution with square filters and one group; computed as a single matrix product if it is small."""

    def forward(self, x: Tensor) -> Tensor:
        return self.convolve(x, self.weight, self.bias)

    def convolve(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute this convolution of x (B, C, H, W) with another weight (O, C, size, size) and bias (O,)."""
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

    If BatchNorm uses its stored statistics (eval mode), both are computed as one convolution with scaled weights.
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
        watched = bool(norm._forward_pre_hooks)  # a hook reads the input of the norm
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
    """The kind of a network's convolutions and activations, by the values of the model's fields."""

    activation: str
    norm: str
    padding: str
    bias: bool = False
    """Whether every convolution has a bias."""

    def activation_layer(self) -> nn.Module:
        return ACTIVATIONS[self.activation]()

    def conv(self, before: int, after: int, size: int, stride: int = 1) -> ConvNorm:
        """Make a convolution from `before` to `after` channels, with kernels of size x size, and its norm.

        It keeps height and width, divided by the stride.
        """
        mode: Literal["zeros", "circular"] = "circular" if self.padding == "circular" else "zeros"
        return ConvNorm(before, after, size, stride=stride, padding=size // 2, padding_mode=mode, bias=self.bias, norm=self.norm)


class ResidualBlock(Residual):
    """A residual block.

    It has two convolutions of size 3 with `inner` filters. A bottleneck has three convolutions, of size 1, 3 and 1, and the last has four
    times as many filters. If the shape changes, the skip is a convolution of size 1.
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
    """Make a BatchNorm ("batch"), a GroupNorm ("group") or an identity ("none") for this number of channels."""
    if name == "batch":
        return nn.BatchNorm2d(channels)
    return nn.GroupNorm(groups_for(channels), channels) if name == "group" else nn.Identity()


def groups_for(channels: int) -> int:
    """Return the number of groups of GroupNorm: the largest power of 2, at most 32, that divides the channels into groups of 4 or more.

    Source: Wu and He 2018 (32 groups).
    """
    return next((groups for groups in GROUPS if channels % groups == 0 and channels // groups >= MEMBERS), 1)
