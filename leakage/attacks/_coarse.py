"""Coarse to fine: a search begins with pictures of half the height and width, enlarged smoothly, and ends with every pixel by itself."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.engine.vjp import vjp


@dataclass(frozen=True)
class HalfSize:
    """Pictures (..., H, W) as bilinear enlargements of pictures with half the sides, rounded up.

    shape    of the pictures, (..., H, W)
    """

    shape: torch.Size

    def reduce(self, z: Tensor) -> Tensor:
        """Return every second pixel of pictures (..., H, W) in both directions, so that noise stays noise of the same size."""
        return z[..., ::2, ::2].contiguous()

    def enlarge(self, small: Tensor) -> Tensor:
        """Return pictures (..., H, W) from pictures of half the sides.

        >>> HalfSize(torch.Size([1, 1, 3, 4])).enlarge(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 3, 4])
        """
        whole = F.interpolate(small.flatten(0, -4), size=self.shape[-2:], mode="bilinear", align_corners=False)
        return whole.reshape(self.shape)

    def pull_back(self, gradient: Tensor) -> Tensor:
        """Return the derivative by the small pictures, from the derivative by the enlarged pictures (..., H, W)."""
        small = self.reduce(torch.zeros_like(gradient)).requires_grad_()
        with torch.enable_grad():
            (found,) = vjp([self.enlarge(small)], [small], [gradient])
        return found
