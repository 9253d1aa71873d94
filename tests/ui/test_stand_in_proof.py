"""AdaDefense's proof compared with its formula: values by hand, and the plug-in's update with autograd's derivative."""

import math

import pytest
import torch

from leakage.defenses.ada_defense import AdaDefense
from leakage.ui.compare import proof_view
from leakage.ui.compare.stand_in_proof import PRINTED, GradientEntry, constant_ratio, corrected_twice


def by_plugin(number: int, before: float, g: float) -> tuple[float, float]:
    """What the plug-in sends in that round, and autograd's derivative, in float64."""
    defense, state = AdaDefense(), {}
    for _ in range(number - 1):
        _, state = defense.stand_in({"w": torch.tensor(before, dtype=torch.float64)}, state)
    leaf = torch.tensor(g, dtype=torch.float64, requires_grad=True)
    sent, _ = defense.stand_in({"w": leaf}, state)
    return float(sent["w"].detach()), float(torch.autograd.grad(sent["w"], leaf)[0])


@pytest.mark.parametrize("number", [1, 2, 3, 10, 1000])
def test_a_the_root_is_the_gradients_size_in_every_round(number: int) -> None:
    assert constant_ratio(number) == pytest.approx(1, abs=1e-12)


def test_a_the_appendixs_alpha_is_a_second_correction() -> None:
    assert corrected_twice(1000) == pytest.approx(1 / math.sqrt(1 - math.exp(-1)), rel=1e-3)  # 0.999^1000 is nearly 1/e
    assert round(corrected_twice(1000), 3) == PRINTED[1000] == 1.258
    assert corrected_twice(1) == pytest.approx(1 / math.sqrt(0.001))  # 31.6, where the appendix has 1
    assert corrected_twice(2) == pytest.approx(1 / math.sqrt(0.001999))


def test_the_moments_are_those_of_the_papers_first_rounds() -> None:
    assert GradientEntry(2, 1.0).m == pytest.approx(0.1)
    assert GradientEntry(2, 1.0).v == pytest.approx(0.001)
    assert GradientEntry(3, 1.0).m == pytest.approx(0.19)
    assert GradientEntry(3, 1.0).v == pytest.approx(0.001999)
    assert (GradientEntry(1, 5.0).m, GradientEntry(1, 5.0).v) == (0, 0)  # nothing was before


@pytest.mark.parametrize("g", [-2.0, -0.3, 0.7])
def test_b_the_root_never_has_the_gradients_sign(g: float) -> None:
    assert GradientEntry(1, 0.0).root(g) == pytest.approx(abs(g))
    assert GradientEntry(2, 0.5).root(g) == pytest.approx(math.sqrt((0.999 * 0.00025 + 0.001 * g * g) / 0.001999))


def test_c_in_the_second_round_the_derivative_of_an_unchanged_gradient_is_positive_and_the_paper_has_it_negative() -> None:
    entry = GradientEntry(2, 1.0)
    assert entry.claimed_derivative(1.0) == pytest.approx(-0.9 * 0.1 / 0.19)
    assert entry.derivative(1.0) == pytest.approx(0.1 / 0.19 - 0.001 / 0.001999, abs=1e-6)
    assert entry.claimed_derivative(-1.0) == entry.claimed_derivative(1.0)  # it cannot tell the sign


@pytest.mark.parametrize("g", [-1.5, -0.01, 0.01, 1.5])
def test_c_in_the_first_round_both_derivatives_are_0_and_the_sign_is_sent(g: float) -> None:
    entry = GradientEntry(1, 0.0)
    assert entry.claimed_derivative(g) == 0
    assert entry.derivative(g) == pytest.approx(1e-8 / (abs(g) + 1e-8) ** 2, rel=1e-3)  # that of g / (|g| + eps)
    assert entry.sent(g) == pytest.approx(math.copysign(1, g), abs=1e-5)


@pytest.mark.parametrize("number", [1, 2, 7])
@pytest.mark.parametrize(("before", "g"), [(1.0, 0.4), (0.3, -0.9), (-0.5, 0.05)])
def test_both_are_those_of_the_plugin(number: int, before: float, g: float) -> None:
    sent, derivative = by_plugin(number, before, g)
    assert GradientEntry(number, before).sent(g) == pytest.approx(sent, rel=1e-6)
    assert GradientEntry(number, before).derivative(g) == pytest.approx(derivative, rel=1e-5, abs=1e-7)


def test_where_a_derivative_is_none_it_is_no_number() -> None:
    assert math.isnan(GradientEntry(1, 0.0).derivative(0.0))
    assert math.isnan(GradientEntry(2, 1.0).claimed_derivative(0.0))


def test_the_curves_hold_what_was_computed_and_nothing_too_steep() -> None:
    figure = proof_view.derivative(GradientEntry(2, 1.0))
    ours, paper, sent = figure.data
    place = list(ours.x).index(1.0)
    assert (ours.y[place], paper.y[place], sent.y[place]) == pytest.approx((0.02607, -0.47368, 1.0), abs=1e-4)
    assert paper.y[list(paper.x).index(0.1)] is None  # -47
    assert [list(one.y) for one in proof_view.ratio().data][2] == [1.0, 1.0, 1.258]
