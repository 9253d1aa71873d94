"""The observation of few pictures, which a server that fishes has separated from the gradient of a batch."""

from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from leakage.engine.core import Batch, Observation, Params
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.loading import load
from leakage.engine.logit_layer import LogitLayer
from leakage.engine.losses import CustomLoss, set_loss
from leakage.engine.observe import received

MIXED = (
    "{} separates pictures of a batch, and here BatchNorm mixes them: it uses the statistics of the batch. "
    "Let it use its stored statistics."
)


class Catch(NamedTuple):
    """What a server has fished from the gradient of a batch.

    Args:
        gradient: the average gradient of the separated pictures, by parameter
        labels: their labels (n,)
        row: the row of the last layer whose gradient shows something of them; the other rows do not count when gradients are compared
        scale: the factor by which the errors of a gradient were multiplied
        row_scale: the same for the row
        words: which pictures they are
    """

    gradient: Params
    labels: Tensor
    row: int
    scale: float
    row_scale: float
    words: str


def separated(seen: Observation, model: nn.Module, layer: LogitLayer, catch: Catch) -> Observation:
    """Return the observation of separated pictures: as if a client with these pictures alone had sent the gradient of one step.

    Args:
        seen: the observation of all pictures.
        model: the network whose gradient was fished.
        layer: its last layer.
        catch: what was fished.
    """
    one_client = Federation.of(load("protocol", "fedsgd")(), (), ThreatModel(labels=True), seed=0)
    batch = Batch(len(catch.labels), seen.batch.image_shape, seen.batch.num_classes)
    alone = received(model, catch.gradient, one_client, batch, labels=catch.labels)
    last = {name: torch.zeros_like(catch.gradient[name]) for name in (layer.weight, layer.bias) if name}
    last[layer.weight][catch.row] = seen.knowledge.entry_weights.get(layer.weight, torch.ones_like(last[layer.weight]))[catch.row]
    scales = dict.fromkeys(catch.gradient, catch.scale) | {layer.weight: catch.row_scale}
    errors = seen.knowledge.errors
    knowledge = replace(
        alone.knowledge,
        adaptive=seen.knowledge.adaptive,
        entry_weights={**seen.knowledge.entry_weights, **last},
        errors=errors and {name: error * scales[name] ** 2 for name, error in errors.items() if name in scales},
    )
    return replace(alone, granted=replace(seen.granted, labels=catch.labels), knowledge=knowledge, isolated=catch.words)


def separable(seen: Observation, layer: LogitLayer, name: str) -> bool:
    """Return whether pictures can be separated: the gradient of the last layer arrived, and no hidden values of the client are searched.

    Raises DoesNotApplyError, with the server's name in the message, if BatchNorm mixes the pictures of a batch.
    """
    if any(isinstance(part, nn.modules.batchnorm._BatchNorm) and part.training for part in seen.model.modules()):
        raise DoesNotApplyError(MIXED.format(name))
    return {layer.weight, layer.bias} <= set(seen.update) and not seen.knowledge.latents


def network_of_feature(seen: Observation, layer: LogitLayer, target: int, feature: int) -> nn.Module:
    """Return a copy of the network whose loss is the mean of one feature, the input number `feature` of the last layer.

    Args:
        seen: the observation; its network is copied.
        layer: the last layer, which gets the row of one feature, and no bias.
        target: the class whose logit is the feature.
        feature: the number of the feature.
    """
    model = deepcopy(seen.model)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name in (layer.weight, layer.bias):
                value.zero_()
        model.get_parameter(layer.weight)[target, feature] = 1
    set_loss(model, CustomLoss(lambda logits, _: logits[:, target].mean(), f"the mean of feature {feature}"))
    return model
