"""Label flipping: the last layer's rows of two classes are swapped, so that a trained network errs and its gradient grows."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.engine.core import Params, Round, Server, param
from leakage.servers._last_layer import check_last_layer, last_layer_of


@dataclass(frozen=True, kw_only=True)
class LabelFlip(Server):
    """Swap the rows (w_c, b_c) of two classes in the last layer, from one round on.

    A trained network predicts most pictures of the two classes with certainty, so that its loss and its gradient are nearly 0. With swapped
    rows it predicts the other class, the loss is large, and the gradient has the size of an untrained network's. The gradient is the
    honest network's for the pictures with the two labels swapped, with the same rows swapped. A single output z, which makes the logits
    (0, z), becomes -z. A search runs on the update as it is. If the search compares directions alone, as Inverting Gradients does, it gains
    from the longer gradient where noise hides the short one, and little without noise (benchmarks/published/label_flip.py).
    Source: Geiping et al. 2020, appendix A.2 and figure 7, which give no formula.
    """

    title = "Swaps two classes of the last layer (label flip)"
    short = "Label flip"
    plain = (
        "The server swaps the rows of two classes in the last layer: a network that knew these pictures errs, and its gradient says more."
    )
    hint = "Choose a trained network and a picture of the class that the server guesses, then compare with an honest server."
    source = "https://arxiv.org/abs/2003.14053"
    last_layer = "linear"
    classes = ("guessed", "rival")

    guessed: int = param(0, 0, 9999, "The class that the server expects among the pictures.")
    rival: int = param(1, 0, 9999, "The class that it is swapped with.")
    first_round: int = param(1, 1, 20, "The round in which the server swaps the classes for the first time.")

    def rebuild(self, model: nn.Module, image_shape: tuple[int, int, int], members: int) -> nn.Module:
        check_last_layer(self, model, image_shape, classes=(self.guessed, self.rival))
        return model

    def hand_out(self, model: nn.Module, weights: Params, history: Sequence[Round], rng: torch.Generator) -> Params:
        if len(history) + 1 < self.first_round:
            return weights
        layer = last_layer_of(model)
        return {**weights, **{name: self._swapped(weights[name]) for name in (layer.weight, layer.bias) if name}}

    def _swapped(self, rows: Tensor) -> Tensor:
        """Return rows (K, ...) with the rows of the two classes swapped; of a single output the opposite."""
        if len(rows) == 1:
            return -rows if self.guessed != self.rival else rows
        order = list(range(len(rows)))
        order[self.guessed], order[self.rival] = self.rival, self.guessed
        return rows[order]
