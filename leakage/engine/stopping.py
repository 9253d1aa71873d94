"""The way to stop long work: it calls `should_stop` between two steps, and raises StoppedError when `should_stop` returns True."""

from collections.abc import Callable

from torch import Tensor

from leakage.engine.core import Client, ClientState, Params, Update


class StoppedError(Exception):
    """Work was stopped before it had a result."""


def stoppable(client: Client, should_stop: Callable[[], bool]) -> Client:
    """Return the client with a check before each of its calls. Raises StoppedError when `should_stop()` is true."""

    def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        if should_stop():
            raise StoppedError
        return client(weights, x, y, state)

    return send
