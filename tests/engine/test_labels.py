"""Labels read from the gradient: exactly for one picture, as computed by hand for a batch, with and without a bias."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from small_problems import altered, observed, smooth
from torch import nn

from leakage.engine import labels as rules
from leakage.engine.client import gradient_client, use_batch_statistics, weights_of
from leakage.engine.core import Observation, generator
from leakage.engine.label_certainty import calibrated
from leakage.engine.label_counts import guessed_right
from leakage.engine.labels import RULES, Means, Predictions, counts, recover
from leakage.engine.logit_layer import last_layer
from leakage.evaluation.metrics import label_overlap
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import observe, plugin

LENET = Part(id="lenet")


def batch_of(seed: int, size: int, *, model: Part = LENET) -> tuple[Observation, torch.Tensor]:
    """What the server sees of random pictures with uniform labels, and those labels."""
    rng = generator(seed, "truth")
    x, y = torch.rand((size, 1, 8, 8), generator=rng), torch.randint(10, (size,), generator=rng)
    return observe(Experiment(model=model, seed=seed), x, y), y


def overlap(rule: str, draws: int, size: int = 8) -> float:
    """Mean multiset accuracy of a rule over untrained LeNets, all weights ~ U(-0.5, 0.5)."""
    made = [batch_of(seed, size) for seed in range(draws)]
    return sum(label_overlap(recover(seen, rule).labels, y) for seen, y in made) / draws


def received(weight_gradient: list[list[float]], rows: list[float] | None, batch: int, *, shares: list[float] | None = None) -> Observation:
    """A last layer of zeros that received these gradients; its bias predicts `shares` (uniform if None) whatever the picture."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(len(weight_gradient[0]), len(weight_gradient), bias=rows is not None))
    with torch.no_grad():
        model[1].weight.zero_()
        if rows is not None:
            model[1].bias.copy_(torch.tensor(shares or [1.0] * len(weight_gradient)).log())
    update = {"1.weight": torch.tensor(weight_gradient)} | ({} if rows is None else {"1.bias": torch.tensor(rows)})
    shape = (1, 1, len(weight_gradient[0]))
    seen = altered(observed(smooth()), model=model, weights=weights_of(model), update=update)
    return altered(seen, size=batch, image_shape=shape, num_classes=len(weight_gradient))


# ---------------------------------------------------------------- one picture


@pytest.mark.long
def test_the_label_of_one_picture_is_right_on_100_of_100_random_lenets() -> None:
    right = 0
    for seed in range(100):
        seen, y = batch_of(seed, 1)
        found = recover(seen)
        right += torch.equal(found.labels, y)
        assert found.note == {"label rule": "iDLG: the most negative row", "label certainty": 1.0}
    assert right == 100  # dL/dlogit_c = p_c - [c = y] is negative for y alone: no exception is possible


@pytest.mark.parametrize(("rows", "label", "certainty"), [([0.1, -0.3, 0.2], 1, 1), ([-0.1, -0.3, 0.4], 1, 0), ([0.1, 0.2, 0.3], 0, 0)])
def test_one_label_is_certain_when_one_row_is_negative_and_no_other(rows: list[float], label: int, certainty: float) -> None:
    found = recover(received([[0.0]] * 3, rows, 1))
    assert (found.labels.tolist(), found.certainty) == ([label], certainty)


@pytest.mark.parametrize("label", range(4))
def test_one_label_is_found_without_a_bias_although_the_features_sum_is_negative(label: int) -> None:
    rows = torch.full((4,), 0.25) - torch.eye(4)[label]
    weight_gradient = torch.outer(rows, torch.tensor([0.5, -2.0]))
    assert weight_gradient.sum(1).argmin() != label  # what the smallest row sum would have said
    found = recover(received(weight_gradient.tolist(), None, 1))
    assert (found.labels.tolist(), found.certainty) == ([label], 1.0)


# ---------------------------------------------------------------- counts by hand


