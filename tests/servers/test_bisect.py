"""The imprint with bins that are placed anew in each round: which pictures come back, and where the thresholds go."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from photographs import photographs
from small_problems import CATALOG, RELU, altered, moments, precision, relative, smooth
from torch import Tensor

import leakage
from leakage.attacks._repeated import with_repeated
from leakage.engine.core import Observation, Round, generator
from leakage.servers.bisect import ABOVE, BIAS, Bisect, filled_bins, shared_out
from leakage.servers.imprint import BELOW
from leakage.spec.experiment import Experiment, Part, SpecError
from leakage.workers.adapter import observe

LAW = {"mean": 0.5, "deviation": 0.15}  # of the brightness of `smooth` pictures


def seen_in(number: int, x: Tensor, y: Tensor, *, bins: int = 16, **settings: object) -> Observation:
    """Return what the server sees of these pictures after so many rounds, of which the last one is attacked."""
    law = LAW if x.shape[1] == 1 else {}
    server = Part(id="bisect", fields={"bins": bins, **law})
    with precision(torch.float64):
        return observe(Experiment(model=RELU, server=server, rounds=number, attacked_round=number, **settings), x, y)


def batch(size: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    return smooth(size, seed=seed).double(), torch.arange(size) % 10


def found(seen: Observation, x: Tensor, **fields: float) -> Tensor:
    """Return which pictures x (B,) are among the attack's pictures, to 1e-5 in every pixel."""
    answer = moments(Part(id="bins", fields=fields), seen)[-1].x.double()
    return torch.tensor([bool(((answer - picture).abs().amax((1, 2, 3)) < 1e-5).any()) for picture in x])


def thresholds(seen: Observation) -> list[Tensor]:
    """Return the thresholds (K,) of each round."""
    return [-past.weights[BIAS].detach() for past in seen.received.history]


def alone(x: Tensor, edges: Tensor) -> Tensor:
    """Return which pictures (B,) are alone between two neighbouring thresholds."""
    of = torch.searchsorted(edges, x.mean((1, 2, 3)), right=True)
    return torch.tensor([int((of == own).sum()) == 1 for own in of])


def test_all_of_64_pictures_with_different_brightness_come_back_within_12_rounds() -> None:
    x, y = photographs(64)
    assert len(x.mean((1, 2, 3)).unique()) == 64
    counts = [int(found(seen_in(number, x, y, bins=256), x).sum()) for number in (1, 12)]
    assert counts[0] < 60  # some share a bin of the imprint
    assert counts[1] == 64


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_the_pictures_that_are_alone_between_thresholds_come_back_and_stay(number: int) -> None:
    x, y = batch(20)
    seen = seen_in(number, x, y)
    placed = thresholds(seen)
    assert torch.equal(found(seen, x), alone(x, placed[-1]))
    each = [alone(x, edges) for edges in placed]
    assert all(bool((later | ~earlier).all()) for earlier, later in pairwise(each))  # once alone, always alone
    assert number < 5 or int(each[-1].sum()) > int(each[0].sum())


def test_two_pictures_of_equal_brightness_stay_together() -> None:
    x, y = batch(6)
    x = torch.cat([x, x[:1].flip(3)])
    y = torch.tensor([*y.tolist(), 6])
    assert found(seen_in(6, x, y, bins=32), x).tolist() == [False, True, True, True, True, True, False]


def test_a_sum_over_phones_gets_the_same_thresholds_as_one_phone_with_all_pictures() -> None:
    x, y = batch(8)
    one, of_four = seen_in(4, x, y), seen_in(4, x, y, aggregation=Part(id="secure_aggregation", fields={"clients": 4}))
    assert all(torch.allclose(left, right, atol=1e-12) for left, right in zip(thresholds(one), thresholds(of_four), strict=True))
    assert found(of_four, x).all()


def test_local_steps_of_fedavg_leave_all_pictures_to_be_found() -> None:
    x, y = batch(8)
    seen = seen_in(6, x, y, protocol=Part(id="fedavg", fields={"epochs": 1}))
    assert found(seen, x).all()


@pytest.mark.parametrize("protocol", ["fedsgd", "fedavg"])
def test_replaying_the_truth_in_a_later_round_gives_its_update(protocol: str) -> None:
    x, y = batch(8)
    for setting in ({}, {"aggregation": Part(id="secure_aggregation", fields={"clients": 4})}):
        seen = seen_in(3, x, y, protocol=Part(id=protocol), **setting)
        assert relative(seen.replay.single(x, y), seen.update) < 1e-12


def test_from_round_to_round_the_thresholds_move_and_nothing_else() -> None:
    x, y = batch(8)
    first, *_, last = seen_in(3, x, y).received.history
    assert {name for name, value in first.weights.items() if not torch.equal(value, last.weights[name])} == {BIAS}
    assert CATALOG.servers.get("bisect").changes == "architecture"


