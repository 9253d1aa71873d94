"""Kernels that hand on the picture: the first fully connected layer behind convolutions sees the picture itself."""

from dataclasses import dataclass
from itertools import takewhile

import torch
from torch import nn

from leakage.engine.core import Server
from leakage.servers._pixel_layer import pixel_layer


@dataclass(frozen=True, kw_only=True)
class IdentityKernels(Server):
    """Set the kernel of output channel c to 1 at its centre for input channel c mod C, and to 0 elsewhere; set biases to 0.

    C is the number of channels of a picture x. ReLU hands on x >= 0 as it is, so behind convolutions of stride 1 that keep the size
    channel c holds channel c mod C of the picture. The gradient of the fully connected layer that follows is then that of a layer which
    the pixels enter. Names and shapes of all parameters stay as they are.
    Source: Geiping et al. 2020, appendix A.2.
    """

    title = "Makes convolutions copy the picture (identity kernels)"
    short = "Identity kernels"
    plain = "The server sets the convolutions so that they copy the picture. The layer behind them then gives it away."
    hint = "Choose your own network with the preset “Convolutions that keep the size”. Compare one picture with a batch."
    source = "https://arxiv.org/abs/2003.14053"
    reading = ("linear_layer", "spear")
    models = {"custom": {"activation": ("relu", "leaky_relu"), "normalise": ("none",)}}
    kernels_alone = True
    needs_model = (
        "Identity kernels need convolutions of stride 1 that keep the size, with ReLU and without pooling, before a fully connected layer. "
        "Choose your own network with the preset “Convolutions that keep the size”."
    )

    def rebuild(self, model: nn.Module, image_shape: tuple[int, int, int], members: int) -> nn.Module:
        layers = takewhile(lambda layer: not isinstance(layer, nn.Linear), model.eval().modules())
        convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
        with torch.no_grad():
            for layer in convolutions:
                layer.weight.zero_()
                for channel, kernel in enumerate(layer.weight):
                    kernel[channel % image_shape[0] % len(kernel), layer.kernel_size[0] // 2, layer.kernel_size[1] // 2] = 1
                if layer.bias is not None:
                    layer.bias.zero_()
        if not convolutions or pixel_layer(model, image_shape) is None:
            raise ValueError(self.needs_model)
        return model
