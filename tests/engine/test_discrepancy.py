"""Where searches stop with errors of a known size: the expected distance of the truth, and problems with known answers."""

import math

import pytest
import torch
from small_problems import altered, by_hand, generator

from leakage.attacks._adam import Descent
from leakage.attacks._lbfgs import expected_squares, fitted_squares, search_once
from leakage.attacks._polish import most_probable, polished, smooth_variation
from leakage.engine.core import Observation, Snapshot
from leakage.engine.discrepancy import expected_distance, floors_of, goal_of, left_by_fitting, slack
from leakage.engine.matching import DISTANCES, distance

NORMAL = torch.Generator().manual_seed(3)


@pytest.mark.parametrize("kind", DISTANCES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_truth_is_as_far_as_expected(kind: str, weighted: bool) -> None:
    g = {"a": torch.randn(4000, generator=NORMAL), "b": 3 * torch.randn(50, 20, generator=NORMAL)}
    spread = {"a": torch.tensor(0.25), "b": torch.rand(50, 20, generator=NORMAL)}
    importance = {"a": 1.0, "b": 0.5} if weighted else None
    entry_weights = {"a": (torch.rand(4000, generator=NORMAL) > 0.5).float()} if weighted else None
    measured, said = [], []
    for _ in range(40):
        received = {name: value + spread[name].sqrt() * torch.randn(value.shape, generator=NORMAL) for name, value in g.items()}
        lanes = {name: value[None] for name, value in g.items()}
        measured.append(float(distance(kind, received, importance, entry_weights)(lanes)))
        said.append(float(expected_distance(kind, received, spread, importance=importance, entry_weights=entry_weights)))
    assert sum(said) == pytest.approx(sum(measured), rel=0.05)


def test_entries_that_do_not_count_may_be_wrong_by_any_amount() -> None:
    errors, weights = {"w": torch.tensor([1.0, torch.inf])}, {"w": torch.tensor([2.0, 0.0])}
    assert float(expected_distance("squared", {"w": torch.ones(2)}, errors, entry_weights=weights)) == 2.0


def test_an_exact_update_has_no_floor_and_an_unknown_one_neither_but_says_so() -> None:
    seen = by_hand(lambda x: x.flatten(), torch.ones(1))
    exact, unknown = (goal_of(altered(seen, errors=errors), "squared") for errors in ({}, None))
    assert exact.floor is unknown.floor is floors_of([exact, unknown]) is None
    assert exact.note == {}
    assert str(unknown.note["errors"]).startswith("not known")
    known = goal_of(altered(seen, errors={"w": torch.tensor(0.04)}), "squared")
    floors = floors_of([exact, known])
    assert floors is not None
    assert floors.tolist() == [-math.inf, pytest.approx(0.04)]


# ---------------------------------------------------------------- a problem with a known answer: 25 pixels, each sent ten times

SIDE, SEEN, SIGMA = 5, 10, 0.5
PIXELS = SIDE**2


def noisy(seed: int = 0) -> Observation:
    """g(x) = ten copies of the pixels, received with noise N(0, SIGMA^2): least squares has the copies' mean for an answer."""
    rng = torch.Generator().manual_seed(seed)
    truth = torch.full((PIXELS,), 0.5)
    received = truth.repeat(SEEN) + SIGMA * torch.randn(PIXELS * SEEN, generator=rng)
    seen = by_hand(lambda x: x.flatten().repeat(SEEN), received, side=SIDE)
    return altered(seen, errors={"w": torch.tensor(SIGMA**2)})


@pytest.mark.long
def test_of_all_pictures_that_fit_as_well_as_the_truth_the_prior_chooses() -> None:
    """min ||z - 0||^2 subject to ||g(z) - g*||^2 <= n sigma^2: z = c m, m the mean of the copies, on the boundary."""
    seen = noisy()
    goal = goal_of(seen, "squared")
    assert goal.floor is not None
    mean = seen.received.update["w"].view(SEEN, -1).mean(0)
    least = float((seen.received.update["w"] - mean.repeat(SEEN)).square().sum())  # what a whole fit leaves
    assert least < float(goal.floor)
    away = math.sqrt((float(goal.floor) - least) / SEEN) / float(mean.norm())  # ||z - m|| of the boundary, in units of ||m||
    descent = Descent(1500, 0.01, "cosine", signed=False, floor=goal.floor)
    z = torch.zeros(1, 1, 1, SIDE, SIDE)

    def far(x: torch.Tensor) -> torch.Tensor:
        return goal.distance({"w": x.flatten(1).repeat(1, SEEN)})

    *_, last = descent.minimize(seen, z, torch.tensor([7]), far, lambda z: z.flatten(1).square().sum(1), note={}, rng=generator(1))
    assert float(last.loss) == pytest.approx(float(goal.floor), rel=0.01)
    torch.testing.assert_close(last.x.flatten(), (1 - away) * mean, atol=0.02, rtol=0)


def test_a_search_without_a_prior_ends_where_it_has_fitted_a_share_of_its_unknowns() -> None:
    seen = noisy()
    entries = PIXELS * SEEN
    assert expected_squares(seen) == pytest.approx(entries * SIGMA**2)
    assert left_by_fitting(entries, PIXELS) == 0.9
    assert fitted_squares(seen) == pytest.approx(0.91 * entries * SIGMA**2)
    *_, last = search_once(seen, generator(1), labels=torch.tensor([7]), steps=50, until=1e9)
    assert last.step == 1
    assert slack(200) == pytest.approx(0.2)


@pytest.mark.parametrize("known", [True, False])
def test_polishing_a_smooth_picture_takes_the_noise_out(known: bool) -> None:
    """The most probable constant picture is the mean of all that arrived; least squares would keep the noise of every pixel."""
    seen = noisy(seed=2)
    seen = seen if known else altered(seen, errors=None)
    mean = seen.received.update["w"].mean()
    answer = Snapshot(0, seen.received.update["w"].view(SEEN, 1, 1, SIDE, SIDE).mean(0), torch.tensor([7]), torch.tensor(1.0))
    assert float((answer.x - mean).abs().max()) > 0.2
    *_, last = polished(seen, answer, generator(1), steps=20)
    torch.testing.assert_close(last.x, torch.full_like(last.x, float(mean)), atol=0.02, rtol=0)
    assert str(last.note["errors"]).startswith("known from" if known else "read from")


def test_polishing_ends_at_the_weight_that_the_fitted_unknowns_give() -> None:
    """n / (2 E) d||g - g*||^2 = - gamma / TV dTV, gamma = n (1 - ||g - g*||^2 / E): no weight of the smoothness is chosen."""
    rng, side = torch.Generator().manual_seed(4), 12
    truth = torch.linspace(0, 1, side).repeat(side, 1).round().flatten()  # one half black, one white
    received = truth.repeat(SEEN) + SIGMA * torch.randn(side**2 * SEEN, generator=rng)
    entries, expected = len(received), SIGMA**2 * len(received)
    seen = altered(by_hand(lambda x: x.flatten().repeat(SEEN), received, side=side), errors={"w": torch.tensor(SIGMA**2)})
    begin = Snapshot(0, received.view(SEEN, 1, 1, side, side).mean(0), torch.tensor([7]), torch.tensor(1.0))
    *_, last = most_probable(seen, begin, expected, steps=100)
    x = last.x.clone().requires_grad_()
    far, varies = (x.flatten().repeat(SEEN) - received).square().sum(), smooth_variation(x)
    (misfit,), (rough,) = torch.autograd.grad(far, x), torch.autograd.grad(varies, x)
    gamma = entries * (1 - float(far.detach()) / expected)
    assert gamma > 0
    torch.testing.assert_close(
        entries / (2 * expected) * misfit, -gamma / float(varies.detach()) * rough, atol=0.05 * float(rough.abs().max()), rtol=0
    )
    error, fitted = (float((picture.flatten() - truth).square().mean()) for picture in (last.x, begin.x))
    assert error < fitted / 4


def test_without_smoothness_polishing_ends_before_it_fits_the_errors() -> None:
    """As DLG does: nine tenths of the 25 unknowns are fitted to 250 entries."""
    seen = noisy(seed=2)
    expected = PIXELS * SEEN * SIGMA**2
    answer = Snapshot(0, torch.full((1, 1, SIDE, SIDE), 5.0), torch.tensor([7]), torch.tensor(1.0))
    *_, last = polished(seen, answer, generator(1), steps=20, smooth=False)
    assert float(last.loss) <= 0.91 * expected
    assert "ends before it fits them" in str(last.note["errors"])


def test_polishing_goes_on_to_the_end_where_the_gradient_is_exact() -> None:
    target = torch.linspace(0, 1, PIXELS)
    seen = by_hand(lambda x: x.flatten().repeat(SEEN), target.repeat(SEEN), side=SIDE)
    for errors in ({}, None):
        answer = Snapshot(0, torch.full((1, 1, SIDE, SIDE), 0.5), torch.tensor([7]), torch.tensor(1.0))
        *_, last = polished(altered(seen, errors=errors), answer, generator(1), steps=20)
        torch.testing.assert_close(last.x.flatten(), target, atol=1e-5, rtol=0)
        assert "errors" not in last.note
