"""Layers with random buffers: a defense adds them to the network, and each client draws new values for every picture."""

import torch
from torch import Tensor, nn

from leakage.engine.core import Params


class RandomLayer(nn.Module):
    """A layer with buffers that are zeros at the server; a client replaces them by random values, drawn for every picture."""

    def draw(self, pictures: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Draw the buffers of a client with this number of pictures, by the names of the buffers in this layer."""
        raise NotImplementedError


def draw_buffers(model: nn.Module, x: Tensor, rng: torch.Generator) -> Params:
    """Draw the buffers of all random layers for a client's pictures x (B, C, H, W), by their names in the model."""
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, RandomLayer)}
    return {f"{name}.{buffer}": value.to(x) for name, layer in layers.items() for buffer, value in layer.draw(len(x), rng).items()}
