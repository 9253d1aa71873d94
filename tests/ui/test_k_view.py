"""The k-curve on the architecture page: its marks are the roots, its sentences count them, its slider is in the address."""

import math

import pytest
from page_visits import Open, fine, words

from leakage.networks.k_curve import LOSSES, Loss, curve, roots
from leakage.ui.architecture.k_view import describe_margins, figure


@pytest.mark.parametrize("c", [-0.8, -0.3, -0.2, 0.0, 0.5])
def test_every_root_is_marked_on_its_curve_and_on_the_line(c: float) -> None:
    lines = figure(c).data
    for loss, line, marks in zip(LOSSES, lines[::2], lines[1::2], strict=True):
        assert list(line.y) == [curve(loss, mu) for mu in line.x]
        assert list(marks.x) == roots(loss, c)
        assert list(marks.y) == [c] * len(marks.x)
    assert figure(c).layout.shapes[0].y0 == c


@pytest.mark.parametrize(
    ("loss", "c", "piece"),
    [
        ("cross-entropy", -0.2, "two margins, 0.545 and 2.396: a twin"),
        ("cross-entropy", -0.28, "no margin has this value (the lowest is -0.2785)"),
        ("exponential", -0.28, "two margins"),
        ("exponential", math.e, "one margin, -1.000"),
        ("hinge", -0.28, "one margin, 0.280"),
        ("hinge", 0.0, "it is at least 1 and nothing is sent"),
        ("hinge", -1.0, "no margin has this value"),
    ],
)
def test_it_says_how_many_margins_there_are(loss: Loss, c: float, piece: str) -> None:
    assert piece in describe_margins(loss, c)


def test_the_slider_moves_the_line_and_the_address(look: Open) -> None:
    at = look()
    assert "two margins, 0.545 and 2.396: a twin" in words(at)
    at.select_slider(key="architecture.c").set_value(30).run()
    fine(at)
    assert "two margins" not in words(at)
    assert at.query_params["c"] in ("30", ["30"])
    again = look(c="-30")
    fine(again)
    assert again.select_slider(key="architecture.c").value == -30
    assert "no margin has this value" in words(again)
