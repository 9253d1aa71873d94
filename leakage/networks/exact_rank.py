"""The rank of all that a gradient and an output say about a layer's input, without computing a matrix. No torch.

Counts of equations ignore that some follow from others. For a convolution with Co filters of k x k, Ci input channels and stride s the rank
for almost all weights and gradients has a closed form; K are the gradient equations and W the weight equations of `engine/equations.py`:

rank K       Ci times that of K0. A pixel meets only those places of the kernel that agree with it modulo s, so K0 falls into s^2 classes of
             pixels: the sum over them of min(Co * places, pixels)
rank W       min(|z|, |x|)
both         K and W share Co^2 directions, one for each pair (f, g) of filters:
             sum over c, u of w_g[c, u] K[f, c, u] = sum over positions of k_f W[g]
rank [K; W]  min(|x|, rank K + rank W - Co^2 - more), and no less than rank K or rank W; more is 0 unless a class has fewer pixels than
             equations

Source: ours. Equal to the number of singular values above 0 for 2,129 random small layers within the conditions of `predicted_rank`, 399 of
them with too few equations; outside these conditions it errs.
"""

from itertools import product
from math import prod

from leakage.networks.grammar import Map

Class = tuple[int, int]  # places of the kernel that its pixels meet, pixels


def predicted_rank(layer: Map) -> int | None:
    """The rank for one picture, |x| at most; None where no formula is known to hold.

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
    classes, gradient = _classes(layer), gradient_rank(layer)
    if gradient == layer.inputs:
        return gradient
    more = 0
    if any(filters * places > pixels for places, pixels in classes):
        if stride == size or 2 * padding >= size:
            return None
        more = _shared_more(classes, channels, filters, positions=prod(after))
    weight = min(layer.outputs, layer.inputs)
    return max(gradient, weight, min(layer.inputs, gradient + weight - filters**2 - more))


def gradient_rank(layer: Map) -> int:
    """rank K of a convolution for almost all gradients; never more than this."""
    return layer.x[0] * sum(min(layer.z[0] * places, pixels) for places, pixels in _classes(layer))


def _classes(layer: Map) -> list[Class]:
    """The classes of pixels, for every pair of residues modulo the stride."""
    return [(u * v, rows * columns) for (u, rows), (v, columns) in product(*(_along(layer, side) for side in layer.x[1:]))]


def _along(layer: Map, side: int) -> list[Class]:
    """The same along one side."""
    return [
        (len(range((residue + layer.padding) % layer.stride, layer.size, layer.stride)), len(range(residue, side, layer.stride)))
        for residue in range(layer.stride)
    ]


def _shared_more(classes: list[Class], channels: int, filters: int, *, positions: int) -> int:
    """How many more than Co^2 directions K and W share where a class has fewer pixels than equations, by a count.

    A combination of weight equations, Co numbers at every position, is one of gradient equations if it is so in every class. A class with
    one place asks Ci conditions for each direction that its equations leave free (pixels - Co), so n of them leave max(Co - n Ci, 0) of
    the Co numbers; the classes with several places ask for as many as there are channels or places. Without a class with one place all
    Co numbers are left, less the Co directions of k.
    """
    free = [(places, max(pixels - filters * places, 0)) for places, pixels in classes]
    single = [left for places, left in free if places == 1]
    rest = max(filters - len(single) * channels, 0)
    left = rest * (max(single) if single else positions - filters)
    asked = sum(min(channels, rest * places) * left for places, left in free if places > 1)
    return max(left - asked, 0)
