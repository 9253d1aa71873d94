"""Precomputed results: the strongest attacker of each protection, the cheapest training, and how the page shows them."""

import html
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_problems import CATALOG

from leakage.results import accuracy_cost, precomputed
from leakage.results.precomputed import Duel, accuracy_costs, costs_with_leakage, matrix, one_scene, scenes
from leakage.settings import ROOT
from leakage.ui.compare.attackers_view import describe, explanation, in_words, left_out, matrix_table, puzzles
from leakage.ui.compare.precomputed_results import leakage_against_accuracy, threshold

PRUNED = {"id": "pruning", "fields": {"fraction": 0.9}}
NOISE = {"id": "gaussian_noise", "fields": {"scale": 0.01}}


def cell(defense: dict[str, Any] | None, who: str, recognizable: int = 0, psnr: float = 8.0, **more: Any) -> dict[str, Any]:
    """What a benchmark writes of one attacker."""
    said = {"defense": defense, "who": who, "attack": "inverting_gradients", **more}
    if {"same", "absent", "refused"} & set(said):
        return said
    scores = {"ssim": 0.5, "identified": 0.5, "labels": 1.0, "grey_psnr": 12.5}
    return {**said, "runs": 6, "recognizable": recognizable, "singled_out": 0, "partly": 0, "interval": [0.1, 0.9], "psnr": psnr, **scores}


CELLS = [
    cell(None, "naive", 6, 30.0),
    cell(PRUNED, "naive", 0, 8.0),
    cell(PRUNED, "what arrived", 2, 15.0),
    cell(PRUNED, "what arrived, and bounds", 5, 14.0),
    cell(NOISE, "naive", 1, 12.0),
    cell(NOISE, "imitate", same="nobody can compute random noise again"),
    cell({"id": "fedkl", "fields": {}}, "naive", refused="FedKL needs BatchNorm."),
]


def lenet(activation: str) -> dict[str, Any]:
    return {"id": "lenet", "fields": {"activation": activation}}


def trained(
    defenses: list[dict[str, Any]], accuracy: float | list[float], rounds: int = 6, rate: float = 1.0, activation: str = "sigmoid"
) -> dict[str, Any]:
    """A training of the table of prices."""
    each = accuracy if isinstance(accuracy, list) else [accuracy]
    recipe = {"model": lenet(activation), "rounds": rounds, "pictures": 100, "batch": 64, "server_rate": rate}
    return {"defenses": defenses, "accuracy": each, **recipe}


ROWS = [
    trained([], 0.97),
    trained([PRUNED], 0.95),
    trained([PRUNED], 0.96, rate=0.1),
    trained([], 0.99, rounds=100),
    trained([NOISE], 0.9, rounds=100),
    trained([NOISE], 0.8, rounds=7),  # with nothing to hold it against
    trained([], 0.98, activation="relu"),
    trained([PRUNED], 0.979, activation="relu"),
]


@pytest.fixture(autouse=True)
def _assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "matrix.json").write_text(json.dumps({"recipe": {"pictures": 3, "seeds": 2}, "cells": CELLS}))
    (tmp_path / "accuracy_cost.json").write_text(
        json.dumps({"recipe": {"model": lenet("sigmoid"), "rounds": 6, "pictures": 100, "batch": 64}, "rows": ROWS})
    )
    monkeypatch.setattr(precomputed, "ASSETS", tmp_path)
    monkeypatch.setattr(accuracy_cost, "ACCURACY_COSTS", tmp_path / "accuracy_cost.json")
    precomputed.load_results.cache_clear()
    yield
    precomputed.load_results.cache_clear()


def duel(title: str) -> Duel:
    return next(line for line in matrix(CATALOG) if line.title.startswith(title)).duels["inverting_gradients"]


def test_the_strongest_of_those_who_know_is_who_recognizes_most() -> None:
    best = duel("Pruning").best
    assert best
    assert best["who"] == "what arrived, and bounds"  # 5 of 6, though at a lower PSNR
    assert duel("Pruning").only_naive
    assert duel("Gaussian").best is None  # against noise an adaptive attacker does the same as a naive one
    assert not duel("Gaussian").only_naive
    assert duel("No protection").knowing == {}


def test_a_training_is_held_against_one_as_long_without_protection() -> None:
    accuracy_drop = [(row.model, round(row.accuracy_drop, 6)) for row in accuracy_costs(CATALOG)]
    assert accuracy_drop == [("", 0), ("", 0.02), ("", 0.01), ("", 0), ("", 0.09), ("activation relu", 0), ("activation relu", 0.001)]


