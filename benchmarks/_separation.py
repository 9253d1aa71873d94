"""Shared parts of the benchmark of cheating servers: how exactly fishing separates the gradient of one class or of one picture."""

from collections.abc import Mapping
from typing import Any

import torch
from _cheating import drawn
from torch import Tensor, nn

from leakage.engine.client import gradient_client, weights_of
from leakage.engine.logit_layer import LogitLayer
from leakage.servers._last_layer import last_layer_of
from leakage.servers.feature_fishing import FeatureFishing
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers.adapter import initial_model, observe

BATCH = 64
PLACES = {"widest": 0, "31st of 62": 30, "56th of 62": 55}  # of the pictures, sorted by the smaller of the two gaps beside them


def error_of(found: Mapping[str, Tensor], truth: Mapping[str, Tensor]) -> float:
    """Return the length of the difference over the length of the truth, over all parameters of the truth, in float64."""
    left, right = (torch.cat([part[name].double().flatten() for name in truth]) for part in (found, truth))
    return float((left - right).norm() / right.norm())


def fished_classes(precision: str, draw: int) -> dict[str, Any]:
    """Return the largest relative difference over the classes of a batch, between its body's gradient and that of one class alone."""
    x, y = drawn("cifar10", draw, BATCH)
    x = x.double() if precision == "float64" else x
    errors = []
    for target in y.unique().tolist():
        own = y == target
        pictures = ({"source": "cifar10", "id": "0"},)
        part = Part(id="class_fishing", fields={"target": target})
        asked = Experiment(pictures=pictures, server=part, precision=precision, seed=draw)  # type: ignore[arg-type]
        seen, alone = observe(asked, x, y), observe(asked, x[own], y[own])
        layer, scale = last_layer_of(seen.model), int(own.sum()) / BATCH
        truth = {name: scale * g for name, g in alone.as_gradient().items() if name not in (layer.weight, layer.bias)}
        errors.append(error_of(seen.as_gradient(), truth))
    return {"classes": len(errors), "largest": max(errors)}


def fished_feature(sharpness: float, place: str, draw: int) -> dict[str, float]:
    """Return the distance from a picture to the nearer threshold, and the relative error of the gradient of its feature, in float32.

    The feature is the one that varies most; the thresholds lie in the middle between the picture and its neighbours by this feature.
    """
    x, y = drawn("cifar10", draw, BATCH)
    model = initial_model(Experiment(pictures=(Picture(source="cifar10", id="0"),), seed=draw), x)
    layer, base, send = last_layer_of(model), weights_of(model), gradient_client(model)
    features = entered(model, layer, x)
    number = int(features.std(0).argmax())
    order = features[:, number].argsort()
    line = features[order, number].detach()
    gaps = line.diff()
    places = sorted(range(1, BATCH - 1), key=lambda middle: -float(min(gaps[middle - 1], gaps[middle])))
    middle = places[PLACES[place]]
    fishing, sent = FeatureFishing(sharpness=sharpness, feature=number), []
    for threshold in (float(line[middle - 1] + line[middle]) / 2, float(line[middle] + line[middle + 1]) / 2):
        weights = fishing.at_threshold(base, layer, number, threshold)
        sent.append(send({name: value.detach().requires_grad_() for name, value in weights.items()}, x, y, {})[0])
    names = [name for name in base if name not in (layer.weight, layer.bias)]
    own = entered(model, layer, x[order[middle : middle + 1]])[0, number]
    truth = dict(zip(names, torch.autograd.grad(own, [model.get_parameter(name) for name in names]), strict=True))
    found = {name: (sent[0][name] - sent[1][name]) * BATCH / sharpness for name in names}
    return {"distance": float(min(gaps[middle - 1], gaps[middle])) / 2, "error": error_of(found, truth)}


def entered(model: nn.Module, layer: LogitLayer, x: Tensor) -> Tensor:
    """Return what enters the last layer for pictures x (B, C, H, W): features (B, D)."""
    kept = list[Tensor]()
    with model.get_submodule(layer.weight.rpartition(".")[0]).register_forward_pre_hook(lambda _, given: kept.append(given[0])):
        model(x)
    return kept[0]
