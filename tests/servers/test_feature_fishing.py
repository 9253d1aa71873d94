"""Fishing by a feature: the difference of two rounds is the gradient of one picture's feature, as exactly as the gap allows."""

from itertools import pairwise

import pytest
import torch
from small_problems import precision, relative, smooth
from torch import nn

from leakage.data.images import read
from leakage.engine.client import gradient_client, weights_of
from leakage.engine.core import DoesNotApplyError, Observation, Params
from leakage.engine.logit_layer import LogitLayer
from leakage.servers.feature_fishing import Asked, FeatureFishing
from leakage.spec.experiment import Assumptions, Experiment, Part, SpecError
from leakage.workers import plugin_catalog
from leakage.workers.adapter import observe, plugin

LAYER = LogitLayer("7.weight", "7.bias", plain=True)
Y = torch.tensor([3, 1, 0, 3, 5, 2, 3, 7])
FISHING = Part(id="feature_fishing")


def seen_by(rounds: int, **settings: object) -> Observation:
    with precision(torch.float64):
        x = smooth(len(Y), channels=3, side=28, seed=1).double()
        return observe(Experiment(**{"model": Part(id="lenet"), "server": FISHING, "rounds": rounds} | settings), x, Y)


def body(update: Params) -> Params:
    return {name: value for name, value in update.items() if not name.startswith(("7.", "linear."))}


def test_after_some_rounds_one_picture_is_left() -> None:
    seen = seen_by(10)
    left = plugin("server", FISHING).isolate(seen, 1)
    x = smooth(len(Y), channels=3, side=28, seed=1).double()
    errors = [relative(left.gradient(picture[None], Y[:1]), left.as_gradient()) for picture in x]
    assert sorted(errors)[0] < 1e-9
    assert sorted(errors)[1] > 1e-3
    assert left.batch.size == 1
    assert "its class does not show" in left.isolated
    with pytest.raises(
        DoesNotApplyError, match="has watched 2 rounds, and no two neighbouring thresholds have a single picture between them yet"
    ):
        plugin("server", FISHING).isolate(seen_by(2), 1)


@pytest.mark.parametrize(
    "settings", [{}, {"aggregation": Part(id="secure_aggregation", fields={"clients": 4})}], ids=["one phone", "a sum"]
)
def test_a_naive_attacker_is_left_with_the_same_picture(settings: dict[str, Part]) -> None:
    seen = {adaptive: seen_by(10, assume=Assumptions(adaptive=adaptive), **settings) for adaptive in (True, False)}
    members = 4 if settings else 1
    left = {adaptive: plugin("server", FISHING).isolate(one, members) for adaptive, one in seen.items()}
    assert left[False].isolated == left[True].isolated
    assert relative(left[False].as_gradient(), left[True].as_gradient()) < 1e-9


def test_in_a_sum_over_phones_the_same_picture_is_left() -> None:
    sum_of = {"aggregation": Part(id="secure_aggregation", fields={"clients": 4})}
    left, one = (plugin("server", FISHING).isolate(seen, members) for seen, members in ((seen_by(10, **sum_of), 4), (seen_by(10), 1)))
    assert left.isolated == one.isolated
    assert relative(left.as_gradient(), one.as_gradient()) < 1e-8


def test_the_smallest_group_of_several_is_divided_in_the_middle() -> None:
    fishing, ends = FeatureFishing(), (0.0, 1.0)
    assert [fishing.next_threshold([], ends, 8), fishing.next_threshold([Asked(0.0, 1.0)], ends, 8)] == [0.0, 1.0]
    asked = [Asked(0.0, 1.0), Asked(1.0, 0.0)]  # 8 pictures between 0 and 1
    assert fishing.next_threshold(asked, ends, 8) == 0.5
    asked.append(Asked(0.5, 0.25))  # 6 below, 2 above
    assert fishing.next_threshold(asked, ends, 8) == 0.75
    asked.append(Asked(0.75, 0.125))  # 1 and 1 above: the 6 are next
    assert fishing.next_threshold(asked, ends, 8) == 0.25


