"""A client whose gradient was computed elsewhere: what protections and a protocol make of a given gradient."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from leakage.engine.core import ClientState, Params, Update


class ReportedGradient:
    """A client that reports gradients computed elsewhere, whatever its pictures."""

    def __init__(self) -> None:
        self._gradients: Params = {}

    def __call__(self, _weights: Params, _x: Tensor, _y: Tensor, state: ClientState) -> Update:
        return self._gradients, state

    @contextmanager
    def reporting(self, gradients: Params) -> Iterator[None]:
        """Report these gradients within the block."""
        self._gradients = gradients
        try:
            yield
        finally:
            self._gradients = {}
