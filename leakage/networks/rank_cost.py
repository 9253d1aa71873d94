"""How long it takes to measure the rank of a layer's equations, and which layers are too large for it. No torch.

A rank is measured by two singular value decompositions: of the gradient equations of one channel, and of the weight equations in what
those leave open. The first also needs a basis of all pixels.
"""

from math import prod

from leakage.networks.exact_rank import gradient_rank
from leakage.networks.grammar import Map

SECONDS = 5e-10  # times the shorter side squared times the longer one; measured on one core: 4e-10 to 9e-10
LONGEST = 20.0  # seconds for one layer, most of it perhaps in one step: a worker whose run is stopped then leaves after 10 s
MOST_PIXELS = 4500
MOST_NUMBERS = 2e7  # in one matrix, 8 bytes each


def to_measure(maps: tuple[Map, ...]) -> tuple[Map, ...]:
    """The convolutions outside blocks with a skip: of all other maps the rank needs no measurement, or is that of no single map."""
    return tuple(map_ for map_ in maps if map_.kind == "conv" and not (map_.block and map_.block.skip))


def seconds(layer: Map) -> float:
    """A rule of thumb for one core."""
    gradient, pixels, weight, left = sides(layer)
    return SECONDS * (min(gradient, pixels) * pixels**2 + min(weight, left) ** 2 * left)


def too_large(layer: Map) -> bool:
    """Whether it would take too long, or too much memory."""
    _, pixels, weight, left = sides(layer)
    return seconds(layer) > LONGEST or pixels > MOST_PIXELS or min(weight, left) * left > MOST_NUMBERS


def sides(layer: Map) -> tuple[int, int, int, int]:
    """Of the two matrices: gradient equations and pixels of one channel; weight equations, and unknowns that the gradient leaves open."""
    left = layer.inputs - gradient_rank(layer)
    return layer.z[0] * layer.size**2, prod(layer.x[1:]), layer.outputs, left
