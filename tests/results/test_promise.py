"""Epsilon in numbers: the closed form beside the accountant, over several uploads, and a protection chosen by epsilon."""

import math

import pytest
from small_problems import CATALOG

from leakage.engine.accounting import epsilon
from leakage.results.promise import Promise, promise_before, promise_of, sentence, with_epsilon
from leakage.runs.event_parts import PrivacyBound
from leakage.spec.experiment import Part
from leakage.spec.gaussian_privacy import DELTA, delta_of, gaussian_epsilon, mu_of
from leakage.spec.question import Question


@pytest.mark.parametrize(("sigma", "steps"), [(1.0, 1), (1.0, 20), (0.5, 1), (2.0, 100), (0.1, 1)])
def test_the_closed_form_agrees_with_the_accountant(sigma: float, steps: int) -> None:
    exact = gaussian_epsilon(math.sqrt(steps) / sigma)
    assert exact <= epsilon(sigma, steps) <= exact + 0.02  # the accountant adds a margin of 0.01


def test_delta_is_the_gap_between_two_normal_distributions() -> None:
    """At epsilon 0 it is their total variation: 2 Phi(mu / 2) - 1."""
    assert delta_of(0.0, 1.0) == pytest.approx(math.erf(0.5 / math.sqrt(2)))
    assert delta_of(gaussian_epsilon(1.0), 1.0) == pytest.approx(DELTA, rel=1e-6)


def test_weak_noise_promises_nothing_of_use_and_says_so() -> None:
    """DP-SGD of 0.01 was said to hide any single picture."""
    weak = promise_before(Question(defenses=(Part(id="dp_sgd", fields={"noise_multiplier": 0.01}),)), CATALOG)
    strong = promise_before(Question(defenses=(Part(id="dp_sgd"),)), CATALOG)
    assert weak
    assert strong
    assert sentence(weak, 1).endswith(
        "epsilon above 200 for one upload, at delta 1e-05; of one picture, present or absent. Above 10: no useful promise"
    )
    assert sentence(strong, 1) == (
        "epsilon 4.4 for one upload, at delta 1e-05; of one picture, present or absent. "
        "What arrives can multiply the odds that it was there by up to 80"  # e^4.377 = 79.6
    )
    assert "17.9 after 10 uploads" in sentence(strong, 10)
    assert sentence(strong, 10).endswith("Above 10: no useful promise")


def test_noise_without_a_limit_promises_nothing() -> None:
    assert promise_before(Question(defenses=(Part(id="gaussian_noise"),)), CATALOG) is None


@pytest.mark.parametrize("rounds", [1, 100])
@pytest.mark.parametrize("steps", ["one", "several"])
def test_asked_for_by_epsilon_the_noise_keeps_it(rounds: int, steps: str) -> None:
    question = Question.model_validate({"rounds": rounds, "steps": steps})
    part = with_epsilon(8.0, question, CATALOG)
    assert part.id == "dp_sgd"
    kept = promise_before(question.model_copy(update={"defenses": (part,)}), CATALOG)
    assert kept
    assert 7.9 < kept.epsilon(rounds) <= 8.0


def test_what_a_run_states_of_sixteen_uploads_is_told_of_one_and_of_a_hundred() -> None:
    sixteen = gaussian_epsilon(4 / 2.0)
    found = promise_of(PrivacyBound(value=sixteen, delta=DELTA, times=16), 16)
    assert found.epsilon(1) == pytest.approx(gaussian_epsilon(0.5), rel=1e-6)
    assert found.epsilon(100) == pytest.approx(gaussian_epsilon(5.0), rel=1e-6)
    pure = promise_of(PrivacyBound(value=6.0, delta=0.0, times=2, whom="all that one phone holds"), 2)
    assert [pure.epsilon(uploads) for uploads in (1, 10, 1000)] == [3.0, 30.0, math.inf]
    assert promise_of(PrivacyBound(value=None, delta=DELTA, times=1), 1).epsilon(1) == math.inf


def test_mu_is_the_inverse_of_epsilon() -> None:
    for value in (0.1, 1.0, 8.0, 150.0):
        assert gaussian_epsilon(mu_of(value)) == pytest.approx(value, rel=1e-6)
    assert Promise(0.0).epsilon(5) == 0.0