def rounds_until_one_is_alone(features: torch.Tensor) -> int:
    """Return the first round after which a single picture of these features (B,) is between two thresholds, from 0 to 1."""
    fishing, asked = FeatureFishing(), list[Asked]()
    while True:
        threshold = fishing.next_threshold(asked, (0.0, 1.0), len(features))
        asked.append(Asked(threshold, float((features > threshold).double().mean())))
        line = sorted(asked)
        if 1 in [round(len(features) * (left.bias_gradient - right.bias_gradient)) for left, right in pairwise(line)]:
            return len(asked)


@pytest.mark.parametrize("size", [2, 8, 32, 64])
def test_half_of_the_batches_have_a_single_picture_after_seven_rounds_and_nine_of_ten_after_ten(size: int) -> None:
    draw = torch.Generator().manual_seed(1)
    needed = [rounds_until_one_is_alone(0.5 + 0.05 * torch.randn(size, generator=draw)) for _ in range(200)]
    assert min(needed) >= 3
    assert sorted(needed)[100] <= 7
    assert 7 <= sorted(needed)[180] <= 10


def lenet() -> nn.Sequential:
    """Return LeNet with weights U(-0.5, 0.5) of seed 0, drawn in float64 as for the published figures of the specification."""
    torch.manual_seed(0)
    layers = (nn.Conv2d(3, 12, 5, 2, 2), nn.Conv2d(12, 12, 5, 2, 2), nn.Conv2d(12, 12, 5, 1, 2))
    model = nn.Sequential(*(part for layer in layers for part in (layer, nn.Sigmoid())), nn.Flatten(), nn.Linear(768, 10)).double()
    for value in model.parameters():
        nn.init.uniform_(value, -0.5, 0.5)
    return model


MEASURED = {1e3: (4e-6, 8e-2, 1e-1), 1e4: (4e-6, 7e-6, 1e-2), 1e5: (6e-6, 6e-6, 6e-6)}  # A -> the error at gaps of 0.03, 0.002 and 0.0007


@pytest.mark.parametrize("sharpness", MEASURED)
def test_the_error_follows_from_the_gap_and_the_sharpness(sharpness: float) -> None:
    try:
        pictures = [torch.from_numpy(read("cifar10", str(number), 32, 3).copy()) for number in range(64)]
    except (OSError, KeyError, ValueError):
        pytest.skip("CIFAR-10 is not here.")
    x, model = torch.stack(pictures).permute(0, 3, 1, 2).float() / 255, lenet().float()
    y = torch.arange(64) % 10
    features = model[:7](x).detach()
    number = int(features.std(0).argmax())
    order = features[:, number].argsort()
    line = features[order, number]
    gaps = line.diff()
    places = sorted(range(1, 63), key=lambda place: -float(min(gaps[place - 1], gaps[place])))
    fishing, base, send = FeatureFishing(sharpness=sharpness, feature=number), weights_of(model), gradient_client(model)
    for place, expected in zip((places[0], places[30], places[55]), MEASURED[sharpness], strict=True):
        sent = []
        for threshold in (float(line[place - 1] + line[place]) / 2, float(line[place] + line[place + 1]) / 2):
            weights = fishing.at_threshold(base, LAYER, number, threshold)
            sent.append(send({name: value.detach().requires_grad_() for name, value in weights.items()}, x, y, {})[0])
        found = {name: (sent[0][name] - sent[1][name]) * 64 / sharpness for name in body(sent[0])}
        own = model[:7](x[order[place : place + 1]])[0, number]
        names = list(found)
        truth = dict(zip(names, torch.autograd.grad(own, [base[name] for name in names]), strict=True))
        error = relative(found, truth)
        assert error < 2 * expected
        assert expected <= 6e-6 or error > expected / 2


def test_what_does_not_fit_is_refused_with_a_sentence() -> None:
    known = plugin_catalog.describe()
    with pytest.raises(SpecError, match="rounds: Feature fishing needs at least 3 watched rounds, given was 2"):
        Experiment(server=FISHING, rounds=2).resolve(known)
    with pytest.raises(SpecError, match="Feature fishing needs phones that take one local step, given were 5 steps"):
        Experiment(server=FISHING, rounds=8, protocol=Part(id="fedavg", fields={"epochs": 5})).resolve(known)
    with pytest.raises(ValueError, match="names feature 1000000, and the last layer has the features 0 to 587"):
        seen_by(2, server=Part(id="feature_fishing", fields={"feature": 1_000_000}))
