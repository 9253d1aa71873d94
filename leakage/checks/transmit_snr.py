"""A check of the first layer: whether a kernel passes a single number of its input on."""

import math
from dataclasses import dataclass

from leakage.checks._received_model import first_rows
from leakage.engine.core import Check, Handed, param

FLOOR = 1e-6  # of the sum of the other numbers


@dataclass(frozen=True, kw_only=True)
class TransmitSnr(Check):
    """max over the kernels w of the first convolution or linear layer of max_j |w_j| / (sum over the other numbers of |w_j| + 1e-6).

    Above 1, one number of a kernel is larger than the others together: the kernel copies pixels more than it mixes them. A kernel with a
    single number gives about a million times this number. The check is not defined for kernels of fewer than 9 numbers.
    A server that copies pixels in a later layer, or adds a little of everything to its kernels, passes.
    Source: Garov et al. 2024, their code (transmit signal-to-noise ratio). Unlike there: also the rows of a linear layer.
    """

    title = "Looks for weights that copy pixels (transmit SNR)"
    short = "Transmit SNR"
    plain = "The phone looks in the first layer for a group of weights (kernel) in which one number outweighs the others together."
    hint = "It sees first layers that hand the picture on unchanged, and misses layers that average pixels."
    source = "https://arxiv.org/abs/2306.03013"
    measures = "how far one number of a first kernel outweighs its other numbers together"

    threshold: float = param(1.0, 0, 1e9, "The check trips above this ratio of the largest number to the others.")

    def measure(self, handed: Handed) -> float:
        rows = first_rows(handed.model)
        if rows is None:
            return math.nan
        sizes = rows.abs()
        largest = sizes.amax(1)  # (K,)
        others = sizes.scatter(1, sizes.argmax(1, keepdim=True), 0).sum(1)
        return float((largest / (others + FLOOR)).max())
