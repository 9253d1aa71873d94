"""Labels read from the gradient: exactly for one picture, by hand-computed counts for a batch, with and without a bias."""

from dataclasses import replace

import pytest
import torch
from problems import observed, smooth
from torch import nn

from leakage.engine.client import gradient_client, weights_of
from leakage.engine.core import Observation, generator
from leakage.engine.labels import counts, last_layer, recover
from leakage.engine.metrics import label_overlap
from leakage.engine.play import observe
from leakage.spec import Experiment, Part

LENET = Part(id="lenet")


def test_the_label_of_one_picture_is_right_on_100_of_100_random_lenets() -> None:
    right = 0
    for seed in range(100):
        rng = generator(seed, "truth")
        x, y = torch.rand((1, 1, 8, 8), generator=rng), torch.randint(10, (1,), generator=rng)
        found, rule = recover(observe(Experiment(model=LENET, seed=seed), x, y))
        right += bool(torch.equal(found, y))
        assert rule.startswith("iDLG")
    assert right == 100  # dL/dlogit_c = p_c - [c = y] is negative for y alone: no exception is possible


def test_labels_of_batches_with_repetitions_are_found_as_often_as_published() -> None:
    overlaps = []
    for seed in range(50):
        rng = generator(seed, "truth")
        x, y = torch.rand((8, 1, 8, 8), generator=rng), torch.randint(10, (8,), generator=rng)
        found, _ = recover(observe(Experiment(model=LENET, seed=seed), x, y))
        overlaps.append(label_overlap(found, y))
    mean = sum(overlaps) / len(overlaps)
    assert mean == pytest.approx(0.84, abs=0.05)  # this rule on LeNets ~ U(-0.5, 0.5), 100 of them; ours are 50 with other pictures


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


def with_last_layer(y: torch.Tensor, *, bias: bool) -> Observation:
    """A batch's gradient of a small net whose features are not negative and whose last layer has a bias or none."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 20), nn.Sigmoid(), nn.Linear(20, 10, bias=bias))
    x, weights = smooth(len(y)), weights_of(model)
    update, _ = gradient_client(model)(weights, x, y, {})
    return replace(observed(x), model=model, weights=weights, update=update, batch_size=len(y))


@pytest.mark.parametrize("label", range(10))
@pytest.mark.parametrize("bias", [True, False])
def test_one_label_is_read_from_the_bias_or_without_one_from_the_row_sums(label: int, bias: bool) -> None:
    assert recover(with_last_layer(torch.tensor([label]), bias=bias))[0].tolist() == [label]


@pytest.mark.parametrize("bias", [True, False])
def test_three_distinct_labels_are_read_with_and_without_a_bias(bias: bool) -> None:
    assert recover(with_last_layer(torch.tensor([9, 0, 5]), bias=bias))[0].tolist() == [0, 5, 9]


def test_the_last_linear_layer_is_found_by_name_and_its_absence_is_said() -> None:
    assert last_layer(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2, bias=False))) == ("2.weight", None)
    assert last_layer(nn.Linear(4, 3)) == ("weight", "bias")
    with pytest.raises(ValueError, match="needs a linear last layer; this model has none"):
        last_layer(nn.Sequential(nn.Conv2d(1, 1, 3)))
