"""A check of the client's own pictures: whether each of them gives the network a gradient."""

import math
from dataclasses import dataclass

from leakage.checks._received_model import head_of, picture_gradients
from leakage.engine.client import weights_of
from leakage.engine.core import Check, Handed, param


@dataclass(frozen=True, kw_only=True)
class Alive(Check):
    """The fraction of the client's pictures whose gradient is exactly 0 in all parameters but those of the last layer.

    A server that fishes for some pictures silences the others: its last layer is certain of their class, or its features are dead. The
    sum of the updates then holds the remaining pictures alone. The check is not defined without a linear layer that computes the logits
    and layers before it, nor where BatchNorm mixes the pictures of a batch. A server that leaves the others a little gradient passes.
    Source: designed here, against Wen et al. 2022 (fishing) and Pasquini et al. 2022 (model inconsistency).
    """

    title = "Counts its pictures without a gradient (alive)"
    short = "Alive"
    plain = "The phone counts those of its pictures that have a gradient of 0 in the layers before the last one."
    hint = "It sees servers that silence pictures. It misses them on a phone that holds just the pictures which the server wants."
    source = "https://arxiv.org/abs/2111.07380"
    measures = "which fraction of the phone's pictures has a gradient of 0 before the last layer"

    threshold: float = param(0, 0, 1, "The check trips if a larger fraction of the pictures than this has a gradient of 0.")

    def measure(self, handed: Handed) -> float:
        head, gradients = head_of(handed), picture_gradients(handed)
        if head is None or gradients is None:
            return math.nan
        others = [name for name in weights_of(handed.model) if name not in (head.weight, head.bias)]
        if not others:
            return math.nan
        silent = [not any(bool(gradient[name].any()) for name in others) for gradient in gradients]
        return sum(silent) / len(silent)
