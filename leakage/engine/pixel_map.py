"""The map from pixels to the input of a layer: found by probes, and inverted where every input entry is a scaled pixel."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from leakage.engine.computation import reached
from leakage.engine.core import generator

BASE = 256  # the index of a pixel is written as digits of this base, each a shade of grey
DRAWN = 3  # random pictures in each of two batches; the map must predict their outputs


@dataclass(frozen=True)
class PixelMap:
    """The map h = gain * x[pixel] + offset from pixels x (N,) to the input h (n,) of a layer, in float64."""

    gain: Tensor
    """(n,); 0 where an entry of h depends on no pixel."""
    offset: Tensor
    """(n,)."""
    pixel: Tensor
    """The index in x of every entry of h, (n,); without meaning where `gain` is 0."""
    best: Tensor
    """The index in h of the entry with the largest gain, for every pixel, (N,)."""

    @property
    def is_raw(self) -> bool:
        """Whether pixels enter unchanged."""
        return bool((self.offset == 0).all() and (self.gain == 1).all())

    def pixels(self, h: Tensor) -> Tensor:
        """Return the pixels (..., N) of which h (..., n) is the layer's input, in float64."""
        back: Tensor = (h[..., self.best] - self.offset[self.best]) / self.gain[self.best]
        return back

    def inputs(self, x: Tensor) -> Tensor:
        """Return the layer's input (..., n) for pixels x (..., N)."""
        return self.gain * x[..., self.pixel] + self.offset


def pixel_map(model: nn.Module, number: int, image_shape: tuple[int, int, int]) -> PixelMap | None:
    """Find the map from pixels to a value of the model's computation.

    Outputs for a black picture, a white picture and pictures of index digits give offset, gain and index. Two batches of random pictures
    then test the map: it fails where the model normalises by the statistics of the batch or of the picture.

    Args:
        model: the model.
        number: the number of the value in the model's computation, as `computation.reached` takes it.
        image_shape: (C, H, W) of a picture.

    Returns:
        The map; None where an entry of the value is not a scaled pixel plus an offset, or a pixel enters no entry.
    """
    like, count = next(model.parameters()), torch.Size(image_shape).numel()
    digits = [torch.arange(count) // BASE**power % BASE for power in range(3) if BASE**power < count]
    rng = generator(0, "pixel map")
    drawn = torch.rand((2 * DRAWN, count), generator=rng, dtype=torch.float64)
    drawn[DRAWN:] *= 0.3 + 0.2 * torch.arange(DRAWN).view(-1, 1)  # the second batch is darker
    plain = torch.stack([torch.zeros(count), torch.ones(count), *(digit / (BASE - 1) for digit in digits)]).double()
    try:
        with torch.no_grad():
            first, second = (
                reached(model, number, pictures.view(-1, *image_shape).to(like)).cpu().double()
                for pictures in (torch.cat([plain, drawn[:DRAWN]]), drawn[DRAWN:])
            )
    except (RuntimeError, ValueError, IndexError, TypeError):  # the model takes no batch of this size
        return None
    if (
        min(first.dim(), second.dim()) < 2
        or first.flatten(1).shape[1] < count
        or len(first) != len(plain) + DRAWN
        or len(second) != DRAWN
        or not first.isfinite().all()
    ):
        return None
    h = first.flatten(1)
    offset, gain = h[0], h[1] - h[0]
    exact = float(torch.finfo(like.dtype).eps) ** 0.5
    alive = gain.abs() > exact * gain.abs().max().clamp(min=torch.finfo(torch.float64).tiny)
    gain = gain.where(alive, torch.zeros_like(gain))
    safe = gain.where(alive, torch.ones_like(gain))
    shades = [((h[2 + power] - offset) / safe * (BASE - 1)).round().long() for power in range(len(digits))]
    pixel = torch.stack([shade * BASE**power for power, shade in enumerate(shades)]).sum(0).where(alive, torch.zeros_like(shades[0]))
    if int(pixel.min()) < 0 or int(pixel.max()) >= count:
        return None
    best = _best(pixel[alive], gain[alive].abs(), alive.nonzero().flatten(), count)
    if best is None:
        return None
    found = PixelMap(gain, offset, pixel, best)
    pictures = torch.cat([plain, drawn])
    outputs = torch.cat([h, second.flatten(1)])
    allowed = exact * (gain.abs() + offset.abs())
    return found if bool(((found.inputs(pictures) - outputs).abs() <= allowed).all()) else None


def _best(pixel: Tensor, gain: Tensor, index: Tensor, count: int) -> Tensor | None:
    """Return for each of `count` pixels the index of the entry with the largest gain; None where a pixel enters no entry.

    Args:
        pixel: the pixel of each entry, (n,).
        gain: the gain of each entry, (n,).
        index: the index of each entry in the layer's input, (n,).
        count: number of pixels.
    """
    order = np.argsort(gain.numpy(), kind="stable")
    best = np.full(count, -1)
    best[pixel.numpy()[order]] = index.numpy()[order]  # the assignment keeps the last of several, which has the largest gain
    return None if (best < 0).any() else torch.from_numpy(best)
