"""The untrained generator of CI-Net: random numbers in, pictures out; and the size that gives the generator more weights than a model."""

from dataclasses import dataclass, replace
from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import spectral_norm

CORE, WHOLE = 4, 32  # the side of the first layer's output, and the largest side that has all channels
LEAK = 0.1  # the factor of LeakyReLU below 0
MOST = 1e9  # bytes that a search for a generator's weights may take
OF_WEIGHT, OF_NUMBER = 7, 8  # numbers in memory for each weight (gradient, Adam's moments, ...) and for each number that is generated


@dataclass(frozen=True)
class GeneratorSize:
    """The size of a generator.

    inputs       how many random numbers it gets for each picture
    channels     the channels of its first blocks
    image_shape  (C, H, W) of the pictures that it generates
    """

    inputs: int
    channels: int
    image_shape: tuple[int, int, int]

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """The side and the channels of each block's output: all `channels` up to a side of 32, half of them at 64, a quarter beyond."""
        doublings = (max(CORE, *self.image_shape[1:]) - 1).bit_length() - 2
        sides = [CORE << j for j in range(doublings + 1)]
        return [(side, self.channels if side <= WHOLE else max(1, self.channels * WHOLE // min(side, 4 * WHOLE))) for side in sides]

    @property
    def widths(self) -> list[int]:
        """The channels of the first block's input, then of each block's output."""
        return [self.channels, *(width for _, width in self.blocks)]

    @property
    def weights(self) -> int:
        """The number of weights; 3 for each channel are a convolution's bias and the weight and bias of the BatchNorm behind it."""
        convolutions = sum(9 * (a + b) * b + 6 * b for a, b in pairwise(self.widths))
        return (16 * self.inputs + 3) * self.channels + convolutions + (self.widths[-1] + 1) * self.image_shape[0]

    def needed(self, batch: int) -> int:
        """Estimate the bytes that a search for the weights takes in single precision if the generator generates `batch` pictures."""
        generated = sum(width * side * side for side, width in self.blocks)
        return 4 * (OF_WEIGHT * self.weights + OF_NUMBER * batch * generated)

    def beyond(self, weights: int, *, batch: int) -> "GeneratorSize":
        """Return this size with `channels` doubled until it has more than `weights` weights, or until doubling again would exceed MOST."""
        size = self
        while size.weights <= weights and (larger := replace(size, channels=2 * size.channels)).needed(batch) <= MOST:
            size = larger
        return size


class UpsamplingGenerator(nn.Module):
    """The generator as a module: v (B, inputs) -> pictures (B, C, H, W) in [0, 1].

    v as (B, inputs, 1, 1) -> ConvTranspose(inputs, channels, 4) - BatchNorm - LeakyReLU -> a block -> doubling of the side by repetition
    and a block, until the side is large enough -> a 1 x 1 convolution to C channels -> sigmoid. A block is twice a 3 x 3 convolution (its
    weight divided by its spectral norm) - BatchNorm - LeakyReLU. BatchNorm always takes the statistics of its input, also of a single
    picture.
    Unlike the paper's code: sigmoid in place of tanh, which also gives pixels below black; if a side is no power of two, the picture is cut
    from a larger one.
    Source: Zhang et al. 2023, figure 4, and their code.
    """

    def __init__(self, size: GeneratorSize) -> None:
        super().__init__()
        self.size = size
        self.first = nn.Sequential(nn.ConvTranspose2d(size.inputs, size.channels, CORE), _norm(size.channels), nn.LeakyReLU(LEAK))
        self.blocks = nn.ModuleList(_block(a, b) for a, b in pairwise(size.widths))
        self.last = nn.Conv2d(size.widths[-1], size.image_shape[0], 1)

    def forward(self, v: Tensor) -> Tensor:
        h = self.blocks[0](self.first(v[..., None, None]))  # (B, channels, 4, 4)
        for block in self.blocks[1:]:
            h = block(F.interpolate(h, scale_factor=2))
        generated: Tensor = self.last(h).sigmoid()  # (B, C, S, S)
        _, height, width = self.size.image_shape
        top, left = (generated.shape[2] - height) // 2, (generated.shape[3] - width) // 2
        return generated[..., top : top + height, left : left + width]


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, track_running_stats=False)


def _block(inputs: int, outputs: int) -> nn.Sequential:
    """Build a block that maps (B, inputs, S, S) to (B, outputs, S, S)."""
    layers: list[nn.Module] = []
    for a, b in ((inputs, outputs), (outputs, outputs)):
        layers += [spectral_norm(nn.Conv2d(a, b, 3, padding=1)), _norm(b), nn.LeakyReLU(LEAK)]
    return nn.Sequential(*layers)