@pytest.mark.parametrize(
    ("rows", "batch", "labels"),
    [
        ([0.2, -0.9, 0.3, 0.4], 1, [1]),  # one picture: the only negative row
        ([-0.8, 0.3, 0.5], 2, [0, 0]),  # m = -0.8 / 2: row 0 holds two of it
        ([-0.5, -0.1, 0.6], 3, [0, 0, 1]),  # m = -0.6 / 3; after one each -0.3 and 0.1 are left
        ([-0.4, -0.1, 0.5], 5, [0, 0, 0, 0, 1]),  # m = -0.1; after one each -0.3 and 0.0 are left, then -0.2, -0.1
        ([-0.3, -0.1, -0.2, 0.6], 2, [0, 2]),  # more negative rows than pictures: the two smallest
        ([-0.3, 0.1, -0.3, 0.5], 4, [0, 0, 2, 2]),  # m = -0.15: each row holds two of it
        ([0.1, 0.05, 0.2], 2, [1, 1]),  # no negative row: the smallest, for want of anything better
    ],
)
def test_counts_are_those_of_the_subtraction_done_by_hand(rows: list[float], batch: int, labels: list[int]) -> None:
    assert counts(torch.tensor(rows), batch).tolist() == labels


GRADIENTS = [[-0.7, 0.1], [-0.2, -0.12], [0.1, 0.2], [0.7, -0.1]]  # row sums -0.6, -0.32, 0.3, 0.6; row minima -0.7, -0.2, 0.1, -0.1
ROWS = [0.2, -0.1, 0.4, -0.5]


@pytest.mark.parametrize(
    ("rule", "batch", "labels"),
    [
        ("sign", 2, [1, 3]),  # the negative rows of the bias
        ("sign", 3, [1, 3, 3]),  # ... and again from the most negative
        ("gradinversion", 2, [0, 1]),  # the lowest minima
        ("gradinversion", 3, [0, 1, 3]),
        ("gradinversion", 5, [0, 0, 1, 2, 3]),
        ("wainakh", 4, [0, 0, 1, 1]),  # m = 5/4 * -0.92 / 4 = -0.2875; after one each -0.3125 and -0.0325 are left, then -0.025
        ("bias-corrected", 4, [1, 3, 3, 3]),  # m = -0.6 / 4; after one each 0.05 and -0.35 are left, then -0.2
    ],
)
def test_every_rule_finds_what_was_computed_by_hand(rule: str, batch: int, labels: list[int]) -> None:
    found = recover(received(GRADIENTS, ROWS, batch), rule)
    assert found.labels.tolist() == labels
    assert found.rule == rules.RULE_TITLES[rule]


def test_what_a_label_explains_is_subtracted_from_its_own_row() -> None:
    def published(sums: list[float], batch: int) -> list[int]:  # the loop variable of stage 1, left at the last class, is the index
        m, left, found = 1.25 * sum(min(value, 0) for value in sums) / batch, list(sums), []
        for index in range(4):
            if left[index] < 0:
                found.append(index)
                left[index] -= m
        while len(found) < batch:
            found.append(left.index(min(left)))
            left[index] -= m
        return sorted(found)

    assert published([-0.5, -0.4, 0.3, 0.6], 4) == [0, 0, 0, 1]
    assert counts(torch.tensor([-0.5, -0.4, 0.3, 0.6]), 4, factor=1.25).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("rule", ["best", "matched prior", "model prior"])
def test_the_prior_is_exact_where_the_mean_prediction_is_known(rule: str) -> None:
    shares = [0.5, 0.25, 0.125, 0.125]
    rows = [0.5, 0.0, -0.625, 0.125]  # shares - [0, 1, 3, 0] / 4
    seen = received([[0.0]] * 4, rows, 4, shares=shares)
    assert recover(seen, rule).labels.tolist() == [1, 2, 2, 2]
    assert recover(seen, rule).certainty == pytest.approx(1, abs=1e-6)  # float32: nothing is unexplained, all probes are equal
    assert recover(seen, "bias-corrected").labels.tolist() == [2, 2, 2, 2]  # what the prior corrects: one of four is wrong ...
    told = calibrated(0.75, guessed_right(4, 4))  # the attacker can tell
    assert recover(seen, "bias-corrected").certainty == pytest.approx(told, abs=1e-6)


@pytest.mark.parametrize("rule", ["best", "matched prior", "model prior"])
def test_without_a_bias_the_prior_is_exact_where_the_mean_feature_is_known(rule: str) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.Linear(5, 4, bias=False))
    with torch.no_grad():
        for value, number in zip(model.parameters(), (0, -2, 0), strict=True):  # all features are -2, all predictions 1/4
            value.fill_(number)
    weights, y = weights_of(model), torch.tensor([3, 1, 3, 3, 0])
    update, _ = gradient_client(model)(weights, smooth(5), y, {})
    seen = altered(observed(smooth()), model=model, weights=weights, update=update, size=5, num_classes=4)
    found = recover(seen, rule)
    assert found.labels.tolist() == [0, 1, 3, 3, 3]
    assert found.rule == rules.RULE_TITLES["rehearsed" if rule == "best" else "model prior"]
    assert found.certainty == pytest.approx(1, abs=1e-6)  # every feature is the same, so every rehearsal shows its counts exactly


