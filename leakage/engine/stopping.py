"""How work that takes long is ended from outside: a pulse, asked between two steps, that says stop."""

from collections.abc import Callable

from torch import Tensor

from leakage.engine.core import Client, ClientState, Params, Update


class StoppedError(Exception):
    """The pulse said stop before there was a result."""


def stoppable(client: Client, pulse: Callable[[], bool]) -> Client:
    """The same client, which asks `pulse` before each of its calls; when it says stop: StoppedError."""

    def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        if pulse():
            raise StoppedError
        return client(weights, x, y, state)

    return send