def test_the_next_thresholds_follow_from_the_rounds_received_alone() -> None:
    x, y = batch(8)
    seen = seen_in(3, x, y)
    first, second, third = seen.received.history
    server, rng = Bisect(bins=16, **LAW), generator(7, "other")
    before = {name: value.clone() for name, value in first.weights.items()}
    assert server.hand_out(seen.model, first.weights, (), rng) is first.weights
    handed = server.hand_out(seen.model, first.weights, (first, second), rng)
    assert torch.equal(handed[BIAS], third.weights[BIAS])
    assert all(torch.equal(first.weights[name], value) for name, value in before.items())


def test_a_round_without_an_answer_leaves_the_thresholds_as_they_were() -> None:
    seen = seen_in(1, *batch(4))
    (first,) = seen.received.history
    silent = replace(first, update={name: torch.zeros_like(value) for name, value in first.update.items()})
    handed = Bisect(bins=16, **LAW).hand_out(seen.model, first.weights, [silent], generator(0, "none"))
    assert torch.equal(handed[BIAS], first.weights[BIAS])


def seen_as(edges: list[float], answers: list[float]) -> Round:
    """Return a round with these thresholds in which the bins sent these bias gradients."""
    sums = torch.tensor(answers, dtype=torch.float64).flip(0).cumsum(0).flip(0)  # row i answers to all bins from i on
    return Round({BIAS: -torch.tensor(edges, dtype=torch.float64)}, {BIAS: sums}, {}, 4)


def test_a_filled_bin_ends_where_its_part_of_the_round_before_ended() -> None:
    whole = torch.tensor([0.0]), torch.tensor([1.0])
    first = filled_bins(seen_as([BELOW, 0.25, 0.5, 0.75], [1, 0, -2, 0]), *(edge.double() for edge in whole))
    assert [edge.tolist() for edge in first] == [[0.0, 0.5], [0.25, 0.75]]
    again = filled_bins(seen_as([BELOW, 0.125, 0.5, 0.625], [0, 3, 0, 1]), *first)  # no threshold at 0.25: the bin there was empty
    assert [edge.tolist() for edge in again] == [[0.125, 0.625], [0.25, 0.75]]


def test_thresholds_are_shared_evenly_the_rest_goes_to_the_widest_and_a_narrow_bin_gets_one() -> None:
    lower, upper = torch.tensor([0.1, 0.5, 0.9]).double(), torch.tensor([0.2, 0.8, 0.900001]).double()
    assert shared_out(lower, upper, 5, finest=1e-6).tolist() == pytest.approx([BELOW, 0.15, 0.5, 0.65, 0.9])
    assert shared_out(lower, upper, 6, finest=1e-6).tolist() == pytest.approx([BELOW, 0.15, 0.5, 0.6, 0.7, 0.9])
    assert shared_out(lower, upper, 3, finest=1e-6).tolist() == pytest.approx([BELOW, 0.5, 0.9])
    assert shared_out(lower, upper, 6, finest=0.1).tolist() == pytest.approx([BELOW, 0.5, 0.6, 0.7, 0.9, ABOVE])


def test_a_picture_that_the_last_round_lost_is_taken_from_two_earlier_rounds_that_agree() -> None:
    x, y = batch(8)
    seen = seen_in(6, x, y, bins=64)
    assert found(seen, x).all()
    *earlier, last = seen.received.history
    lost = int(found(seen, x).nonzero()[3])
    edges, brightness = thresholds(seen)[-1], x.mean((1, 2, 3))[lost]
    row = int(torch.searchsorted(edges, brightness, right=True)) - 1
    update = {name: value.clone() for name, value in seen.received.update.items()}
    for name in (BIAS, "imprint.sort.weight"):  # the last round as if this picture had not been in it
        update[name][: row + 1] -= last.update[name][row] - last.update[name][row + 1]
    without = altered(seen, update=update)
    assert found(without, x).all()
    assert found(altered(without, secret=replace(seen.secret, every_round=False)), x).tolist() == [n != lost for n in range(8)]
    one_earlier = altered(without, history=(earlier[-1], last))
    assert found(one_earlier, x).tolist() == [n != lost for n in range(8)]


def test_a_picture_counts_as_repeated_if_two_rounds_give_it_and_it_is_added_once() -> None:
    x = torch.eye(5, dtype=torch.float64)
    assert torch.equal(with_repeated(x[:1], [x[[0, 1]], x[[1, 2]], x[[1, 3]]], most=5), x[[0, 1]])
    assert torch.equal(with_repeated(x[:1], [x[[1, 2]], x[[1, 2]]], most=2), x[[0, 1]])
    assert torch.equal(with_repeated(x[:2], [], most=5), x[:2])


def test_a_single_round_is_refused_before_the_run_and_in_the_python_interface() -> None:
    asked = Experiment(server=Part(id="bisect"))
    with pytest.raises(SpecError, match=r"rounds: Bisection needs at least 2 watched rounds, given was 1\. Raise the number of rounds"):
        asked.resolve(CATALOG)
    resolved = asked.model_copy(update={"rounds": 2, "attacked_round": 2}).resolve(CATALOG)
    assert Experiment.model_validate_json(resolved.model_dump_json()) == resolved
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    with pytest.raises(ValueError, match="bisect needs 2 watched rounds; one round is simulated here"):
        leakage.observe(model, *batch(2), server="bisect")
