"""Pictures that several rounds of the same client give alike."""

from collections.abc import Sequence
from itertools import takewhile

import torch
from torch import Tensor

from leakage.attacks._rows import LOOSEST
from leakage.engine.core import Observation, Round


def earlier_rounds(seen: Observation, parameter: str) -> list[Round]:
    """Return the rounds before the first one in which the server handed out this parameter as in the attacked round.

    Args:
        seen: what the server holds.
        parameter: the name of a parameter that the server changes from round to round.
    """
    attacked = seen.received.weights[parameter]
    return list(takewhile(lambda past: not torch.equal(past.weights[parameter], attacked), seen.received.history))


def with_repeated(found: Tensor, earlier: Sequence[Tensor], *, most: int) -> Tensor:
    """Return pictures, and after them those that two earlier rounds give alike and that are not among them.

    Args:
        found: the pictures of the attacked round, (N, n).
        earlier: the pictures of each earlier round, (N, n) each.
        most: the most pictures to return.

    >>> x = torch.eye(4)
    >>> with_repeated(x[:1], [x[:2], x[[0, 1, 3]], x[2:3]], most=3)
    tensor([[1., 0., 0., 0.],
            [0., 1., 0., 0.]])
    """
    for number, pictures in enumerate(earlier):
        others = [*earlier[:number], *earlier[number + 1 :]]
        repeated = _is_among(pictures, torch.cat(others)) if others else torch.zeros(len(pictures), dtype=torch.bool)
        found = torch.cat([found, pictures[repeated & ~_is_among(pictures, found)]])
    return found[:most]


def _is_among(pictures: Tensor, others: Tensor) -> Tensor:
    """Return for each of the pictures (N, n) whether it is equal to one of `others` (M, n), (N,) bool."""
    if not len(others) or not len(pictures):
        return torch.zeros(len(pictures), dtype=torch.bool)
    distance: Tensor = torch.cdist(pictures, others).amin(1) / pictures.shape[1] ** 0.5  # root mean square of the pixels
    return distance <= LOOSEST
