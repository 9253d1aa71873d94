"""The rank of all that a gradient and an output say about a layer's input, without computing a matrix. No torch.

Counts of equations ignore that some follow from others. For a convolution with Co filters of k x k, Ci input channels and stride s the rank
for almost all weights and gradients has a closed form; K are the gradient equations and W the weight equations of `engine/equations.py`:

rank K       Ci times that of K0. A pixel meets only those places of the kernel that agree with it modulo s, so K0 falls into s^2 classes of
             pixels: the sum over them of min(Co * places, pixels)
rank W       min(|z|, |x|)
both         K and W share Co^2 directions, one for each pair (f, g) of filters:
             sum over c, u of w_g[c, u] K[f, c, u] = sum over positions of k_f W[g]
rank [K; W]  min(|x|, rank K + rank W - Co^2 - more), and no less than rank K or rank W; more counts what they share beyond that, which
             is 0 unless few directions of the pixels are left open by K: see `_shared_more`

Source: ours. The Co^2 directions are proved, `more` is a count. It was compared with the rank, modulo 2^31 - 1, of equations with random
numbers: equal for 1,714 random layers within the conditions of `predicted_rank`, which were chosen where few directions are left open,
and for 1,160 others. Outside these conditions it errs.
"""

from itertools import product
from typing import NamedTuple

from leakage.networks.grammar import Map


class Residue(NamedTuple):
    """The pixels t = 0 .. pixels - 1 of one residue modulo the stride, along one side: pixel t meets the outputs first + t - place.

    Places of the kernel are counted among those that these pixels meet; an output outside 0 .. outputs - 1 is none.
    """

    first: int
    places: int
    pixels: int


Class = tuple[Residue, Residue]


def predicted_rank(layer: Map) -> int | None:
    """Return the rank of a map's equations for one picture, at most |x|; None when no formula is known to hold.

    A linear layer gives all of x (one output whose derivative is not 0 suffices), pooling gives |z|. A convolution: the formula above
    where every pixel is met, s <= k < side of the output, Ci >= 2, and Co <= Ci (k - padding)^2 with k - padding >= 2 or no padding:
    else the equations of a corner depend on each other.
    """
    if layer.kind == "linear":
        return layer.inputs
    if layer.kind in ("mean", "max"):
        return layer.outputs
    (channels, *sides), (filters, *after) = layer.x, layer.z
    size, stride, padding = layer.size, layer.stride, layer.padding
    met = all(stride * (places - 1) + size - padding >= side for side, places in zip(sides, after, strict=True))
    corner = filters <= channels * (size - padding) ** 2 and (padding == 0 or size - padding >= 2)
    if not (met and corner and stride <= size < min(after) and channels >= 2):
        return None
    gradient = gradient_rank(layer)
    if gradient == layer.inputs:
        return gradient
    weight = min(layer.outputs, layer.inputs)
    return max(gradient, weight, min(layer.inputs, gradient + weight - filters**2 - _shared_more(layer)))


def gradient_rank(layer: Map) -> int:
    """Return rank K of a convolution for almost all gradients; the rank is never more than this."""
    return layer.x[0] * sum(count * min(layer.z[0] * _places(one), _pixels(one)) for one, count in _classes(layer).items())


def _classes(layer: Map) -> dict[Class, int]:
    """Return the class of pixels of each pair of residues modulo the stride, with the number of pairs that have an equal class."""
    height, width = layer.x[1:]
    every = list(product(_along(layer, height), _along(layer, width)))
    return {one: every.count(one) for one in every}


def _along(layer: Map, side: int) -> list[Residue]:
    """Return the pixels of each residue modulo the stride along one side."""
    starts = [divmod(residue + layer.padding, layer.stride) for residue in range(layer.stride)]
    return [
        Residue(first, len(range(start, layer.size, layer.stride)), len(range(residue, side, layer.stride)))
        for residue, (first, start) in enumerate(starts)
    ]


def _places(one: Class) -> int:
    return one[0].places * one[1].places


def _pixels(one: Class) -> int:
    return one[0].pixels * one[1].pixels


def _shared_more(layer: Map) -> int:
    """Count how many directions more than Co^2 are shared by K and W.

    A combination of weight equations, Co numbers at every position, is one of gradient equations if it is so in every class. A class and
    an input channel ask: sum over f and places of w_f (the numbers of f that its pixels meet there) lies in the span of what the k_f have
    there. That is a condition on every direction that K leaves open, `left`, for one direction w out of Co * places. What a class asks
    implies the same for every class whose pixels meet a part of its outputs; so a class adds only the directions w that those above it
    have not asked already. The Co^2 combinations of the k_f meet all conditions: what the conditions leave of the rest is shared too.
    """
    channels, (filters, *after) = layer.x[0], layer.z
    classes, asked = _classes(layer), 0
    for one, count in classes.items():
        every = filters * _places(one)
        left = max(_pixels(one) - every, 0)
        implied = min(every, channels * sum(many * _implied(other, one, after) for other, many in classes.items() if other != one))
        asked += left * (min(every, implied + channels * count) - implied)
    positions = after[0] * after[1]
    return max(filters * (positions - filters) - asked, 0)


def _implied(above: Class, one: Class, after: list[int]) -> int:
    """Count in how many ways a condition of the class `above` is one of class `one`."""
    first, second = (_shifts(*pair) for pair in zip(above, one, after, strict=True))
    return first * second


def _shifts(above: Residue, one: Residue, outputs: int) -> int:
    """Count the shifts along one side at which all pixels of `one` are pixels of `above`, or lie outside."""

    def meets_nothing(pixel: int) -> bool:
        return not any(0 <= above.first + pixel - place < outputs for place in range(above.places))

    shifts = [one.first - above.first - shift for shift in range(one.places - above.places + 1)]
    return sum(all(0 <= pixel < above.pixels or meets_nothing(pixel) for pixel in range(shift, shift + one.pixels)) for shift in shifts)
