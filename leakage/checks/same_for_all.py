"""A check among the clients: whether they received the same model."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.engine.client import weights_of
from leakage.engine.core import Check, Handed, Params, param


@dataclass(frozen=True, kw_only=True)
class SameForAll(Check):
    """The number of other clients that received other weights, bit by bit, as clients find out that compare hashes of their models.

    The comparison needs a channel that the server does not control. The check is not defined for a client that is alone. A server that
    hands a manipulated model to all clients passes.
    Source: Pasquini et al. 2022 (model inconsistency).
    """

    title = "Compares the received model with those of other phones (model consistency)"
    short = "Model consistency"
    plain = "The phones compare fingerprints (hashes) of the models that they received, and count the phones whose model differs."
    hint = "It sees servers that hand out different models. Give such a server several phones that add up their updates."
    source = "https://arxiv.org/abs/2111.07380"
    measures = "how many other phones received another model"
    compares = "clients"

    threshold: float = param(0, 0, 1000, "The check trips if more phones than this received another model.")

    def measure(self, handed: Handed) -> float:
        own = weights_of(handed.model)
        return float(sum(not _equal(own, weights) for weights in handed.others)) if handed.others else math.nan


def _equal(own: Params, other: Params) -> bool:
    return own.keys() == other.keys() and all(torch.equal(_bits(own[name]), _bits(value)) for name, value in other.items())


def _bits(value: Tensor) -> Tensor:
    """Return the bytes of a tensor: two NaN of the same bits are equal."""
    return value.detach().contiguous().view(-1).view(torch.uint8)
