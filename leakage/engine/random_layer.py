"""Layers that draw numbers on the phone: what a defense puts into the network so that two passes of one picture differ."""

import torch
from torch import Tensor, nn

from leakage.engine.core import Params


class RandomLayer(nn.Module):
    """A layer whose buffers are zeros at the server; a phone puts its own in their place, drawn for every picture."""

    def draw(self, pictures: int, rng: torch.Generator) -> dict[str, Tensor]:
        """The buffers that a phone draws for so many pictures, by their names in this layer."""
        raise NotImplementedError


def drawn(model: nn.Module, x: Tensor, rng: torch.Generator) -> Params:
    """All that a phone draws for its pictures x (B, C, H, W), by the names in the model; nothing where no layer is random."""
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, RandomLayer)}
    return {f"{name}.{buffer}": value.to(x) for name, layer in layers.items() for buffer, value in layer.draw(len(x), rng).items()}