def test_a_protection_costs_what_its_cheapest_training_does_and_leaks_to_the_strongest() -> None:
    points = {cost.title: (cost.accuracy_drop, found["psnr"]) for cost, found in costs_with_leakage(CATALOG, "inverting_gradients")}
    assert [(round(accuracy_drop, 6), psnr) for accuracy_drop, psnr in points.values()] == [(0, 30.0), (0.01, 14.0), (0.09, 12.0)]
    figure = leakage_against_accuracy(
        list(costs_with_leakage(CATALOG, "inverting_gradients")), scene="LeNet on MNIST", recipe="LeNet on MNIST, 6 rounds"
    )
    (drawn,) = figure.data
    assert list(drawn.x) == pytest.approx([97, 96, 90])
    assert drawn.mode == "markers+text"
    assert [words.split(" (")[0] for words in drawn.text] == list(points)
    assert figure.layout.xaxis.title.text == "Accuracy of LeNet on MNIST, 6 rounds, one seed (%)"
    assert figure.layout.yaxis.title.text == "what leaks of LeNet on MNIST (dB)"


def test_leakage_of_one_data_set_is_not_drawn_against_accuracy_on_another(tmp_path: Path) -> None:
    wanted = {("cifar10", "sigmoid"): False, ("mnist", "sigmoid"): True, ("mnist", "relu"): False}  # the cells are of LeNet as it comes
    for (data, activation), alike in wanted.items():
        (tmp_path / "matrix.json").write_text(json.dumps({"recipe": {"model": "lenet", "data": data}, "cells": CELLS}))
        (tmp_path / f"{activation}.json").write_text(json.dumps({"recipe": {"model": lenet(activation), "data": "mnist"}, "rows": []}))
        precomputed.load_results.cache_clear()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(accuracy_cost, "ACCURACY_COSTS", tmp_path / f"{activation}.json")
            assert one_scene(CATALOG) == alike


def test_a_cost_is_certain_only_where_seeds_alone_do_not_make_as_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """43 beside 97.5 % was called "no difference": three trainings that scatter so much cannot show one, nor that there is none."""
    pruned = [{**PRUNED, "fields": {"fraction": share}} for share in (0.5, 0.9, 0.99)]
    rows = [trained([], [0.97, 0.98, 0.99]), trained([NOISE], [0.9, 0.91, 0.92])]
    rows += [trained([pruned[0]], [0.96, 0.97, 0.98]), trained([pruned[2]], [0.2, 0.15, 0.94])]
    (tmp_path / "seeds.json").write_text(json.dumps({"recipe": {"model": lenet("sigmoid")}, "rows": rows}))
    monkeypatch.setattr(accuracy_cost, "ACCURACY_COSTS", tmp_path / "seeds.json")
    half = 100 * 2.7764 * math.sqrt(2 * 0.01**2 / 3)  # Student's t with 4 degrees of freedom: spreads are equal; standard deviation 0.01
    assert [row.difference for row in accuracy_costs(CATALOG)] == [
        "",
        f"drop of 7.0 percentage points, {7 - half:.1f} to {7 + half:.1f} with 95 % confidence",
        "1.0 percentage points lower; too few trainings to be certain",
        "55.0 percentage points lower; too few trainings to be certain",
    ]


def test_no_cost_is_called_none_where_it_may_be_more_than_a_point() -> None:
    for cost in accuracy_costs(CATALOG):
        if cost.difference == accuracy_cost.NO_DIFFERENCE:
            assert abs(cost.accuracy_drop) < 0.01
        if cost.difference.startswith("drop"):
            assert float(cost.difference.split(" to ")[1].split()[0]) <= 100


def test_the_table_frames_what_only_fools_the_naive_and_says_why_knowing_changes_nothing() -> None:
    table = matrix_table(matrix(CATALOG), CATALOG)
    none, pruned, noise, refused = table.split("<tbody>")[1].split("<tr>")[1:]
    assert 'colspan="2"' in none
    assert "--share:1.00" in none
    assert pruned.index(">8.0<") < pruned.index("data-framed") < pruned.index(">14.0<")
    assert "data-framed" not in none + noise + refused
    assert 'title="Imitate: nobody can compute random noise again."' in noise
    assert "FedKL needs BatchNorm." in refused


def test_what_was_not_played_is_a_dash_with_its_reason_and_refuses_no_other_attack() -> None:
    cells = [
        cell(PRUNED, "naive", 6, 30.0),
        cell(PRUNED, "imitate", absent="no network was trained behind it"),
        cell(PRUNED, "naive", attack="r_gap", refused="R-GAP needs 64 bits"),
    ]
    (line,) = precomputed.lines_of(cells, CATALOG)
    assert line.refused == ""
    table = matrix_table([line], CATALOG).split("<tbody>")[1]
    found = re.findall(r'<td(?: colspan="(\d)")?(?: title="([^"]*)")?[^>]*>\s*(?:<span[^>]*>)?\s*([^<\s]+)', table)
    assert [(span, words) for span, _, words in found] == [("", "30.0"), ("", "–"), ("2", "–")]
    assert found[1][1] == "Imitate: no network was trained behind it."
    assert found[2][1] == "Naive: R-GAP needs 64 bits."


