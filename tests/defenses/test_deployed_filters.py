"""The filters that NVIDIA FLARE offers: what they send, by their formulas, and what is left of that to an attacker who knows them."""

import numpy as np
import pytest
import torch
from test_simple_defenses import ask, defended, flat, replayed, sent, two

from leakage.workers.adapter import plugin
from leakage.spec.experiment import Part

LOOSE = 1e6  # a limit that no entry reaches

# ---------------------------------------------------------------- PercentilePrivacy


def test_no_percentile_and_no_limit_change_nothing() -> None:
    got, _ = ask(defended("percentile_privacy", two(), percentile=0, gamma=LOOSE))
    assert torch.equal(flat(got), flat(two()))


# u, percentile, gamma, steps -> what is sent; by hand, with numpy's percentile in between: position p / 100 (n - 1) of the sorted |u|
TABLE = [
    ([1.0, -2, 3, -4, 5], 50, 100, 1, [0, 0, 3, -4, 5]),  # position 2: the cut is 3, and 3 is not below it
    ([1.0, -2, 3, -4, 5], 40, 100, 1, [0, 0, 3, -4, 5]),  # position 1.6: the cut is 2.6
    ([1.0, -2, 3, -4, 5], 10, 3.5, 1, [0, -2, 3, -3.5, 3.5]),  # position 0.4: the cut is 1.4
    ([10.0, -20, 30, -40, 50], 10, 3.5, 10, [0, -20, 30, -35, 35]),  # ten times as far in ten steps: the same for each
    ([2.0, 2, 2, 2, 1], 50, 100, 1, [2, 2, 2, 2, 0]),  # equal ones are not below the cut, which is 2
    ([0.0, 0, 0, 0, 1], 50, 100, 1, [0, 0, 0, 0, 1]),
]


@pytest.mark.parametrize(("g", "percentile", "gamma", "steps", "expected"), TABLE)
def test_percentile_privacy_sends_what_its_formula_gives(
    g: list[float], percentile: float, gamma: float, steps: int, expected: list[float]
) -> None:
    assert sent("percentile_privacy", torch.tensor(g), percentile=percentile, gamma=gamma, steps=steps).tolist() == expected


@pytest.mark.parametrize("percentile", [0, 0.5, 10, 33.3, 90, 99.9])
@pytest.mark.parametrize("count", [11, 100, 1000])
def test_as_many_entries_are_zero_as_lie_below_numpys_percentile(percentile: float, count: int) -> None:
    g = torch.randn(count, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    got = sent("percentile_privacy", g, percentile=percentile, gamma=LOOSE)
    below = np.abs(g.numpy()) < np.percentile(np.abs(g.numpy()), percentile)
    assert torch.equal(got == 0, torch.from_numpy(below))
    assert abs(int(below.sum()) - percentile / 100 * count) <= 1


@pytest.mark.parametrize("steps", [1, 5])
def test_no_entry_is_larger_than_the_limit_of_so_many_steps(steps: int) -> None:
    got = flat(ask(defended("percentile_privacy", two(), gamma=0.2, steps=steps))[0])
    assert float(got.abs().max()) == pytest.approx(0.2 * steps)
    assert int((got.abs() == got.abs().max()).sum()) == int((flat(two()).abs() >= 0.2 * steps).sum())


def bounds(received: list[float], guess: list[float]) -> list[float]:
    """What who knows the filter believes to be sent of a guess, where this was received: limit 2, a quarter set to zero."""
    part = Part(id="percentile_privacy", fields={"percentile": 25.0, "gamma": 2.0})
    strategy = plugin("defense", part).strategies()["what arrived, and bounds"]
    client = strategy.surrogate(lambda _w, _x, _y, state: ({"w": torch.tensor(guess)}, state), {"w": torch.tensor(received)})
    return client({}, torch.zeros(1), torch.zeros(1), {})[0]["w"].tolist()


def test_what_was_cut_off_is_a_bound_on_one_side_and_what_was_left_out_on_both() -> None:
    received = [0.0, 1.0, 2.0, -2.0]
    assert bounds(received, [0.5, 1.0, 7.0, -9.0]) == received  # all of that would have been sent so
    assert bounds(received, [-1.0, 1.0, 2.0, -2.0]) == received
    assert bounds(received, [1.5, 1.25, 1.5, -1.5]) == [0.5, 1.25, 1.5, -1.5]  # too large by 0.5, too large, too small, too small
    assert bounds(received, [0.0, 1.0, -3.0, 3.0]) == [0.0, 1.0, -3.0, 3.0]  # a bound on one side alone: not on the other


def test_zeros_beyond_those_that_the_filter_makes_are_real() -> None:
    assert bounds([0.0, 0.0, 1.0, 1.5], [0.5, 0.5, 1.0, 1.5]) == [0.5, 0.5, 1.0, 1.5]


def test_who_masks_and_cuts_replays_the_gradient_to_what_was_sent() -> None:
    received, _ = ask(defended("percentile_privacy", two(), percentile=30, gamma=0.4))
    assert torch.equal(flat(replayed("percentile_privacy", received, two(), percentile=30, gamma=0.4)), flat(received))
