"""The untrained generator of GRNN: random numbers in, pictures and labels out; its weights are what the attack searches."""

from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, SMALLEST = 32, 8  # channels before the last block (d), and the smallest side that it generates


class GatedGenerator(nn.Module):
    """The generator as a module: v (B, inputs) -> pictures (B, C, H, W) in [0, 1], and class probabilities softmax(Linear(v)) (B, K).

    v as (B, inputs, 1, 1) -> ConvTranspose(inputs, 2 d 2^b, 4) + GLU -> b blocks, each of half the channels of the last and twice its side
    -> a block to C channels -> sigmoid, with b = log2(S) - 3 and d = 32. BatchNorm always takes the statistics of its input,
    also of a single picture.
    Unlike the paper: S is the smallest power of two that is at least 8, H and W, and the picture is cut from the middle of S x S pixels.
    Source: Ren et al. 2022, figure 2, and their code.
    """

    def __init__(self, inputs: int, image_shape: tuple[int, int, int], num_classes: int) -> None:
        super().__init__()
        self.sides = image_shape[1:]
        doublings = (max(SMALLEST, *self.sides) - 1).bit_length() - 3
        widths = [WIDTH * 2**j for j in range(doublings, -1, -1)]
        self.first = nn.ConvTranspose2d(inputs, 2 * widths[0], 4)
        self.blocks = nn.Sequential(*(GatedBlock(a, b) for a, b in zip(widths, [*widths[1:], image_shape[0]], strict=True)))
        self.label = nn.Linear(inputs, num_classes)

    def forward(self, v: Tensor) -> tuple[Tensor, Tensor]:
        generated = self.blocks(F.glu(self.first(v[..., None, None]), 1)).sigmoid()  # (B, C, S, S)
        height, width = self.sides
        top, left = (generated.shape[2] - height) // 2, (generated.shape[3] - width) // 2
        return generated[..., top : top + height, left : left + width], self.label(v).softmax(1)


class GatedBlock(nn.Module):
    """A block that repeats every pixel, then a 3 x 3 convolution, BatchNorm, GLU: (B, inputs, S, S) -> (B, outputs, 2 S, 2 S)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, 2 * outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(2 * outputs, track_running_stats=False)

    def forward(self, h: Tensor) -> Tensor:
        return F.glu(self.norm(self.conv(F.interpolate(h, scale_factor=2))), 1)
