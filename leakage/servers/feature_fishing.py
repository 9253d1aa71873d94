"""Fishing by a feature: a threshold moves from round to round until a single picture lies between two of its values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from leakage.engine.capabilities import capabilities_of
from leakage.engine.core import Observation, Params, Round, Server, Transcript, param
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.logit_layer import LogitLayer
from leakage.servers._fishing import Catch, separable, separated
from leakage.servers._last_layer import check_last_layer, features_of, last_layer_of
from leakage.spec.words import counted

SEVERAL = 1.5  # a group of at least so many pictures is divided further
SINGLE = 0.25  # a count that differs from 1 by at most this is that of one picture
NOT_ALONE = "{} has watched {}, and no two neighbouring thresholds have a single picture between them yet. Raise the number of rounds."
NO_FEATURE = "server: {} names feature {}, and the last layer has the features 0 to {}. Choose one of them, or -1."


class Asked(NamedTuple):
    """A threshold that was handed out, and what the last layer's bias gradient of the target class was then, in any unit."""

    threshold: float
    bias_gradient: float


@dataclass(frozen=True, kw_only=True)
class FeatureFishing(Server):
    """Set the last layer to w_t = A e_j, b_t = -A theta + ln(K - 1), and all else to 0: class t is predicted with p_t = s(A (f_j - theta)).

    s is the logistic function and f_j a feature, an input of the last layer. A picture of another class with f_j > theta has p_t = 1 and
    adds A df_j / d body to the gradient of the body; with f_j < theta it adds nothing. For a picture of class t it is the other way round,
    with the opposite sign. So G(theta_1) - G(theta_2) = (A / B) times the sum of df_j / d body over the pictures with
    theta_1 < f_j < theta_2, whatever their classes are. The bias gradient of class t falls by 1 / B for each of them, which counts them.
    The two outer thresholds come first: the least and the largest f_j of random pictures, widened by their distance on both sides. Each
    further round divides the smallest group of at least two pictures in the middle of its interval, so three rounds are the fewest. Of
    batches of 2 to 128 CIFAR-10 pictures and the features of an untrained LeNet or ConvNet, half had a single picture in a group after
    5 to 7 rounds, and nine of ten after 7 to 10 (300 draws of each). The size of the batch hardly matters, because a small group is soon
    found. A picture at the distance d from a threshold is separated up to exp(-A d), so A must be about 60 / d.

    `isolate` returns the observation of one picture, with the gradient df_j / d body, and a network whose loss is f_j, both times one
    number. The row t of the last layer gives all features of this picture, dG_w / dG_b, which a search compares too. The class of the
    picture does not show; the target class stands in its place. After several local steps the thresholds have moved, so that nothing is
    separated.
    Source: Wen et al. 2022, section 3.3. Unlike the paper: the difference of two rounds in place of one cut-off, so that a picture is
    separated in a batch of any size, and no public statistics of f_j are needed.
    """

    title = "Moves a threshold until one picture is alone (feature fishing)"
    short = "Feature fishing"
    plain = "The server watches several rounds of the same pictures. It moves a threshold until one picture lies between two values."
    hint = (
        "Watch ten rounds of one batch: they suffice for nine of ten batches, and seven rounds for half of them. "
        "The attack then works as on a single picture, of any class."
    )
    source = "https://arxiv.org/abs/2202.00580"
    rounds = 3
    last_layer = "bias"
    classes = ("target",)
    separates = True
    one_step = True

    target: int = param(0, 0, 9999, "The class whose row of the last layer is used; the pictures may be of any class.")
    feature: int = param(-1, -1, 1_000_000, "The number of the feature; -1: the feature that varies most over random pictures.")
    sharpness: float = param(1e5, 1, 1e7, "How sharply pictures are told apart (A in the formula). The larger, the closer two may be.")

    def rebuild(self, model: nn.Module, image_shape: tuple[int, int, int], members: int) -> nn.Module:
        layer = check_last_layer(self, model, image_shape, classes=(self.target,), bias=True)
        features = model.get_parameter(layer.weight).shape[1]
        if self.feature >= features:
            raise ValueError(NO_FEATURE.format(self.short, self.feature, features - 1))
        return model

    def hand_out(self, model: nn.Module, weights: Params, history: Sequence[Round], rng: torch.Generator) -> Params:
        layer = last_layer_of(model)
        entered = features_of(model, layer, weights, capabilities_of(model).image_shape)  # (P, D)
        feature = int(entered.std(0).argmax()) if self.feature < 0 else self.feature
        low, high = float(entered[:, feature].min()), float(entered[:, feature].max())
        asked = [self._asked(layer, seen) for seen in history]
        count = history[0].count if history else 1
        return self.at_threshold(weights, layer, feature, self.next_threshold(asked, (2 * low - high, 2 * high - low), count))

    def at_threshold(self, weights: Params, layer: LogitLayer, feature: int, threshold: float) -> Params:
        """Return weights with a last layer that divides pictures at a threshold of a feature.

        Args:
            weights: the base weights, by parameter.
            layer: the last layer.
            feature: the number of the feature.
            threshold: where pictures are divided.
        """
        assert layer.bias
        weight, bias = torch.zeros_like(weights[layer.weight]), torch.zeros_like(weights[layer.bias])
        with torch.no_grad():
            weight[self.target, feature] = self.sharpness
            bias[self.target] = self._offset(len(bias)) - self.sharpness * threshold
        return {**weights, layer.weight: weight, layer.bias: bias}

    def next_threshold(self, asked: Sequence[Asked], ends: tuple[float, float], count: int) -> float:
        """Return the threshold of the next round.

        Args:
            asked: the thresholds of the earlier rounds, in their order; the first two are the outer ones.
            ends: the least and the largest threshold.
            count: B, the number of pictures.

        Returns:
            A threshold that divides the smallest group of at least two pictures; the last one again if there is no such group.
        """
        if len(asked) < 2:
            return ends[len(asked)]
        all_pictures = asked[0].bias_gradient - asked[1].bias_gradient
        if all_pictures == 0:  # each feature is outside
            return sum(ends) / 2
        line = sorted(asked)
        groups = [
            (count * (left.bias_gradient - right.bias_gradient) / all_pictures, (left.threshold + right.threshold) / 2)
            for left, right in pairwise(line)
        ]
        several = [group for group in groups if group[0] >= SEVERAL]
        return min(several)[1] if several else asked[-1].threshold

    def isolate(self, seen: Observation, members: int) -> Observation:
        layer, history = last_layer_of(seen.model), seen.received.history
        if layer.bias is None or not separable(seen, layer, self.short):
            return seen
        line = sorted((self._asked(layer, past).threshold, number) for number, past in enumerate(history))
        gradients = [seen.replay.to_gradient(history[number].update) for _, number in line]
        size = seen.batch.size
        unit = 1.0 if seen.knowledge.adaptive else _scale(seen.received, layer.bias)
        counts = [size * float((left[layer.bias] - right[layer.bias])[self.target]) / unit for left, right in pairwise(gradients)]
        best = min(range(len(counts)), key=lambda number: abs(counts[number] - 1), default=None)
        if best is None or abs(counts[best] - 1) > SINGLE:
            raise DoesNotApplyError(NOT_ALONE.format(self.short, counted(len(history), "round")))
        row = seen.received.weights[layer.weight][self.target].detach()
        changes = {name: gradients[best][name] - gradients[best + 1][name] for name in gradients[best] if name in seen.received.weights}
        features = changes.pop(layer.weight)[self.target] / changes.pop(layer.bias)[self.target]
        scale = size / self.sharpness / unit
        span = f"{line[best][0]:.4g} and {line[best + 1][0]:.4g}"
        named = f"feature {int(row.argmax())} between {span}, after {counted(len(history), 'round')}"
        catch = Catch(
            body={name: scale * change for name, change in changes.items()},
            features=features,
            direction=row / self.sharpness,
            target=self.target,
            labels=torch.tensor([self.target], device=seen.device),
            scale=2**0.5 * scale,
            feature_scale=2**0.5 * size,
            words=f"the picture of {size} with {named}; its class does not show",
        )
        return separated(seen, layer, catch)

    def _asked(self, layer: LogitLayer, seen: Round) -> Asked:
        """Return the threshold of an earlier round, read from the weights that were handed out, and its bias gradient."""
        assert layer.bias
        bias = float(seen.weights[layer.bias][self.target].detach())
        rows: Tensor = seen.update[layer.bias]
        return Asked((self._offset(len(rows)) - bias) / self.sharpness, float(rows[self.target]))

    def _offset(self, classes: int) -> float:
        """Return ln(K - 1), with which class t and all others together are equally likely at the threshold."""
        return math.log(classes - 1)


def _scale(received: Transcript, name: str) -> float:
    """Return what arrives as a multiple of the gradient that a naive attacker takes it for, by one parameter; 1 where that is 0."""
    attacked = next(past for past in received.history if torch.equal(past.weights[name], received.weights[name]))
    arrived, gradient = attacked.update[name], received.update[name]
    along = float((arrived * gradient).sum())
    return float((arrived * arrived).sum()) / along if along else 1.0
