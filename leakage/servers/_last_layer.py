"""The last layer of a network, which several servers change: what it must be like, and the features that enter it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from leakage.engine.capabilities import capabilities_of
from leakage.engine.core import Params, Server
from leakage.engine.inapplicable import UnreadableLabelsError
from leakage.engine.label_probes import draw_varied_pictures
from leakage.engine.logit_layer import LogitLayer, logit_layer_of

PICTURES = 64  # random pictures on which a server looks at features
NO_LAST_LAYER = "server: {} changes the last layer, and this network has no linear layer that makes its outputs. Choose another model."
NO_BIAS = "server: {} needs a bias in the last layer, and this network has none there. Choose another model, or switch biases on."
NO_CLASSES = "server: {} needs one output for each class, and this network has a single output. Set task to classes."
NO_CLASS = "server: {} names class {}, and this network has the classes 0 to {}. Choose one of them."


def last_layer_of(model: nn.Module) -> LogitLayer:
    """Return the linear layer that computes the logits of a model that is ready to be handed out."""
    return logit_layer_of(model, _like(model, capabilities_of(model).image_shape))


def check_last_layer(
    server: Server, model: nn.Module, image_shape: tuple[int, int, int], *, classes: Sequence[int] = (), bias: bool = False
) -> LogitLayer:
    """Return the linear layer that computes the logits of a model which `rebuild` was given; the model is put into eval mode.

    Args:
        server: the server, for messages.
        model: the model.
        image_shape: (C, H, W) of one picture.
        classes: classes that the network must have.
        bias: whether the layer must have a bias and one output for each class.

    Raises:
        ValueError: there is no such layer, or it lacks a bias or a class.
    """
    try:
        layer = logit_layer_of(model.eval(), _like(model, image_shape))
    except UnreadableLabelsError:
        raise ValueError(NO_LAST_LAYER.format(server.short)) from None
    rows = len(model.get_parameter(layer.weight))
    if bias and layer.bias is None:
        raise ValueError(NO_BIAS.format(server.short))
    if bias and rows == 1:
        raise ValueError(NO_CLASSES.format(server.short))
    for number in classes:
        if number >= max(rows, 2):
            raise ValueError(NO_CLASS.format(server.short, number, max(rows, 2) - 1))
    return layer


def features_of(model: nn.Module, layer: LogitLayer, weights: Params, image_shape: tuple[int, ...]) -> Tensor:
    """Return what enters the last layer for PICTURES random pictures: features (P, D).

    Args:
        model: the model, in eval mode.
        layer: its last layer.
        weights: the weights with which it is computed, by parameter.
        image_shape: (C, H, W) of one picture.
    """
    channels, height, width = image_shape
    x = draw_varied_pictures(PICTURES, (channels, height, width)).to(weights[layer.weight])
    entered = list[Tensor]()
    last = model.get_submodule(layer.weight.rpartition(".")[0])
    with last.register_forward_pre_hook(lambda _, given: entered.append(given[0])), torch.no_grad():
        functional_call(model, dict(weights), (x,))
    return entered[0]


def _like(model: nn.Module, image_shape: Sequence[int]) -> Tensor:
    return next(model.parameters()).new_empty((2, *image_shape))
