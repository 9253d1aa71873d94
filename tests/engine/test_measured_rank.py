"""The measured rank equals the number of singular values of all equations together, and counts by hand."""

import random
from collections.abc import Iterator

import pytest
import torch
from layer_ranks import maps, numerical_rank

from leakage.engine import measured_rank as module
from leakage.engine.measured_rank import measured_rank
from leakage.engine.stopping import StoppedError
from leakage.networks.exact_rank import gradient_rank, predicted_rank
from leakage.networks.grammar import Conv, Map, NetworkError, parse, unroll
from leakage.networks.rank_cost import gradient_seconds, seconds, sides, to_measure, too_large
from leakage.networks.templates import TEMPLATES
from leakage.spec.tasks import Ranks


def layer(text: str, *shape: int) -> Map:
    return maps(text, shape)[0]


def drawn(count: int) -> list[Map]:
    """Random small convolutions of one to four channels, one in three within the conditions of the formula."""
    rng, found = random.Random(3), list[Map]()
    while len(found) < count:
        step = Conv(rng.randint(1, 5), rng.randint(1, 12), rng.randint(1, 4), rng.randint(0, 3))
        shape = (rng.randint(1, 4), rng.randint(1, 9), rng.randint(1, 9))
        try:
            one = unroll((step,), shape, 1)[0]
        except NetworkError:
            continue
        if (predicted_rank(one) is not None) == (len(found) % 3 == 0):
            found.append(one)
    return found


@pytest.mark.parametrize("one", drawn(45), ids=lambda one: f"{one.x}-{one.z}-{one.size}-{one.stride}-{one.padding}")
def test_it_is_the_number_of_singular_values_of_all_equations_at_once(one: Map) -> None:
    measured = measured_rank(one, seed=4)
    assert measured == numerical_rank(one, seed=4)
    assert predicted_rank(one) in (None, measured)


