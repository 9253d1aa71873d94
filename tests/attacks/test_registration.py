"""Registration of guesses before their comparison: shifts by hand, means of three, and the effect on the search."""

import pytest
import torch
from small_problems import GRANTED, moments, observed, short, smooth

from leakage.attacks._registration import registered_mean, shifted_by, shifts
from leakage.attacks.gradinversion import GradInversion


def dot(row: int, column: int, value: float = 1.0, side: int = 6) -> torch.Tensor:
    """A picture (1, 1, side, side) of one pixel."""
    x = torch.zeros(1, 1, side, side)
    x[0, 0, row, column] = value
    return x


def moved(x: torch.Tensor, y: torch.Tensor, reach: int) -> tuple[int, int]:
    down, right = shifts(x, y, reach)
    return int(down), int(right)


def test_a_picture_is_shifted_onto_its_copy() -> None:
    x = smooth(1, 3, 16)
    for down, right in [(0, 0), (3, -2), (-1, 4)]:
        assert moved(x, x.roll((down, right), (2, 3)), 4) == (down, right)


def test_a_shift_beyond_the_reach_is_not_taken() -> None:
    assert moved(dot(0, 0), dot(2, 0), 2) == (2, 0)
    assert moved(dot(0, 0) + dot(1, 0, 0.5), dot(2, 0), 1) == (1, 0)  # the pixel of 0.5 onto it: the best within one row


def test_every_picture_is_shifted_by_its_own_rows_and_columns_around_the_edges() -> None:
    x = torch.stack([dot(0, 0), dot(5, 5)])  # (2, 1, 1, 6, 6)
    found = shifted_by(x, torch.tensor([[2], [1]]), torch.tensor([[-1], [0]]))
    assert torch.equal(found, torch.stack([dot(2, 5), dot(0, 5)]))


def test_the_mean_of_three_lies_where_each_guess_lies() -> None:
    z = torch.stack([dot(1, 1, 3.0), dot(1, 2, 6.0), dot(3, 1, 9.0)])
    mean = registered_mean(z, 3)
    torch.testing.assert_close(mean, torch.stack([dot(1, 1, 6.0), dot(1, 2, 6.0), dot(3, 1, 6.0)]))


def test_guesses_that_differ_by_a_shift_agree_once_they_are_registered_and_not_before() -> None:
    seen, x = observed(smooth(), assume=GRANTED), smooth()
    z = torch.stack([x, x.roll((1, 2), (2, 3))])
    group = {"tv_weight": 0.0, "l2_weight": 0.0, "group_weight": 1.0}
    apart, laid = (GradInversion(**group, reach=reach)._prior(seen)(z) for reach in (0, 2))
    torch.testing.assert_close(apart, (z[0] - z[1]).square().mean().div(4).expand(2))  # each is half the gap from the mean
    assert laid.max() < 1e-12


def test_where_nothing_is_shifted_the_gradients_are_those_of_the_plain_mean() -> None:
    seen = observed(smooth(), assume=GRANTED)
    base = smooth()
    z = torch.stack([base, base + 0.05 * smooth(seed=3)]).requires_grad_()
    gradients = [torch.autograd.grad(GradInversion(reach=reach, group_weight=1.0)._prior(seen)(z).sum(), z)[0] for reach in (0, 1)]
    assert moved(base, z[1].detach(), 1) == (0, 0)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("reach", [0, 2])
def test_the_attack_ends_with_a_picture_either_way(reach: int) -> None:
    last = moments(short("gradinversion", steps=20, starts=3, reach=reach), observed(smooth(2), assume=GRANTED))[-1]
    assert last.x.shape == (2, 1, 8, 8)
    assert torch.isfinite(last.x).all()
