"""The time and memory that measuring ranks takes: of a layer's equations, and of a whole gradient. No torch.

A layer's rank is measured by two singular value decompositions: of the gradient equations of one channel, and of the weight equations in
the directions that the gradient equations leave open. The first also needs a basis of all pixels. `engine/jacobian_rank.py` measures the
rank of a whole gradient; if the time does not suffice to move every pixel value, it moves the picture in as many random directions as the
time allows.
"""

from collections.abc import Iterable
from math import prod

from leakage.networks.exact_rank import gradient_rank
from leakage.networks.grammar import Map

SECONDS = 5e-10  # times the shorter side squared times the longer one; measured on one core: 4e-10 to 9e-10
LONGEST = 20.0  # seconds for one layer, perhaps most of them in a single step; a worker ends 10 s after its run was stopped
MOST_PIXELS = 4500
MOST_NUMBERS = 2e7  # in one matrix, 8 bytes each

PER_PRODUCT, PER_NUMBER, PER_DIRECTION = 1.2e-9, 2.5e-8, 3e-4  # seconds for one direction, by the network's products and numbers; one core
SQUARES = 4e-10  # times the directions to the third power: of the sketch, and its eigenvalues
MOST_DIRECTIONS, BUDGET = 3072, 120.0  # all of 3x32x32; seconds for the whole gradient
MOST_IN_BASIS, MOST_HELD = 2**25, 10_000_000  # numbers in random directions; in a network, its gradient and what its layers make


def to_measure(maps: tuple[Map, ...]) -> tuple[Map, ...]:
    """Return the layers whose equations for their input have a rank to be measured: the convolutions outside blocks with a skip.

    For every other layer the rank is known by a formula, or is that of several layers together.
    """
    return tuple(map_ for map_ in maps if map_.kind == "conv" and not (map_.block and map_.block.skip))


def seconds(layer: Map) -> float:
    """Estimate the seconds that measuring the rank of a layer's equations takes, by a rule of thumb for one core."""
    gradient, pixels, weight, left = sides(layer)
    return SECONDS * (min(gradient, pixels) * pixels**2 + min(weight, left) ** 2 * left)


def too_large(layer: Map) -> bool:
    """Return whether measuring the rank of a layer's equations would take more than LONGEST seconds, or too much memory."""
    _, pixels, weight, left = sides(layer)
    return seconds(layer) > LONGEST or pixels > MOST_PIXELS or min(weight, left) * left > MOST_NUMBERS


def sides(layer: Map) -> tuple[int, int, int, int]:
    """Return rows and columns of both matrices that are decomposed to measure a layer's rank.

    Returns:
        The equations from the gradient and the pixels of a channel, of the first matrix; the equations from the output and the unknowns
        that the first matrix leaves open, of the second.
    """
    left = layer.inputs - gradient_rank(layer)
    return layer.z[0] * layer.size**2, prod(layer.x[1:]), layer.outputs, left


def gradient_directions(maps: Iterable[Map]) -> int:
    """Return how many directions of changes of the picture are used to measure the rank of the whole gradient.

    They are all pixel values, or fewer random directions if time or memory does not suffice; 0 if the network is too large.
    """
    maps = tuple(maps)
    pixels = maps[0].inputs
    if _numbers(maps) > MOST_HELD:
        return 0
    most = int(min(pixels, MOST_DIRECTIONS, BUDGET / _each(maps)))
    return most if most == pixels else min(most, MOST_IN_BASIS // pixels)


def gradient_seconds(maps: Iterable[Map]) -> float:
    """Estimate the seconds that measuring the rank of the whole gradient takes."""
    maps = tuple(maps)
    count = gradient_directions(maps)
    return count * _each(maps) + SQUARES * count**3


def _each(maps: tuple[Map, ...]) -> float:
    """Estimate the seconds that one direction of `gradient_directions` takes."""
    products = sum(map_.weights * (prod(map_.z[1:]) if map_.kind == "conv" else 1) for map_ in maps)
    return PER_PRODUCT * products + PER_NUMBER * _numbers(maps) + PER_DIRECTION


def _numbers(maps: tuple[Map, ...]) -> int:
    return sum(map_.weights + map_.shortcut + map_.outputs for map_ in maps)
