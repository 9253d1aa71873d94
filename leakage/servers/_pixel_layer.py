"""The first fully connected layer of a network that the pixels enter, at most scaled and moved."""

from dataclasses import dataclass

from torch import nn

from leakage.engine.computation import computation, probes
from leakage.engine.known_steps import activation_of
from leakage.engine.pixel_map import PixelMap, pixel_map


@dataclass(frozen=True)
class PixelLayer:
    """A fully connected layer that the pixels enter.

    Args:
        name: the layer's parameters are NAME.weight (m, n) and NAME.bias (m,)
        pixels: how the pixels enter it
        activation: what follows it at once; None where that is more than a function of each number
    """

    name: str
    pixels: PixelMap
    activation: nn.Module | None


def pixel_layer(model: nn.Module, image_shape: tuple[int, int, int]) -> PixelLayer | None:
    """Return the first fully connected layer that the pixels enter; None if there is none.

    Args:
        model: the network in eval mode.
        image_shape: (C, H, W) of one picture.
    """
    computed = computation(model, probes(image_shape, next(model.parameters())))
    for number, step, name in computed.linear_steps():
        if pixels := pixel_map(model, step.inputs[0], image_shape):
            readers = computed.readers(number)
            activation = activation_of(computed.steps[readers[0] - 1], computed.value(number)) if len(readers) == 1 else None
            return PixelLayer(name, pixels, activation)
    return None
