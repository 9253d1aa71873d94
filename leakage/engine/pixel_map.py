"""What the pixels become on their way into a layer: found by probes, and undone where every number there is one pixel, scaled."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from leakage.engine.computation import reached
from leakage.engine.core import generator

BASE = 256  # the place of a pixel is read as digits of this base, each a shade of grey
DRAWN = 3  # random pictures that must come out as foreseen, alone and beside others


@dataclass(frozen=True)
class PixelMap:
    """h = gain * x[pixel] + offset: the numbers h (n,) that enter a layer, each of them one pixel of x (N,), scaled; in float64.

    pixel  (n,); where gain is 0 the number says nothing of any pixel
    best   (N,): for every pixel the number that says most of it
    """

    gain: Tensor
    offset: Tensor
    pixel: Tensor
    best: Tensor

    @property
    def is_raw(self) -> bool:
        """Whether pixels enter as they are."""
        return bool((self.offset == 0).all() and (self.gain == 1).all())

    def pixels(self, h: Tensor) -> Tensor:
        """The pixels (..., N) that send h (..., n), in float64."""
        back: Tensor = (h[..., self.best] - self.offset[self.best]) / self.gain[self.best]
        return back

    def inputs(self, x: Tensor) -> Tensor:
        """What pixels x (..., N) send: (..., n)."""
        return self.gain * x[..., self.pixel] + self.offset


def pixel_map(model: nn.Module, number: int, image_shape: tuple[int, int, int]) -> PixelMap | None:
    """How pixels make the value with this number of a model's computation; None where one of its numbers is no single pixel, scaled.

    Black, white and pictures of digits tell gain, offset and place. Random pictures have to come out as foreseen, also in a batch with
    others: that shows a normalization by the batch or by the picture's own mean.
    """
    like, count = next(model.parameters()), torch.Size(image_shape).numel()
    digits = [torch.arange(count) // BASE**power % BASE for power in range(3) if BASE**power < count]
    rng = generator(0, "pixel map")
    drawn = torch.rand((2 * DRAWN, count), generator=rng, dtype=torch.float64)
    drawn[DRAWN:] *= 0.3 + 0.2 * torch.arange(DRAWN).view(-1, 1)  # in the second batch darker ones
    plain = torch.stack([torch.zeros(count), torch.ones(count), *(digit / (BASE - 1) for digit in digits)]).double()
    try:
        with torch.no_grad():
            first, second = (
                reached(model, number, pictures.view(-1, *image_shape).to(like)).cpu().double()
                for pictures in (torch.cat([plain, drawn[:DRAWN]]), drawn[DRAWN:])
            )
    except (RuntimeError, ValueError, IndexError, TypeError):  # it takes no batch of this size
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
    given = torch.cat([plain, drawn])
    came = torch.cat([h, second.flatten(1)])
    allowed = exact * (gain.abs() + offset.abs())
    return found if bool(((found.inputs(given) - came).abs() <= allowed).all()) else None


def _best(pixel: Tensor, gain: Tensor, place: Tensor, count: int) -> Tensor | None:
    """For every one of `count` pixels the place with the largest gain; None where a pixel enters nowhere."""
    order = np.argsort(gain.numpy(), kind="stable")
    best = np.full(count, -1)
    best[pixel.numpy()[order]] = place.numpy()[order]  # of several the last is kept
    return None if (best < 0).any() else torch.from_numpy(best)
