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

LENGTH = 100.0  # of the gradients compared; L-BFGS in DLG ends a step at a distance change of 1e-9, which is early for short gradients
MIXED = (
    "{} separates pictures of a batch, and here BatchNorm mixes them: it uses the statistics of the batch. "
    "Let it use its stored statistics."
)


class Catch(NamedTuple):
    """What a server has fished from the gradient of a batch: the gradient of <v, f>, averaged over pictures with features f.

    Args:
        body: that gradient, by parameter, without the last layer
        features: the mean of f, (D,): what enters the last layer
        direction: v, (D,)
        target: the class whose row of the last layer was used
        labels: the labels of the pictures (n,), as far as the server knows them
        scale: by how much larger the errors of `body` are than those of the received gradient
        feature_scale: the same for `features`
        words: which pictures they are
    """

    body: Params
    features: Tensor
    direction: Tensor
    target: int
    labels: Tensor
    scale: float
    feature_scale: float
    words: str


def separated(seen: Observation, layer: LogitLayer, catch: Catch) -> Observation:
    """Return the observation of separated pictures: as if a client with these pictures alone had sent one gradient.

    The client's loss is c <s v, f>, with s such that the gradients of the body and of the row in the last layer, which is c f, have the
    same norm: then both count in a search. Their norm is LENGTH, which sets c. Of the last layer only this row is compared.

    Args:
        seen: the observation of all pictures.
        layer: the last layer.
        catch: what was fished.
    """
    length = float(torch.stack([g.norm() for g in catch.body.values()]).norm())
    unit, factor = (LENGTH / (norm or 1.0) for norm in (float(catch.features.norm()), length))
    model = _network(seen, layer, catch.target, factor / unit * catch.direction, unit)
    last = {name: torch.zeros_like(seen.received.weights[name]) for name in (layer.weight, layer.bias) if name}
    row = {name: value.clone() for name, value in last.items()}
    row[layer.weight][catch.target] = unit * catch.features
    if layer.bias:
        row[layer.bias][catch.target] = unit
    one_client = Federation.of(load("protocol", "fedsgd")(), (), ThreatModel(labels=True), seed=0)
    batch = Batch(len(catch.labels), seen.batch.image_shape, seen.batch.num_classes)
    gradient = {name: factor * g for name, g in catch.body.items()} | row
    alone = received(model, gradient, one_client, batch, labels=catch.labels)
    known, errors = seen.knowledge.entry_weights, seen.knowledge.errors
    last[layer.weight][catch.target] = known[layer.weight][catch.target] if layer.weight in known else 1
    scales = dict.fromkeys(catch.body, factor * catch.scale) | {layer.weight: unit * catch.feature_scale}
    knowledge = replace(
        alone.knowledge,
        adaptive=seen.knowledge.adaptive,
        entry_weights={**known, **last},
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


def _network(seen: Observation, layer: LogitLayer, target: int, direction: Tensor, unit: float) -> nn.Module:
    """Return a copy of the network whose loss is the mean of `unit` <direction, f> over its pictures, f being the last layer's inputs."""
    model = deepcopy(seen.model)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name in (layer.weight, layer.bias):
                value.zero_()
        model.get_parameter(layer.weight)[target] = direction
    set_loss(model, CustomLoss(lambda logits, _: unit * logits[:, target].mean(), "the mean output of the target class"))
    return model