def test_tables_of_other_scenes_stand_beside_the_one_that_pages_go_by(tmp_path: Path) -> None:
    assert [scene.title for scene in scenes(CATALOG)] == ["A photograph"]
    recipe = {"data": "mnist", "pictures": 2, "seeds": 1, "attacks": {"gifd": {"noise": 0.5}, "ggl": {}}, "watched": 16}
    own = [cell(None, "naive", 2, 25.0, attack="ggl"), cell(None, "naive", 3, 35.0, attack="gifd"), cell(NOISE, "naive", attack="ggl")]
    digits = {"title": "A digit", "about": "One digit.", "recipe": recipe, "left_out": {"gias": "it takes too long"}, "cells": own}
    (tmp_path / "matrix_scenes.json").write_text(json.dumps({"scenes": [digits]}))
    precomputed.load_results.cache_clear()
    _, scene = scenes(CATALOG)
    assert [(line.title, list(line.duels)) for line in scene.lines] == [
        ("No protection", ["ggl", "gifd"]),
        ("Gaussian noise 0.01", ["ggl"]),
    ]
    assert matrix(CATALOG) == scenes(CATALOG)[0].lines  # what Ask and the lessons go by is as it was
    told = explanation(scene, CATALOG)
    assert told.startswith(
        "One digit. Each cell says how close the guess came, in decibels (PSNR): the mean of 6 runs (2 pictures, 1 seed)"
    )
    assert "A grey picture scores 12.5 dB" in told
    assert "GIFD: noise 0.5. An attacker that combines rounds of training watches 16 rounds in which the server" in told
    assert "combines rounds" not in explanation(replace(scene, recipe={**recipe, "watched": 1}), CATALOG)
    assert left_out(scene, CATALOG) == ["GIAS is not in this table: it takes too long."]


def test_who_does_worse_for_knowing_is_explained_in_all_that_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    naive = cell(PRUNED, "naive", 6, 25.0)
    assert Duel(naive, {"one": cell(PRUNED, "one", 6, 22.9), "two": cell(PRUNED, "two", 5, 24.5)}).backfires  # recognising counts first
    assert not Duel(naive, {"one": cell(PRUNED, "one", 6, 23.1)}).backfires
    assert not Duel(cell(PRUNED, "naive", 0, 12.0), {"one": cell(PRUNED, "one", 1, 6.0)}).backfires  # it shows one that was not shown
    assert puzzles(matrix(CATALOG), CATALOG) == []
    monkeypatch.setattr(precomputed, "ASSETS", ROOT / "assets")
    precomputed.load_results.cache_clear()
    odd = {part.id for line in matrix(CATALOG) if any(duel.backfires for duel in line.duels.values()) for part in line.stack}
    explained = {entry.id: entry.backfires for entry in CATALOG.defenses if entry.backfires}
    assert odd == set(explained) == {"low_precision", "minmax_sampling"}
    assert puzzles(matrix(CATALOG), CATALOG) == list(explained.values())


def test_every_cell_of_the_shipped_table_that_knowing_makes_worse_has_its_reason_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precomputed, "ASSETS", ROOT / "assets")
    precomputed.load_results.cache_clear()
    worse = 0
    for line in [line for scene in scenes(CATALOG) for line in scene.lines]:
        for attack, duel in line.duels.items():
            for who, one in duel.knowing.items():
                base = (duel.naive or {}).get("psnr")
                loses = base is not None and "psnr" in one and one["psnr"] < base - 1  # dB, as benchmarks/_cells.py
                assert ("below" in one) == loses, (line.title, attack, who)
                if loses:
                    worse += 1
                    sentence = f"This attacker comes less close than the naive attacker: {one['below']}."
                    assert describe(one, CATALOG).endswith(sentence)
                    assert any(words.endswith(sentence) for words in in_words(line, CATALOG))
                    assert sentence in html.unescape(matrix_table([line], CATALOG))
    assert worse == 23  # as assets/matrix.json and assets/matrix_scenes.json were measured


def test_every_attacker_is_told_in_words() -> None:
    line = next(line for line in matrix(CATALOG) if line.title.startswith("Pruning"))
    words = in_words(line, CATALOG)
    assert len(words) == 3
    assert words[2].endswith(
        "What arrived, and bounds: 14.0 dB, SSIM 0.50, 5 of 6 recognizable (10 to 90 % with 95 % confidence), first of the line-up 50 %, "
        "labels found 100 %."
    )
    assert describe(CELLS[5], CATALOG) == "Imitate: nobody can compute random noise again."


def test_a_threshold_has_a_line_and_a_band_for_each_attacker() -> None:
    def point(scale: float, who: str, each: list[float]) -> dict[str, Any]:
        fields = {"id": "gaussian_noise", "fields": {"scale": scale}, "who": who, "recognizable": 1, "runs": 2}
        return {**fields, "psnr": sum(each) / 2, "psnr_each": each, "grey_psnr": 12.5}

    rows = [point(s, who, [10 / s, 20 / s]) for s in (0.1, 1.0) for who in ("naive", "adaptive")]
    band, line, *_ = threshold(rows, CATALOG).data
    assert list(band.x) == [0.1, 1.0, 1.0, 0.1]
    assert list(band.y) == [200, 20, 10, 100]  # along the best, back along the worst
    assert (list(line.y), list(line.text)) == ([150, 15], ["1/2", "1/2"])
