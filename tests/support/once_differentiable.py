"""An operation whose derivative cannot be differentiated."""

from typing import Any

import torch
from torch import Tensor


class Once(torch.autograd.Function):
    """x^2, whose derivative cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return 2 * ctx.saved_tensors[0] * grad_output