def test_the_counts_are_the_nearest_of_all_that_sum_to_the_batch() -> None:
    rng = generator(0, "wanted")
    for _ in range(50):
        wanted = 3 * torch.randn(3, generator=rng)
        every = [n for n in product(range(6), repeat=3) if sum(n) == 5]
        best = min(every, key=lambda n: float((torch.tensor(n) - wanted).square().sum()))
        assert torch.bincount(rules.nearest_counts(wanted, 5), minlength=3).tolist() == list(best)


def test_probes_move_by_what_their_mean_feature_lacks() -> None:
    rows = torch.tensor([-0.5, 0.25, 0.25])
    probes = Predictions(torch.zeros(2, 3), torch.tensor([[0.0, 2.0], [2.0, 0.0]]))  # mean feature (1, 1)
    weight_gradient = torch.outer(rows, torch.tensor([2.0, 4.0]))  # the gradient shows (2, 4): the step is (1, 3)
    weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])
    assert rules.moved(probes, weight, rows, weight_gradient).tolist() == [[1, 3, -1]] * 2
    assert rules.moved(probes, weight, 0 * rows, 0 * weight_gradient).tolist() == [[0, 0, 0]] * 2


# ---------------------------------------------------------------- what the matched prior leaves unexplained


def test_warranted_is_what_predictions_and_gradient_leave_of_the_labels() -> None:
    level, rows = torch.full((2,), 0.5), torch.tensor([-0.1, 0.1])  # 1/2 - 3/5, 1/2 - 2/5
    assert rules.warranted(torch.tensor([0, 0, 0, 1, 1]), Means(rows, level, level)) == pytest.approx(1)
    assert rules.warranted(torch.tensor([0, 0, 0, 0, 0]), Means(rows, level, level)) == pytest.approx(0.6)  # two of five are wrong
    corrected = torch.tensor([0.3, 0.7])  # from one half each: 0.2
    assert rules.warranted(torch.tensor([0, 0, 1, 1, 1]), Means(rows, level, corrected)) == pytest.approx(0.8)
    assert rules.warranted(torch.tensor([0, 0, 0, 1, 1]), Means(rows, level, corrected)) == pytest.approx(
        0.6
    )  # and one of five unexplained
    assert rules.warranted(torch.zeros(8).long(), Means(torch.tensor([5.0, -5.0]), level, level)) == 0


# ---------------------------------------------------------------- nets


@pytest.mark.long
def test_the_priors_find_97_percent_of_the_labels_of_8_on_untrained_lenets() -> None:
    assert overlap("model prior", 30) >= 0.97  # 0.996 over 100 of them
    assert overlap("best", 30) >= 0.97


@pytest.mark.long
def test_bias_corrected_counts_find_as_many_labels_as_published() -> None:
    assert overlap("bias-corrected", 50) == pytest.approx(0.84, abs=0.05)  # on 100 LeNets ~ U(-0.5, 0.5); ours are 50 with other pictures


def test_probes_that_are_moved_make_up_for_pictures_unlike_them() -> None:
    right = {"model prior": 0.0, "matched prior": 0.0}
    for seed in range(6):
        rng = generator(seed, "truth")
        x, y = 0.2 * torch.rand((32, 3, 16, 16), generator=rng), torch.randint(10, (32,), generator=rng)
        seen = observe(Experiment(model=Part(id="resnet", fields={"width": 8}), seed=seed), x, y)  # all of them dark
        for rule in right:
            right[rule] += label_overlap(recover(seen, rule).labels, y) / 6
    assert right["matched prior"] >= 0.9
    assert right["matched prior"] > right["model prior"] + 0.03


def test_a_protocols_average_is_what_is_read() -> None:
    seen, y = batch_of(0, 8)
    sent = altered(
        seen, update={n: -3 * v for n, v in seen.received.update.items()}, to_gradient=lambda u: {n: v / -3 for n, v in u.items()}
    )
    for rule in RULES:
        assert torch.equal(recover(sent, rule).labels, recover(seen, rule).labels)
    assert recover(sent).labels.tolist() == sorted(y.tolist())


