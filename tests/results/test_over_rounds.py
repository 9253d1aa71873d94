"""The leakage of many rounds beside epsilon: read from the result file, in words, and drawn on one axis."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_problems import CATALOG

from leakage.engine.accounting import epsilon
from leakage.results import precomputed
from leakage.results.over_rounds import best_of, curves
from leakage.settings import ROOT
from leakage.spec.experiment import Experiment, Part
from leakage.ui.compare.rounds_view import closeness, hook, over_rounds
from leakage.ui.lab.threat_model_table import setting_rows

DP = {"id": "dp_sgd", "fields": {"max_grad_norm": 1.0, "noise_multiplier": 1.0}}
SAMPLED = {"id": "minmax_sampling", "fields": {"ratio": 0.05}}


def cell(defense: dict[str, Any], who: str, rounds: int, psnr: float, recognizable: int = 0, bound: float | None = 0.0) -> dict[str, Any]:
    """What the benchmark writes; `bound`: epsilon, 0 where none is promised."""
    shown = {"runs": 2, "recognizable": recognizable, "singled_out": 0, "partly": 0, "psnr": psnr, "grey_psnr": 12.0}
    promised = None if bound == 0 else {"value": bound, "delta": 1e-5}
    return {"defense": defense, "who": who, "rounds": rounds, **shown, "epsilon": promised}


CELLS = [
    cell(DP, "average the rounds", 1, 5.0, bound=4.39),
    cell(DP, "average the rounds", 5, 6.0, bound=11.5),
    cell(DP, "average the rounds", 100, 9.0, bound=None),
    cell(SAMPLED, "average the rounds", 1, 6.0),
    cell(SAMPLED, "average the rounds", 100, 15.0, 1),
    cell(SAMPLED, "solve it", 1, 7.0),
    cell(SAMPLED, "solve it", 100, 25.0, 2),
    cell({"id": "gone", "fields": {}}, "imitate", 1, 5.0),
]


@pytest.fixture
def _assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "rounds.json").write_text(json.dumps({"recipe": {"pictures": 2, "attacks": {}}, "cells": CELLS}))
    monkeypatch.setattr(precomputed, "ASSETS", tmp_path)
    precomputed.load_results.cache_clear()
    yield
    precomputed.load_results.cache_clear()


@pytest.mark.usefixtures("_assets")
def test_a_curve_says_what_the_first_and_the_last_round_gave_and_how_epsilon_grew() -> None:
    private, *_ = curves(CATALOG)
    assert private.epsilons == [4.39, 11.5, math.inf]
    assert private.sentence() == (
        "After 1 round 5.0 dB, not shown by this attack in 2 runs; after 100 rounds 9.0 dB, not shown by this attack in 2 runs. "
        "Its privacy budget (epsilon) says so: 4.4 after the first, ∞ in the end, above 200."
    )


@pytest.mark.usefixtures("_assets")
def test_of_several_strategies_the_one_that_ends_highest_speaks_for_a_protection_of_that_strength_alone() -> None:
    found = best_of([Part(**SAMPLED)], CATALOG)
    assert found is not None
    assert (found.strategy, found.best) == ("solve it", 25.0)
    assert best_of([Part(id="minmax_sampling")], CATALOG) == found  # 0.05 is its default
    assert best_of([Part(id="minmax_sampling", fields={"ratio": 0.5})], CATALOG) is None
    assert best_of([Part(**SAMPLED), Part(**DP)], CATALOG) is None
    assert best_of([], CATALOG) is None


@pytest.mark.usefixtures("_assets")
def test_the_threat_model_table_has_it_beside_the_privacy_budget() -> None:
    rows = {about: (tag, told) for tag, about, told in setting_rows(Experiment(defenses=(Part(**SAMPLED),)), CATALOG, None, None)}
    tag, told = rows["How well this protection holds over many rounds"]
    assert tag == "precomputed"
    assert "(solve it): After 1 round 7.0 dB" in told
    assert "25.0 dB, 2 of 2 recognizable. The protection promises no privacy budget (epsilon)." in told
    assert "How well this protection holds over many rounds" not in {
        about for _, about, _ in setting_rows(Experiment(), CATALOG, None, None)
    }


@pytest.mark.usefixtures("_assets")
def test_pictures_and_epsilon_stand_on_one_axis_of_rounds() -> None:
    private, averaged, solved = curves(CATALOG)
    line, bound = over_rounds([private], CATALOG).data
    assert (list(line.x), list(line.y)) == ([1, 5, 100], [5, 6, 9])
    assert (list(bound.x), list(bound.y), bound.yaxis) == ([1, 5], [4.39, 11.5], "y2")  # 100 rounds bound nothing
    assert [one.name for one in over_rounds([averaged, solved], CATALOG).data] == ["Average the rounds", "Solve it"]


def test_the_shipped_table_holds_the_accountants_epsilon_beside_every_picture() -> None:
    promised = [one for one in json.loads((ROOT / "assets" / "rounds.json").read_text())["cells"] if one["epsilon"]]
    assert {one["defense"]["id"] for one in promised} == {"dp_sgd", "fed_cdp"}
    for one in promised:
        sigma = one["defense"]["fields"]["noise_multiplier"] / (
            8**0.5 if one["defense"]["id"] == "fed_cdp" else 1
        )  # LeNet has eight tensors
        found = one["epsilon"]["value"]
        assert epsilon(sigma, one["rounds"]) == pytest.approx(math.inf if found is None else found, rel=1e-6)


def test_the_shipped_curves_are_of_every_round_and_no_strategy_loses_by_watching_longer() -> None:
    assert {one.defense.id for one in curves(CATALOG)} >= {"gaussian_noise", "dp_sgd", "fed_cdp", "outpost", "minmax_sampling"}
    for one in curves(CATALOG):
        assert [own["rounds"] for own in one.cells] == [1, 5, 20, 100]
        assert one.cells[-1]["cosine"] > one.cells[0]["cosine"], one.title


def test_the_shipped_solution_of_minmax_sampling_is_what_was_promised() -> None:
    solved = json.loads((ROOT / "assets" / "glaus.json").read_text())
    close = {row["draws"]: row["solve it"] for row in solved["cifar"] if row["ratio"] == 0.05}
    assert close[5] >= 0.88
    assert close[20] >= 0.97
    assert close[100] >= 0.99
    assert [one.name for one in closeness(solved["cifar"]).data] == [
        *("Solve it", "Average the rounds", "Count how often", "With an accomplice")
    ]
    c = (solved["hook"]["smallest"] / 2) ** 2
    points, least = hook(solved["hook"]).data
    assert set(least.y) == {solved["hook"]["smallest"]}
    for g, v in zip(points.x, points.y, strict=True):
        assert v == pytest.approx(g + c / g, rel=1e-3)
    published = {row["draws"]: row["with an accomplice: accomplice"] for row in solved["digits"]}
    assert [published[number] for number in (1, 10, 100, 1000)] == pytest.approx([0.61, 0.92, 0.99, 0.998], abs=0.01)
