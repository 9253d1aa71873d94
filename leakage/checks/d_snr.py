"""A check of the gradients of single pictures: whether one of them outweighs the others."""

import math
from dataclasses import dataclass

import torch

from leakage.checks._received_model import picture_gradients
from leakage.engine.core import Check, Handed, param

FLOOR = 1e-6  # of the sum of the other norms


@dataclass(frozen=True, kw_only=True)
class DSnr(Check):
    """max over layers W and pictures i of ||dL_i/dW|| / (sum over the other pictures j of ||dL_j/dW|| + 1e-6), with the client's own batch.

    L_i is the loss of picture i alone; W are the weights of convolutions and linear layers. Above 1, one picture has a larger part in a
    layer's gradient than the others together, so that an attacker sees it almost alone. The check is not defined for one picture, nor
    where BatchNorm mixes the pictures of a batch.
    A network that has learned most pictures gives the same number without a cheating server: the few pictures that it gets wrong make the
    whole gradient. And a server that is trained to stay below the threshold, as the authors' SEER, passes.
    Source: Garov et al. 2024 (disaggregation signal-to-noise ratio), and their code.
    """

    title = "Weighs the gradients of single pictures (D-SNR)"
    short = "D-SNR"
    plain = "The phone computes how far the gradient of one of its pictures outweighs those of its other pictures together."
    hint = "Trained networks set off this alarm under an honest server too. Weigh these false alarms against what it finds."
    source = "https://arxiv.org/abs/2306.03013"
    measures = "how far one picture outweighs the other pictures together in the gradient of a layer"
    compares = "pictures"

    threshold: float = param(1.1, 0, 1e9, "The check trips above this ratio of one picture to the others.")

    def measure(self, handed: Handed) -> float:
        gradients = picture_gradients(handed) if len(handed.x) > 1 else None
        if gradients is None:
            return math.nan
        norms = [[float(value.double().norm()) for value in gradient.values() if value.dim() > 1] for gradient in gradients]
        by_layer = torch.tensor(norms, dtype=torch.float64)  # (B, layers)
        return float((by_layer / (by_layer.sum(0) - by_layer + FLOOR)).max())
