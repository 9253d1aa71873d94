"""The filters of NVIDIA FLARE: their updates by their formulas, and what an adaptive attacker gets from these."""

import math

import numpy as np
import pytest
import torch
from sent_updates import ask, defended, draws, flat, in_standard_errors, ramp, replayed, sent, two

from leakage.defenses.svt_privacy import SVTPrivacy
from leakage.engine.core import ClientState
from leakage.spec.experiment import Part
from leakage.workers.adapter import plugin

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
    """Return an adaptive attacker's imitation of the update of a guess, given the received update: limit 2, a quarter set to zero."""
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


# ---------------------------------------------------------------- SVTPrivacy


# entries, fields -> n, epsilon of all; by hand: 2n = 8, 64, 2000 with (2n)^(2/3) = 4, 16, 158.74
BUDGETS = [
    (40, {"fraction": 0.1, "epsilon": 0.1, "noise_var": 0.1}, 4, 0.1 + 0.4 + 0.4),
    (32, {"fraction": 1.0, "epsilon": 0.5, "noise_var": 2.0}, 32, 0.5 + 8 + 64),
    (9991, {"fraction": 0.1, "epsilon": 0.1, "noise_var": 0.1}, 1000, 0.1 + 15.874 + 100),
]


@pytest.mark.parametrize(("entries", "fields", "number", "budget"), BUDGETS)
def test_the_budget_of_svt_is_that_of_its_threshold_its_questions_and_its_numbers(
    entries: int, fields: dict[str, float], number: int, budget: float
) -> None:
    assert SVTPrivacy(**fields).count(entries) == number
    assert SVTPrivacy(**fields).pure_epsilon(entries) == pytest.approx(budget, rel=1e-4)
    assert SVTPrivacy(**fields, version="before the fix").pure_epsilon(entries) == math.inf


@pytest.mark.parametrize("fraction", [0.1, 0.5, 1.0])
def test_svt_sends_as_many_numbers_as_asked_and_with_replacement_fewer(fraction: float) -> None:
    g = {"w": torch.randn(2000, generator=torch.Generator().manual_seed(2), dtype=torch.float64)}
    exact, _ = ask(defended("svt_privacy", g, fraction=fraction, replace=False))
    assert int((exact["w"] != 0).sum()) == 2000 * fraction
    fewer = int((ask(defended("svt_privacy", g, fraction=fraction))[0]["w"] != 0).sum())
    assert fewer < 2000 * fraction
    if fraction == 1:  # all are accepted: of n drawn n times a share of 1 - 1/e is met
        assert fewer == pytest.approx(2000 * (1 - math.exp(-1)), abs=5 * math.sqrt(2000 * 0.1))


@pytest.mark.parametrize("steps", [1, 3])
def test_every_number_that_svt_sends_lies_within_its_limit(steps: int) -> None:
    got = sent("svt_privacy", ramp(500), gamma=0.25, steps=steps)
    assert float(got.abs().max()) == pytest.approx(0.25 * steps)


def test_large_entries_pass_the_test_more_often() -> None:
    """With half a share each entry is asked about once. Noise on the threshold moves all alike, so pairs within one draw are compared."""
    gentle = {"gamma": 1.0, "epsilon": 40.0, "tau": 0.5, "noise_var": 1e6, "fraction": 0.5, "replace": False}
    g = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0] * 40, dtype=torch.float64)
    often = (draws("svt_privacy", g, **gentle) != 0).double().mean(0).view(40, 5).mean(0)
    assert torch.equal(often, often.sort().values)
    assert float(often[-1] - often[0]) > 0.2


def test_an_entry_is_asked_until_enough_have_passed() -> None:
    """What one draw does at once, by the loop that it stands for: the share of accepted entries, of the same threshold and draws."""
    defense, g = SVTPrivacy(gamma=1.0, epsilon=4.0, tau=2.0, fraction=0.3), torch.linspace(0, 1, 1000, dtype=torch.float64)
    rng = np.random.default_rng(1)

    def by_loop() -> float:
        threshold, left, accepted = 2.0 + rng.laplace(scale=2 / 4), g.numpy(), 0
        while accepted < 300:
            passed = left + rng.laplace(scale=4 * 300 / (4 * 600 ** (2 / 3)), size=len(left)) >= threshold
            accepted, left = accepted + int(passed.sum()), left[~passed]
        return accepted / 1000

    mine = [len(defense.test_entries(g, torch.Generator().manual_seed(seed))) / 1000 for seed in range(400)]
    theirs = [by_loop() for _ in range(400)]
    error = math.hypot(np.std(mine), np.std(theirs)) / 20
    assert abs(np.mean(mine) - np.mean(theirs)) < 4 * error
    assert min(mine) >= 0.3
    assert error < 0.01


def test_before_the_fix_most_entries_were_sent_as_they_are_and_after_it_none() -> None:
    g = ramp(1000)  # of size 1, a hundred thousand times the limit
    before, after = sent("svt_privacy", g, version="before the fix"), sent("svt_privacy", g)
    beyond = before.abs() > 1.1e-5
    assert torch.equal(before[beyond], g[beyond])
    assert float(beyond.float().mean()) > 0.3  # about half pass at once, a tenth is drawn
    assert float(after.abs().max()) <= 1.0001e-5
    assert torch.equal(before[~beyond], after[~beyond])  # the same draws


def test_the_mean_of_what_is_sent_is_what_the_attacker_expects() -> None:
    fields = {"gamma": 0.5, "noise_var": 2.0, "steps": 2}
    g = torch.tensor([-3.0, -0.7, 0.0, 0.2, 0.9, 2.0], dtype=torch.float64)
    got = draws("svt_privacy", g, **fields, fraction=1.0, replace=False, epsilon=1e4)
    assert float(in_standard_errors(got, SVTPrivacy(**fields).mean_sent(g)).max()) < 3.5


def test_over_the_rounds_every_arrival_counts_and_what_was_sent_as_it_is_stays() -> None:
    answer = SVTPrivacy(gamma=1.0).strategies()["average the rounds"]
    state: ClientState = {}
    for received in ([0.5, 0.0, 7.0, 0.0], [-0.25, 1.0, 0.5, 0.0]):
        state = answer.infer_state({"w": torch.tensor(received)}, state)
    last = {"w": torch.tensor([0.5, 0.0, 0.0, 0.0])}
    assert answer.invert_update is not None
    assert answer.invert_update(last, state)["w"].tolist() == [0.25, 1.0, 7.0, 0.0]
    assert answer.entry_weights(last, state)["w"].tolist() == [3, 1, 2, 0]


def test_who_knows_svt_compares_what_passed_without_noise_as_it_is_and_the_rest_as_noise_leaves_it() -> None:
    received = {"w": torch.tensor([0.0, 1.0, -1.0, 7.0])}
    got = replayed("svt_privacy", received, {"w": torch.tensor([9.0, 9.0, 0.0, 9.0])}, gamma=1.0, noise_var=2.0)["w"]
    # scale 1: the mean of clip(9 + noise) is 1 - (e^-8 - e^-10) / 2
    assert got.tolist() == pytest.approx([0, 1 - (math.exp(-8) - math.exp(-10)) / 2, 0, 9], abs=1e-6)
