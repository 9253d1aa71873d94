"""What lessons claim of networks by counting equations alone."""

from leakage.networks.grammar import parse, unroll
from leakage.networks.rank import LayerCount, analyse
from leakage.networks.templates import TEMPLATES


def layer(network: str, number: int) -> LayerCount:
    """How many equations and unknowns the layer of that number, from 1, has in a network by the name of its template: pictures 3x32x32.

    >>> layer("CNN6-d", 2).x
    3468
    """
    return analyse(unroll(parse(TEMPLATES[network]), (3, 32, 32), 10)).rows[number - 1]
