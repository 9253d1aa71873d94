"""Parts that several models share: normalisation as the first layer, activations, the papers' initialisations."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torch import Tensor, nn

from leakage.engine.core import Normalise, choice, flag

STATISTICS = {  # mean and standard deviation per channel of the training pictures in [0, 1], as Geiping et al. 2020 use them
    "cifar10": ((0.4914672, 0.4822617, 0.4467701), (0.2470322, 0.2434851, 0.2615879)),
    "cifar100": ((0.5071598, 0.4866936, 0.4412019), (0.2673343, 0.2564385, 0.2761505)),
    "mnist": ((0.1306638,), (0.3081078,)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),  # as torchvision's networks expect them
}
ActivationMaker = Callable[[], nn.Module]
ACTIVATIONS: dict[str, ActivationMaker] = {
    "relu": nn.ReLU,
    "leaky_relu": partial(nn.LeakyReLU, 0.2),  # the factor of negative inputs in R-GAP's code
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
}
INITIALISATIONS = ("wide_uniform", "default", "kaiming_normal")


def activation_field(default: str) -> Any:
    """Return the field of a model plug-in that selects the activation, with this default."""
    sentence = "The activation after each layer. ReLU and LeakyReLU have no curvature, which L-BFGS attacks (DLG, iDLG) need."
    return choice(default, tuple(ACTIVATIONS), sentence)


def bias_field(default: bool) -> Any:
    """Return the field of a model plug-in that switches the biases of its layers on, with this default."""
    return flag(default, "Whether layers add a constant. The gradient of the first layer's bias reveals much.")


def initialisation_field(default: str, options: Sequence[str] = INITIALISATIONS) -> Any:
    """Return the field of a model plug-in that selects how its weights are drawn (`initialise`), with this default."""
    help = (
        "How the first weights are drawn: wide_uniform is U(-0.5, 0.5), biases too; default is PyTorch's; kaiming_normal keeps the scale."
    )
    return choice(default, options, help)


def normalise_field(default: str) -> Any:
    """Return the field of a model plug-in that selects mean and deviation of its first layer (`normalisation`), with this default."""
    sentence = "Which data set's mean and contrast the first layer subtracts and divides by."
    return choice(default, ("none", *STATISTICS), f"{sentence} The attacker knows it: it is part of the model.")


def normalisation(name: str, channels: int) -> dict[str, nn.Module]:
    """Return the layer that normalizes pictures, under its name in the network; {} for "none".

    If the number of channels does not fit, the means of the data set's channels are used.

    Args:
        name: a key of STATISTICS, or "none".
        channels: the channels of a picture.
    """
    if name == "none":
        return {}
    mean, std = STATISTICS[name]
    if len(mean) != channels:
        mean, std = (sum(mean) / len(mean),) * channels, (sum(std) / len(std),) * channels
    return {"normalise": Normalise(mean, std)}


class Colour(nn.Module):
    """A layer that turns a grey picture into a colour picture with three equal channels, which torchvision's networks need."""

    def forward(self, x: Tensor) -> Tensor:
        return x.expand(-1, 3, -1, -1)  # (B, 3, H, W)


def initialise(net: nn.Module, name: str) -> nn.Module:
    """Draw the initial weights of a network anew, in place, and return the network.

    Args:
        net: the network.
        name: "wide_uniform": every weight and bias ~ U(-0.5, 0.5), as in the code of DLG and iDLG; "kaiming_normal": every weight of a
            convolution or linear layer ~ N(0, 2 / inputs), biases 0 (He et al. 2015); "default": the weights stay as PyTorch drew them.
    """
    if name == "wide_uniform":
        for value in net.parameters():
            nn.init.uniform_(value, -0.5, 0.5)
    elif name == "kaiming_normal":
        for layer in net.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
    return net