@pytest.mark.parametrize("one", drawn(45), ids=lambda one: f"{one.x}-{one.z}-{one.size}-{one.stride}-{one.padding}")
@pytest.mark.long
def test_it_is_the_same_when_one_filter_is_read_at_a_time(one: Map, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AHEAD", 0)
    assert measured_rank(one, seed=4) == numerical_rank(one, seed=4)


@pytest.mark.parametrize(
    ("text", "shape", "rank"),
    [
        ("conv 1@512 /2", (1, 28, 28), 14**2),  # 588 pixels are not met: however many filters, all equations say no more
        ("conv 3@512 /4 p1", (2, 28, 28), 2 * 20**2),
        ("conv 3@64 /2", (2, 10, 10), 2 * 9**2),
    ],
)
def test_no_part_is_read_that_can_add_nothing(text: str, shape: tuple[int, int, int], rank: int) -> None:
    asked: list[int] = []
    assert measured_rank(layer(text, *shape), seed=1, should_stop=lambda: asked.append(1) is not None) == rank
    assert len(asked) == 1  # the gradient's first part holds it all


def test_reading_ends_with_a_part_that_adds_nothing() -> None:
    read = []

    def parts() -> Iterator[torch.Tensor]:
        for number in range(9):
            read.append(number)
            yield torch.eye(5)[: min(number + 1, 3)].double()

    assert module._rank(parts(), 5, 0.0, lambda: False)[0] == 3
    assert read == [0, 1, 2, 3]


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_it_stops_between_two_decompositions(steps: int) -> None:
    left = iter([False] * steps)
    with pytest.raises(StoppedError):
        measured_rank(layer("conv 3@3", 3, 9, 9), seed=1, should_stop=lambda: next(left, True))


@pytest.mark.parametrize(
    ("name", "place", "rank"),
    [
        pytest.param("CNN6-d", 1, 12 * (20 + 40 + 40 + 64) + 1620 - 20**2, id="CNN6-d"),  # 3188 of 3468
        pytest.param("R-GAP's net B", 0, 144 + 2523 - 3**2, marks=pytest.mark.slow, id="B"),  # 2658 of 3072
        pytest.param("R-GAP's net D", 1, 144 + 3136 - 4**2, marks=pytest.mark.slow, id="D"),  # 3264 of 3600
        pytest.param("ResNet18, width 16", 0, 3072, marks=pytest.mark.slow, id="ResNet18"),  # no formula; as the plain SVD
    ],
)
@pytest.mark.long
def test_a_published_layer(name: str, place: int, rank: int) -> None:
    assert measured_rank(maps(name)[place], seed=1) == rank


@pytest.mark.parametrize(
    ("text", "shape", "rank"),
    [
        ("conv 3@2", (2, 3, 3), 18),  # one output: its gradient is a multiple of its input
        ("conv 1@1", (3, 8, 8), 3 + 64 - 1),  # one number of the gradient for each channel, a sum of channels at each pixel, one follows
        ("conv 1@1 /2", (1, 8, 8), 16),  # the pixels that are met
        ("conv 2@30 /3", (2, 9, 9), 2 * 36),  # the same, read in several parts
        ("conv 3@16 /4 p1", (1, 9, 9), 49),  # two rows and columns are not met
        ("conv 4@1", (1, 28, 28), 16 + 625 - 1),
    ],
)
def test_what_can_be_counted_by_hand(text: str, shape: tuple[int, int, int], rank: int) -> None:
    assert measured_rank(layer(text, *shape), seed=1) == rank


def test_the_same_seed_measures_the_same_and_global_generator_is_untouched() -> None:
    before = torch.get_rng_state()
    assert measured_rank(layer("conv 3@2", 2, 7, 7), seed=5) == measured_rank(layer("conv 3@2", 2, 7, 7), seed=5)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_layer_that_is_too_large_is_not_measured() -> None:
    large = layer("conv 3@16 p1", 3, 224, 224)
    assert too_large(large)
    assert measured_rank(large, seed=1) is None
    assert [too_large(layer(text, 3, 64, 64)) for text in ("conv 3@16 p1", "conv 8@3 /4")] == [True, False]


def test_the_sides_of_the_two_matrices() -> None:
    assert sides(layer("conv 4@3", 3, 32, 32)) == (3 * 16, 1024, 3 * 29 * 29, 3 * (1024 - 48))
    assert sides(layer("conv 3@36 p1", 36, 9, 9)) == (324, 81, 36 * 81, 0)
    assert gradient_rank(layer("conv 3@20 /2 p1", 12, 17, 17)) == 12 * (20 + 40 + 40 + 64)
    assert seconds(layer("conv 4@3", 3, 32, 32)) > seconds(layer("conv 4@3", 1, 32, 32))


def test_every_published_chain_can_be_measured() -> None:
    large = {name for name, text in TEMPLATES.items() if any(map(too_large, to_measure(maps(text))))}
    assert large == {f"{name} cut" for name in ("ResNet18, width 16, skip 3", "ResNet101, width 16, skip 3", "ResNet101, width 16, skip 1")}


# ---------------------------------------------------------------- as data


def test_blocks_with_a_skip_are_left_out() -> None:
    assert [one.name for one in Ranks(network="conv 3@4 p1 - block 4 - block 8 /2 cut - mean").layers] == [
        "conv1",
        "block3.conv1",
        "block3.conv2",
    ]
    assert Ranks(network="linear 10").layers == ()
    assert Ranks(network="linear 10").seconds == gradient_seconds(unroll(parse("linear 10"), (3, 32, 32), 10))


def test_equal_networks_have_equal_digests_however_they_are_written() -> None:
    assert Ranks(network="CONV 4@4\nmean").digest() == Ranks(network="conv 4@4 - mean").digest()
    assert Ranks(network="conv 4@4", seed=2).digest() != Ranks(network="conv 4@4").digest()
    assert Ranks.model_validate_json(Ranks(network="conv 4@4").model_dump_json()) == Ranks(network="conv 4@4")


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"network": "cnv 4@4"}, "'cnv 4@4' is not a step"),
        ({"network": "conv 9@4 - conv 11@4 - conv 11@4 - conv 11@4"}, "needs at least 11 pixels a side"),
        ({"network": "conv 4@4", "size": 31}, "28, 32, 64"),
        ({}, "Field required"),
    ],
)
def test_what_cannot_be_measured_is_refused(raw: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Ranks.model_validate(raw)
