"""Layers that are cheap to differentiate twice, as every gradient-matching attack does. Their numbers are those of torch.nn's."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

SMALL = 2**15  # a convolution that reads at most so many numbers, repetitions counted, is 1.4 times as fast as one matrix product


class Conv2d(nn.Conv2d):
    """A convolution with square filters, one group, and zeros around the picture; a single matrix product where it is small."""

    def forward(self, x: Tensor) -> Tensor:
        size, step, edge = self.kernel_size[0], self.stride[0], int(self.padding[0])
        height, width = ((side + 2 * edge - size) // step + 1 for side in x.shape[2:])
        if self.weight[0].numel() * height * width * x.shape[0] > SMALL:
            out: Tensor = _Convolution.apply(x, self.weight, self.bias, step, edge)
            return out
        columns = F.unfold(x, size, padding=edge, stride=step)  # (B, C * size^2, height * width)
        out = self.weight.flatten(1) @ columns
        out = out if self.bias is None else out + self.bias.unsqueeze(1)
        return out.view(x.shape[0], self.out_channels, height, width)


class _Convolution(Function):
    """A convolution whose slopes of the picture and of the weight are two operations.

    torch.nn has them as one, whose own derivative then holds that of the weight even where nobody asked for it.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, step: int, edge: int) -> Tensor:
        return F.conv2d(x, weight, bias, step, edge)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, weight, _, ctx.step, ctx.edge = inputs
        ctx.save_for_backward(x, weight)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Any, ...]:
        (x, weight), step, edge, need = ctx.saved_tensors, ctx.step, ctx.edge, ctx.needs_input_grad
        of_x = None
        if need[0]:
            size = weight.shape[2]
            rest = [(side + 2 * edge - size) % step for side in x.shape[2:]]  # columns and rows that no filter reached
            of_x = F.conv_transpose2d(slope, weight, None, step, edge, rest)
        _, of_weight, of_bias = torch.ops.aten.convolution_backward(
            slope, x, weight, [len(weight)], [step, step], [edge, edge], [1, 1], False, [0, 0], 1, [False, need[1], need[2]]
        )
        return of_x, of_weight, of_bias, None, None


class BatchNorm(nn.BatchNorm2d):
    """BatchNorm whose eval mode is plain arithmetic, x * scale + shift: its second derivative is far cheaper than the built-in one's."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return super().forward(x)
        assert self.running_mean is not None
        assert self.running_var is not None
        scale = self.weight * (self.running_var + self.eps).rsqrt()  # (C,)
        shift = self.bias - self.running_mean * scale  # (C,)
        return x * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1)
