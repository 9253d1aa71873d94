"""The base class of checks: what a client computes about the model that it received. Import it from `leakage.engine.core`."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from leakage.engine.observation import Params
from leakage.engine.plugin import Plugin, param
from leakage.spec.declarations import CheckDeclarations


@dataclass(frozen=True)
class Handed:
    """What a client holds before it trains: the model that it received, what it can compare that model with, and its own pictures.

    Args:
        model: the network that the client received, with the received weights as its parameters
        agreed: the network on which the clients agreed, with its published initial weights
        earlier: the weights that the client received in each earlier round
        others: the weights that each other client received in this round, as clients that compare hashes would find out
        x: the client's own pictures (B, C, H, W) in [0, 1]
        y: their labels (B,)
    """

    model: nn.Module
    agreed: nn.Module
    x: Tensor
    y: Tensor
    earlier: Sequence[Params] = ()
    others: Sequence[Params] = ()


@dataclass(frozen=True, kw_only=True)
class Check(Plugin, CheckDeclarations):
    """A check of the received model: one number, which trips the check if it exceeds the threshold.

    Example:
        >>> import torch, leakage
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Largest(Check):
        ...     def measure(self, handed):
        ...         return max(float(weight.abs().max()) for weight in handed.model.parameters())
        >>> Largest(threshold=3.0).trips(2.5)
        False
    """

    threshold: float = param(0, -1e9, 1e9, "The check trips if its number is larger.")

    def measure(self, handed: Handed) -> float:
        """Return the number of this check.

        Args:
            handed: what the client holds before it trains.

        Returns:
            The number; NaN where the check is not defined, which never trips.
        """
        raise NotImplementedError

    def trips(self, number: float) -> bool:
        """Return whether a number of `measure` trips the check."""
        return number > self.threshold


@dataclass(frozen=True)
class CheckReading:
    """What one check found in one round.

    Args:
        check: the id of the check
        title: its short name
        number: the largest number that a client measured; NaN where the check is not defined
        threshold: above this number it trips
        tripped: whether it has tripped
        round: the number of the round, from 1
    """

    check: str
    title: str
    number: float
    threshold: float
    tripped: bool
    round: int


class RefusedError(Exception):
    """A client refused to train the model that it received, because a check tripped; from then on nothing was sent.

    Args:
        readings: what all checks found, up to the round in which one of them tripped
    """

    def __init__(self, readings: Sequence[CheckReading]) -> None:
        self.readings = tuple(readings)
        tripped = next(reading for reading in self.readings if reading.tripped)
        super().__init__(
            f"The phone refused to train this model in round {tripped.round}: the check {tripped.title} measured {tripped.number:.3g}, "
            f"above its threshold of {tripped.threshold:.3g}. Nothing was sent{'' if tripped.round == 1 else ' from this round on'}."
        )
        self.tripped = tripped
