"""What one gradient and one output say about a convolution's input, as linear equations (Zhu and Blaschko 2021, equations 6 to 9).

A convolution z = w * x has Co filters w (Co, Ci, s, s), an input x (Ci, H, W) and an output z (Co, Ho, Wo); k = dL/dz. Unknown is x without
its padding, which is known to be 0. Two kinds of equations are linear in x:

gradient   dL/dw[o, c] = sum over positions of k[o] x[c]: the same matrix K0 for every input channel
weight     z = w * x
"""

import torch
from torch import Tensor


def gradient_rows(k: Tensor, size: int, stride: int, padding: int, sides: tuple[int, int]) -> Tensor:
    """K0 (Co s^2, H W): K0 @ x[c].flatten() = (dL/dw[:, c]).flatten(), for every input channel c. k: (Co, Ho, Wo)."""
    places, pixels, inside = _reach(size, stride, padding, (k.shape[1], k.shape[2]), sides)
    rows = k.new_zeros(len(k), size**2, sides[0] * sides[1])
    flat = k.flatten(1)
    for offset in range(size**2):
        here = inside[offset]
        rows[:, offset, pixels[offset, here]] = flat[:, places[here]]
    return rows.flatten(0, 1)


def weight_rows(w: Tensor, stride: int, padding: int, sides: tuple[int, int]) -> Tensor:
    """W (Co Ho Wo, Ci H W): W @ x.flatten() = z.flatten(). w: (Co, Ci, s, s)."""
    size = w.shape[-1]
    after = ((sides[0] + 2 * padding - size) // stride + 1, (sides[1] + 2 * padding - size) // stride + 1)
    places, pixels, inside = _reach(size, stride, padding, after, sides)
    rows = w.new_zeros(len(w), len(places), w.shape[1], sides[0] * sides[1])
    kernel = w.flatten(2)  # (Co, Ci, s^2)
    for offset in range(size**2):
        here = inside[offset]
        rows[:, places[here], :, pixels[offset, here]] = kernel[:, :, offset]
    return rows.flatten(2).flatten(0, 1)


def _reach(size: int, stride: int, padding: int, after: tuple[int, int], sides: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """Output places (L,), and for every place of the kernel the pixel that it meets (s^2, L) and whether that is no padding (s^2, L)."""
    down, across = torch.meshgrid(torch.arange(after[0]), torch.arange(after[1]), indexing="ij")
    u, v = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    row = down.reshape(1, -1) * stride + u.reshape(-1, 1) - padding
    column = across.reshape(1, -1) * stride + v.reshape(-1, 1) - padding
    inside = (row >= 0) & (row < sides[0]) & (column >= 0) & (column < sides[1])
    return torch.arange(after[0] * after[1]), row * sides[1] + column, inside
