"""A fully connected layer in front of the network: the pixels enter it, so its gradient gives the picture."""

from dataclasses import dataclass
from math import prod

from torch import nn

from leakage.engine.core import Server, param
from leakage.servers._block import put_in_front, refuse_large_block

NAME = "first"  # of the block in the network


@dataclass(frozen=True, kw_only=True)
class FirstLayer(Server):
    """Put two linear layers with ReLU between them in front of the network: x -> V relu(W x + b) + c, as a picture of the same shape.

    W has m rows. The gradient of one picture is dL/dW = d x^T and dL/db = d, so each row gives the picture by a division. Of a batch, the
    zeros that ReLU leaves in the gradients separate the pictures. The layers have PyTorch's default initialisation.
    Unlike the paper: ReLU and a second layer, which makes a picture of the m numbers again. The paper's other variant, a connection from
    the pixels to the last layer, is not built.
    Source: Geiping et al. 2020, appendix A.1.
    """

    title = "Puts a fully connected layer in front of the network (first layer)"
    short = "First layer"
    plain = "The server adds a fully connected layer that the pixels enter. One part of its gradient divided by another is the picture."
    hint = "Choose a network of convolutions and one picture. Then choose several pictures, and the attack for a whole batch."
    source = "https://arxiv.org/abs/2003.14053"
    changes = "architecture"
    reading = ("linear_layer", "spear")
    widths = ("units",)

    units: int = param(256, 1, 4096, "Units of the layer that the pixels enter.")

    def rebuild(self, model: nn.Module, image_shape: tuple[int, int, int], members: int) -> nn.Module:
        pixels = prod(image_shape)
        refuse_large_block(self.short, pixels, self.units)
        read, mix, picture = nn.Linear(pixels, self.units), nn.Linear(self.units, pixels), nn.Unflatten(1, image_shape)
        return put_in_front(NAME, {"flat": nn.Flatten(), "read": read, "on": nn.ReLU(), "mix": mix, "picture": picture}, model)
