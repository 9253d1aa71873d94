"""The words of an audit of a recorded update: how much of the update the pictures of an attack explain."""

from typing import Any

import pytest

from leakage.results.audit_words import FAILED, conclude, describe_calibration, describe_distance, mark
from leakage.runs.event_parts import FindingFacts


def finding(**facts: Any) -> FindingFacts:
    return FindingFacts(**{"title": "An attack", "attacker": "", "state": "answered", "random_distance": 0.88, **facts})


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"distance": 5e-7}, "explains the update"),
        ({"distance": 0.02}, "explains part of the update"),
        ({"distance": 0.43}, "explains part of the update"),  # less than half of 0.88
        ({"distance": 0.45}, "explains little"),
        ({"distance": 0.009, "random_distance": 0.015}, "explains little"),  # random pictures explain it nearly as well
        ({}, "explains little"),
        ({"distance": 0.45, "proved": True}, "checked exactly"),
        ({"state": FAILED}, "failed"),
    ],
)
def test_a_word_says_how_much_of_the_update_the_pictures_explain(facts: dict[str, Any], word: str) -> None:
    assert mark(finding(**facts)) == word


def test_a_tiny_difference_is_said_in_words_and_equal_scores_once() -> None:
    assert describe_distance(finding(distance=5e-7)) == (
        "The update of these pictures differs from the received one by less than 0.01 % (random pictures: 88 %)."
    )
    said = [describe_calibration(finding(planted=scores)) for scores in ((100.0, 100.0), (20.0, 24.5, 22.0))]
    assert said == [
        f"Calibration: on public pictures in the same setting, this attack reaches {scores} dB." for scores in ("100.0", "20.0 to 24.5")
    ]
    assert (
        conclude([finding(distance=5e-7), finding(distance=0.5)]) == "2 attempts: 1 gave pictures that explain the update, or part of it."
    )
