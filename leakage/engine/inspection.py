"""The checks of the clients: in every round each client looks at the model that it received, before it trains."""

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from leakage.engine.check import Check, CheckReading, Handed, RefusedError
from leakage.engine.core import Params, Round
from leakage.engine.federation import Federation


class Inspection:
    """The checks of a federation's clients, and what they found.

    Args:
        federation: the clients with their checks, and the server
        agreed: the network on which the clients agreed, with its initial weights
    """

    def __init__(self, federation: Federation, agreed: nn.Module) -> None:
        self.federation, self.agreed = federation, agreed
        self.readings = list[CheckReading]()  # of all rounds, in their order

    def accepts(self, model: nn.Module, handed: Params, history: Sequence[Round], x: Tensor, y: Tensor) -> bool:
        """Let each client check what it received in the next round; append what was found to `readings`.

        Args:
            model: the network that is handed out.
            handed: the weights that the server hands out in this round, by parameter.
            history: the earlier rounds.
            x: the pictures of all clients (B, C, H, W).
            y: their labels (B,).

        Returns:
            Whether the clients train; False if a check tripped after the attacked round.

        Raises:
            RefusedError: a check tripped in the attacked round or before it, and the clients refuse.
        """
        checks, number = self.federation.checks, len(history) + 1
        # One client after the other, because each holds a copy of the model while it checks.
        measured = [[check.measure(client) for check in checks] for client in self._clients(model, handed, history, (x, y))]
        readings = [_reading(check, numbers, number) for check, *numbers in zip(checks, *measured, strict=True)]
        self.readings += readings
        if not (self.federation.refuse and any(reading.tripped for reading in readings)):
            return True
        if number <= self.federation.attacked_round:
            raise RefusedError(self.readings)
        return False

    def _clients(self, model: nn.Module, handed: Params, history: Sequence[Round], batch: tuple[Tensor, Tensor]) -> Iterator[Handed]:
        """Yield what each client holds before it trains on its part of the batch (pictures, labels)."""
        federation, members = self.federation, self.federation.aggregation.members
        received = federation.received_weights(model, handed)
        earlier = [federation.received_weights(model, seen.weights) for seen in history]
        for number, (x, y) in enumerate(zip(*(part.tensor_split(members) for part in batch), strict=True)):
            own = deepcopy(model)
            with torch.no_grad():
                for name, value in own.named_parameters():
                    value.copy_(received[number][name])
            others = [weights for other, weights in enumerate(received) if other != number]
            yield Handed(own, self.agreed, x, y, [weights[number] for weights in earlier], others)


def _reading(check: Check, numbers: Sequence[float], round: int) -> CheckReading:
    """Return the largest number that a client measured; NaN if the check is not defined for any client."""
    number = max((number for number in numbers if not math.isnan(number)), default=math.nan)
    return CheckReading(check.id, check.short or check.title, number, check.threshold, check.trips(number), round)
