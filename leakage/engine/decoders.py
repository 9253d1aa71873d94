"""The networks of trained generators, as sequences of stages, from a latent code to a picture."""

from collections.abc import Callable
from itertools import pairwise

from torch import Tensor, nn

WIDTHS = (128, 64, 32)  # channels of the digits' decoder between its stages
DIGITS = (1, 28, 28)  # (C, H, W) of a digit
DIGITS_LATENT = 32  # entries of the latent code of the digits' decoder


def digit_decoder(latent: int) -> nn.Sequential:
    """Return the untrained decoder of a VAE for digits: latent code z (B, latent) -> pictures (B, 1, 28, 28) in [0, 1].

    The outputs of its stages are (B, 128, 4, 4), (B, 64, 7, 7), (B, 32, 14, 14) and the pictures.
    """
    first, second, third = WIDTHS
    return nn.Sequential(
        nn.Sequential(nn.Linear(latent, 16 * first), nn.Unflatten(1, (first, 4, 4)), nn.BatchNorm2d(first), nn.SiLU()),
        nn.Sequential(nn.ConvTranspose2d(first, second, 3, 2, 1), nn.BatchNorm2d(second), nn.SiLU()),
        nn.Sequential(nn.ConvTranspose2d(second, third, 4, 2, 1), nn.BatchNorm2d(third), nn.SiLU()),
        nn.Sequential(nn.ConvTranspose2d(third, 1, 4, 2, 1), nn.Sigmoid()),
    )


def face_generator(latent: int) -> nn.Sequential:
    """Return the untrained generator of a DCGAN for faces: latent code z (B, latent) -> pictures (B, 3, 64, 64) in [0, 1].

    The outputs of its stages are (B, 512, 4, 4), (B, 256, 8, 8), (B, 128, 16, 16), (B, 64, 32, 32) and the pictures.
    Source: Radford et al. 2016, figure 1, with half as many channels.
    """
    widths = (512, 256, 128, 64)

    def stage(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())

    first = nn.ConvTranspose2d(latent, widths[0], 4, bias=False)
    last = nn.ConvTranspose2d(widths[-1], 3, 4, 2, 1, bias=False)
    return nn.Sequential(
        nn.Sequential(nn.Unflatten(1, (latent, 1, 1)), first, nn.BatchNorm2d(widths[0]), nn.ReLU()),
        *(stage(a, b) for a, b in pairwise(widths)),
        nn.Sequential(last, UnitTanh()),
    )


class UnitTanh(nn.Module):
    """(1 + tanh(h)) / 2: maps the output of a generator that was trained for pixels in [-1, 1] to [0, 1]."""

    def forward(self, h: Tensor) -> Tensor:
        return (1 + h.tanh()) / 2


DECODERS: dict[str, Callable[[int], nn.Sequential]] = {"digits": digit_decoder, "faces": face_generator}  # by the name in a card
