"""The rank of the equations that a layer's gradient and output give for its input, by formulas and without a matrix. No torch.

A count of equations ignores that some equations follow from others. For a convolution with Co filters of k x k, Ci input channels and
stride s the rank has a closed form for almost all weights and gradients. K are the gradient equations and W the weight equations of
`engine/equations.py`:

rank K       Ci times the rank of K0. A pixel meets only the kernel entries that agree with it modulo s, so K0 falls into s^2 classes of
             pixels; its rank is the sum over the classes of min(Co * kernel entries, pixels)
rank W       min(|z|, |x|)
both         K and W share Co^2 directions, one for each pair (f, g) of filters:
             sum over c, u of w_g[c, u] K[f, c, u] = sum over positions of k_f W[g]
rank [K; W]  min(|x|, rank K + rank W - Co^2 - more), and at least rank K and rank W; `more` counts the further directions that both share,
             and is 0 unless K leaves few directions of the pixels open: see `_shared_more`

Source: ours. The Co^2 directions are proved, `more` is a count. The formula was compared with the rank, modulo 2^31 - 1, of equations with
random numbers: it is right for 1,714 random layers within the conditions of `predicted_rank`, chosen so that few directions are left open,
and for 1,160 others. Outside these conditions it errs.
"""

from itertools import product
from typing import NamedTuple

from leakage.networks.grammar import Map


class Residue(NamedTuple):
    """The pixels along one side of a convolution's input that have one residue modulo the stride.

    They are numbered t = 0 .. pixels - 1 and meet only some kernel entries, e = 0 .. entries - 1. Kernel entry e connects pixel t with the
    output first + t - e, if there is an output with this index.
    """

    first: int
    entries: int
    pixels: int


PixelClass = tuple[Residue, Residue]  # the residues of rows and of columns


def predicted_rank(layer: Map) -> int | None:
    """Return the rank of the equations for a layer's input x that its gradient and its output z give, for one picture.

    The rank is at most |x|, the number of entries of x. A linear layer gives all of x (one output with a derivative other than 0
    suffices), pooling gives |z|. For a convolution with k x k kernels, stride s, Ci input channels and Co filters the formula of this
    module holds where the kernel meets every pixel, s <= k < side of the output, Ci >= 2, and Co <= Ci (k - padding)^2 with
    k - padding >= 2 or no padding; otherwise the equations of a corner depend on each other. None where no formula is known to hold.
    """
    if layer.kind == "linear":
        return layer.inputs
    if layer.kind in ("mean", "max"):
        return layer.outputs
    (channels, *sides), (filters, *after) = layer.x, layer.z
    size, stride, padding = layer.size, layer.stride, layer.padding
    met = all(stride * (outputs - 1) + size - padding >= side for side, outputs in zip(sides, after, strict=True))
    corner = filters <= channels * (size - padding) ** 2 and (padding == 0 or size - padding >= 2)
    if not (met and corner and stride <= size < min(after) and channels >= 2):
        return None
    gradient = gradient_rank(layer)
    if gradient == layer.inputs:
        return gradient
    weight = min(layer.outputs, layer.inputs)
    return max(gradient, weight, min(layer.inputs, gradient + weight - filters**2 - _shared_more(layer)))


def gradient_rank(layer: Map) -> int:
    """Return the rank of the equations K for a convolution's input that its gradient gives, for almost all values of dL/dz.

    For all other values the rank is smaller.
    """
    classes = _classes(layer).items()
    return layer.x[0] * sum(count * min(layer.z[0] * _kernel_entries(pixels), _pixels(pixels)) for pixels, count in classes)


def _classes(layer: Map) -> dict[PixelClass, int]:
    """Return the classes of the input's pixels by the kernel entries that they meet, and how often each class occurs.

    A class is a Residue of rows and a Residue of columns. Several pairs of residues modulo the stride can have the same class.
    """
    height, width = layer.x[1:]
    every = list(product(_along(layer, height), _along(layer, width)))
    return {pair: every.count(pair) for pair in every}


def _along(layer: Map, side: int) -> list[Residue]:
    """Return a Residue for each residue modulo the stride, along one side, of `side` pixels, of the layer's input."""
    starts = [divmod(residue + layer.padding, layer.stride) for residue in range(layer.stride)]
    return [
        Residue(first, len(range(start, layer.size, layer.stride)), len(range(residue, side, layer.stride)))
        for residue, (first, start) in enumerate(starts)
    ]


def _kernel_entries(pixels: PixelClass) -> int:
    return pixels[0].entries * pixels[1].entries


def _pixels(pixels: PixelClass) -> int:
    return pixels[0].pixels * pixels[1].pixels


def _shared_more(layer: Map) -> int:
    """Return how many directions beyond Co^2 both kinds of a convolution's equations span: K, from the gradient, and W, from the output.

    Co is the number of filters, k_f is dL/dz of filter f, w a vector of weights. A combination of weight equations has Co numbers at every
    output position. It is also a combination of gradient equations if this holds in every class of pixels and every input channel, with its
    weights w at the kernel entries of the class (Co * entries numbers): the sum over f and entries of w_f times the combination's numbers
    of f, at the outputs that the pixels meet, has to lie in the span of the values of the k_f there. Each w gives a linear condition for
    each direction of the pixels that K leaves open (`left`), and only linearly independent w count. A condition of a class is also one of
    every class with pixels that meet a part of its outputs, so a class adds only the w that no such other class has added. The Co^2
    combinations of the k_f fulfil all conditions; the further ones are counted.
    """
    channels, (filters, *after) = layer.x[0], layer.z
    classes, conditions = _classes(layer), 0
    for pixels, count in classes.items():
        every = filters * _kernel_entries(pixels)
        left = max(_pixels(pixels) - every, 0)
        ways = sum(many * _implied(other, pixels, after) for other, many in classes.items() if other != pixels)
        implied = min(every, channels * ways)
        conditions += left * (min(every, implied + channels * count) - implied)
    positions = after[0] * after[1]
    return max(filters * (positions - filters) - conditions, 0)


def _implied(above: PixelClass, below: PixelClass, after: list[int]) -> int:
    """Return in how many ways a linear condition of `_shared_more` for the class of pixels `above` is also one for the class `below`.

    `after` are the sides of the output.
    """
    first, second = (_shifts(*pair) for pair in zip(above, below, after, strict=True))
    return first * second


def _shifts(above: Residue, below: Residue, outputs: int) -> int:
    """Return the number of shifts along one side at which each pixel of `below` is a pixel of `above` or meets no output.

    `outputs` is the side of the convolution's output.
    """

    def meets_nothing(pixel: int) -> bool:
        return not any(0 <= above.first + pixel - entry < outputs for entry in range(above.entries))

    shifts = [below.first - above.first - shift for shift in range(below.entries - above.entries + 1)]
    return sum(all(0 <= pixel < above.pixels or meets_nothing(pixel) for pixel in range(shift, shift + below.pixels)) for shift in shifts)
