"""The curve of a sweep: it finds the one number that differs, and draws a point for every run of each attacker."""

from dataclasses import replace

import pytest
from small_problems import CATALOG

from leakage.results.comparison import Row
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.ui.compare.sweep import figure, why_points

SCALES = (0.0001, 0.001, 0.01)


def noisy(scale: float, *, adaptive: bool = True, **settings: object) -> Experiment:
    return Experiment(
        defenses=(Part(id="clipping", fields={"bound": 1.0}), Part(id="gaussian_noise", fields={"scale": scale})),
        assume=Assumptions(adaptive=adaptive),
        **settings,
    )


def row(attacker: str, psnr: float | None) -> Row:
    return Row(
        "",
        "",
        attacker,
        "",
        "done",
        "Attack finished",
        True,
        None,
        None,
        psnr,
        None,
        None,
        None,
        None,
        None,
        None,
        {"psnr": 9.5},
        "",
        "",
        "",
    )


def test_every_attacker_has_points_where_something_is_known_in_the_order_of_strength_and_one_seed_no_line() -> None:
    experiments = [noisy(scale, adaptive=adaptive) for scale in reversed(SCALES) for adaptive in (False, True)]
    told = [row("naive", 8.0), row("adaptive", None), row("naive", 14.0), row("adaptive", 15.0), row("naive", 20.0), row("adaptive", 21.0)]
    made = figure(told, experiments, CATALOG)
    assert made
    lines = {line.name: list(zip(line.x, line.y, strict=True)) for line in made.data}
    assert lines == {"naive": [(0.0001, 20.0), (0.001, 14.0), (0.01, 8.0)], "adaptive": [(0.0001, 21.0), (0.001, 15.0)]}
    assert [line.mode for line in made.data] == ["markers", "markers"]
    assert why_points(experiments).startswith("The chart has points of one seed, without a line:")
    assert made.layout.xaxis.type == "log"
    grey, threshold = made.layout.shapes
    assert (grey.y0, threshold.x0, threshold.x1) == (9.5, 0.001, 0.01)
    assert made.layout.annotations[-1].xref == "paper"  # words with a place on the axis would stretch it


def test_several_seeds_are_their_mean_in_a_band_that_holds_it() -> None:
    tried = [noisy(scale, seed=seed) for seed in (1, 2, 3) for scale in (0.001, 0.1)]
    told = [row("adaptive", psnr) for psnr in (20.0, 9.0, 22.0, 9.0, 24.0, 9.0)]
    made = figure(told, tried, CATALOG)
    assert made
    band, line = made.data
    assert (line.mode, why_points(tried)) == ("lines+markers", "")
    assert list(zip(line.x, line.y, strict=True)) == [(0.001, 22.0), (0.1, 9.0)]
    half = 4.3027 * 2 / 3**0.5  # Student's t with two degrees of freedom, standard deviation 2, three values
    assert list(band.x) == [0.001, 0.1, 0.1, 0.001]
    assert list(band.y) == pytest.approx([22 + half, 9, 9, 22 - half])
    stopped = [*told[:-1], replace(told[-1], answered=False)]
    assert [one.mode for one in figure(stopped, tried, CATALOG).data] == ["markers"]  # "the best so far" is no answer: no line, no band
    two = figure(told[:4], tried[:4], CATALOG)
    assert [one.mode for one in two.data] == ["markers"]  # two seeds tell no spread
    assert list(two.data[0].y) == [21.0, 9.0]
    assert why_points(tried[:4]).startswith("The chart has points of 2 seeds, without a line:")
    partly = figure([*told[:-1], row("adaptive", None)], tried, CATALOG)  # the last run still plays
    assert partly
    assert partly.data[0].y[1] == pytest.approx(9.0)
    assert len(figure(told[:3] + [row("adaptive", None)] * 3, tried, CATALOG).data) == 1  # 0.1 has one seed so far: no band yet


def test_shares_stand_on_a_linear_axis_and_a_sweep_without_scores_has_no_curve() -> None:
    experiments = [Experiment(defenses=(Part(id="pruning", fields={"fraction": share}),)) for share in (0.0, 0.5, 0.9)]
    made = figure([row("adaptive", 20.0)] * 3, experiments, CATALOG)
    assert made
    assert made.layout.xaxis.type == "linear"
    assert (made.layout.shapes[1].x0, made.layout.shapes[1].x1) == (0.2, 0.3)
    assert figure([row("adaptive", None)] * 3, experiments, CATALOG) is None
