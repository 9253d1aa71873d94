"""The k-curve of three losses of one output: turning points, roots and twins, compared with formulas and Lambert's function."""

import math

import numpy as np
import pytest
from scipy.special import lambertw

from leakage.networks.k_curve import LOSSES, TURNS, Loss, curve, derivative, nearest, roots, twin

each_loss = pytest.mark.parametrize("loss", LOSSES)
LEAST = {"cross-entropy": -0.2785, "exponential": -1 / math.e, "hinge": -1.0}


@each_loss
def test_it_is_mu_times_the_derivative_of_the_loss(loss: Loss) -> None:
    value = {
        "cross-entropy": lambda mu: math.log(1 + math.exp(-mu)),
        "exponential": lambda mu: math.exp(-mu),
        "hinge": lambda mu: max(0.0, 1 - mu),
    }[loss]
    for mu in (-3.0, -0.5, 0.3, 0.9, 1.1, 4.0):
        by_hand = (value(mu + 1e-6) - value(mu - 1e-6)) / 2e-6
        assert derivative(loss, mu) == pytest.approx(by_hand, abs=1e-8)
        assert curve(loss, mu) == pytest.approx(mu * by_hand, abs=1e-8)


@each_loss
def test_its_lowest_point_is_where_the_literature_has_it(loss: Loss) -> None:
    assert TURNS[loss] == pytest.approx({"cross-entropy": 1.2785, "exponential": 1.0, "hinge": 1.0}[loss], abs=5e-5)
    assert curve(loss, TURNS[loss]) == pytest.approx(LEAST[loss], abs=5e-5)
    grid = np.linspace(-4, 12, 20_001)
    assert min(curve(loss, mu) for mu in grid) >= curve(loss, TURNS[loss])
    assert TURNS["cross-entropy"] == pytest.approx(1 + math.exp(-TURNS["cross-entropy"]), abs=1e-12)


@each_loss
@pytest.mark.parametrize("c", [-0.9, -0.3, -0.2785, -0.27, -0.1, -1e-9, 0.0, 1e-9, 0.4, 30.0])
def test_the_roots_are_all_places_where_it_crosses_c(loss: Loss, c: float) -> None:
    found = roots(loss, c)
    grid = np.concatenate([np.linspace(-40, -1e-12, 40_001), np.geomspace(1e-12, 60, 40_001)])
    above = np.array([curve(loss, mu) for mu in grid]) > c
    changes = grid[1:][above[1:] != above[:-1]]
    if loss == "hinge" and c < 0:
        changes = changes[:-1]  # at mu = 1 it leaps to 0, past c
    assert len(found) == (1 if c == 0 else len(changes))
    for mu, near in zip(found, changes, strict=False):
        assert mu == pytest.approx(near, abs=2e-3 * max(1, abs(near)))
        assert curve(loss, mu) == pytest.approx(c, rel=1e-12)


def test_roots_of_the_exponential_loss_are_those_of_lambert() -> None:
    for c in (-0.36, -0.2, -1e-3):  # -mu exp(-mu) = c
        assert roots("exponential", c) == pytest.approx([-lambertw(c, 0).real, -lambertw(c, -1).real], rel=1e-12)
    assert roots("exponential", 7.0) == pytest.approx([-lambertw(7.0).real], rel=1e-12)


def test_roots_of_the_logistic_loss() -> None:
    assert roots("cross-entropy", curve("cross-entropy", -14.0)) == pytest.approx([-14.0], rel=1e-12)
    assert roots("cross-entropy", curve("cross-entropy", 0.198)) == pytest.approx([0.198, 3.700], abs=2e-3)  # 18.7 times the smaller one
    assert roots("cross-entropy", curve("cross-entropy", 5.0))[1] == pytest.approx(5.0, rel=1e-12)


@each_loss
def test_below_the_lowest_point_there_is_none_and_noise_is_put_down_to_that_point(loss: Loss) -> None:
    assert roots(loss, LEAST[loss] - 1e-3) == []
    assert nearest(loss, LEAST[loss] - 1e-3) == [TURNS[loss]]
    assert derivative(loss, TURNS[loss]) < 0  # a gradient can be divided by it


@each_loss
def test_a_twin_is_the_other_root_and_comes_back(loss: Loss) -> None:
    for mu in (0.05, 0.7, 2.0, 9.0):
        other = twin(loss, mu)
        if loss == "hinge":
            assert other is None
        else:
            assert other is not None
            assert curve(loss, other) == pytest.approx(curve(loss, mu), rel=1e-9)
            assert (mu - TURNS[loss]) * (other - TURNS[loss]) < 0
            assert twin(loss, other) == pytest.approx(mu, rel=1e-9)
    assert twin(loss, -1.0) is None


def test_a_hinge_whose_margin_is_met_has_no_derivative() -> None:
    assert [derivative("hinge", mu) for mu in (0.999, 1.0, 3.0)] == [-1, 0, 0]
    assert roots("hinge", 0.0) == [0.0]