def with_last_layer(y: torch.Tensor, *, bias: bool) -> Observation:
    """A batch's gradient of a small net with features of at least 0, and a last layer with or without a bias."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 20), nn.Sigmoid(), nn.Linear(20, 10, bias=bias))
    x, weights = smooth(len(y)), weights_of(model)
    update, _ = gradient_client(model)(weights, x, y, {})
    return altered(observed(x), model=model, weights=weights, update=update, size=len(y))


@pytest.mark.parametrize("label", range(10))
@pytest.mark.parametrize("bias", [True, False])
def test_one_label_is_read_from_the_bias_or_without_one_from_the_weight(label: int, bias: bool) -> None:
    assert recover(with_last_layer(torch.tensor([label]), bias=bias)).labels.tolist() == [label]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rule", RULES)
def test_three_distinct_labels_are_read_by_every_rule_with_and_without_a_bias(rule: str, bias: bool) -> None:
    assert recover(with_last_layer(torch.tensor([9, 0, 5]), bias=bias), rule).labels.tolist() == [0, 5, 9]


# ---------------------------------------------------------------- what every rule keeps


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.long
def test_there_are_always_as_many_labels_as_pictures(rule: str, bias: bool) -> None:
    rng = generator(0, "noise")
    for size, scale in product((1, 2, 13, 40), (1.0, 0.0, -1e-3, math.inf, math.nan)):
        noise = {"1.weight": scale * torch.randn(4, 3, generator=rng), "1.bias": scale * torch.randn(4, generator=rng)}
        seen = altered(received([[0.0] * 3] * 4, [0.0] * 4 if bias else None, size), update=noise)
        found = recover(seen, rule)
        assert (found.labels.shape, found.labels.dtype) == ((size,), torch.int64)
        assert found.labels.tolist() == sorted(found.labels.tolist())
        assert 0 <= found.labels.min() <= found.labels.max() < 4
        assert found.certainty is None or 0 <= found.certainty <= 1


def test_a_prediction_that_is_not_finite_is_said_and_not_used() -> None:
    seen = received([[0.0]] * 4, ROWS, 4, shares=[1.0, 1.0, 1.0, math.nan])
    found = recover(seen)
    assert found.rule == "bias-corrected counts of the negative rows: the model's prediction is not finite"
    assert found.labels.tolist() == [1, 3, 3, 3]
    assert found.note == {"label rule": found.rule}


class Watched(nn.Module):
    """Keeps what comes by."""

    def __init__(self) -> None:
        super().__init__()
        self.met: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.met.append(x.clone())
        return x


def test_probes_are_pictures_come_as_many_at_a_time_as_the_batch_has_and_leave_nothing_behind() -> None:
    watched = Watched()
    model = nn.Sequential(watched, nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(72, 10)).eval()
    use_batch_statistics(model, smooth(5))
    update = {name: torch.randn_like(value) for name, value in weights_of(model).items()}
    seen = altered(observed(smooth()), model=model, weights=weights_of(model), update=update, size=5)
    last_layer(seen)  # once for each model
    watched.met.clear()
    torch.rand(3)  # a state that no seeding leaves behind
    state, before = torch.get_rng_state(), {name: value.clone() for name, value in model.state_dict().items()}
    first = recover(seen)
    again = recover(replace(seen))  # another observation, so that nothing is remembered
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(layer._forward_pre_hooks for layer in model.modules())
    assert {len(met) for met in watched.met} == {5}
    assert all(met.min() >= 0 and met.max() <= 1 for met in watched.met)
    assert sum(map(len, watched.met)) == 2 * 65  # 64 varied ones, filled up; the update was changed, so that no prior needs the smooth ones
    assert torch.equal(torch.cat(watched.met[:13]), torch.cat(watched.met[13:]))
    assert torch.equal(first.labels, again.labels)
    assert not first.labels.requires_grad


def test_large_pictures_take_fewer_probes() -> None:
    watched = Watched()
    model = nn.Sequential(watched, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 10))
    seen = altered(observed(smooth()), model=model, weights=weights_of(model), size=2, image_shape=(3, 224, 224))
    last_layer(seen)
    watched.met.clear()
    rules.predict(seen)
    assert sum(map(len, watched.met)) == 16


def test_the_field_offers_every_rule_and_another_word_is_refused() -> None:
    assert rules.rule_field().metadata["options"] == RULES == ("best", *rules.RULE_TITLES)
    assert plugin("attack", Part(id="idlg")).label_rule == "best"
    with pytest.raises(ValueError, match=r"must be one of best, rehearsed.*got 'worst'"):
        recover(received(GRADIENTS, ROWS, 2), "worst")
