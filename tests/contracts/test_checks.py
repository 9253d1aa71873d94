"""Every check of the received model: a number that depends on what one client holds, and a refusal where it trips."""

import copy
import math

import pytest
import torch
from small_problems import CATALOG, IDS, cheated, handed_to, prepared, smooth

from leakage.engine.check import RefusedError
from leakage.engine.core import Check
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import plugin

CHECKS = pytest.mark.parametrize("check", IDS["check"])
THREE = Part(id="secure_aggregation", fields={"clients": 3})


def asked(*checks: str, **settings: object) -> Experiment:
    """Return an experiment with an imprint and these checks."""
    return Experiment(**{**cheated("imprint"), "checks": tuple(Part(id=id) for id in checks), **settings})


@pytest.mark.parametrize("by", [None, Part(id="imprint")], ids=["honest", "imprint"])
@CHECKS
def test_a_check_says_the_same_twice_and_alters_nothing(check: str, by: Part | None) -> None:
    measuring = plugin("check", Part(id=check))
    for handed in handed_to(asked(check, server=by, aggregation=THREE), smooth(6)):
        before = copy.deepcopy((dict(handed.model.named_parameters()), dict(handed.agreed.named_parameters()), handed.x, handed.y))
        first, second = measuring.measure(handed), measuring.measure(handed)
        assert isinstance(first, float)
        assert first == second or (math.isnan(first) and math.isnan(second))
        after = (dict(handed.model.named_parameters()), dict(handed.agreed.named_parameters()), handed.x, handed.y)
        for was, now in zip(before, after, strict=True):
            tensors = zip(was.values(), now.values(), strict=True) if isinstance(was, dict) else [(was, now)]
            assert all(torch.equal(old, new) for old, new in tensors)


@CHECKS
def test_a_check_trips_above_its_threshold_and_never_where_it_is_not_defined(check: str) -> None:
    measuring: Check = plugin("check", Part(id=check))
    assert not measuring.trips(measuring.threshold)
    assert measuring.trips(math.nextafter(measuring.threshold, math.inf))
    assert not measuring.trips(math.nan)
    assert CATALOG.checks.get(check).measures


def test_a_check_that_trips_ends_the_run_before_anything_is_sent() -> None:
    with pytest.raises(RefusedError, match=r"in round 1: the check New layers measured 4, above its threshold of 0\. Nothing was sent\.$"):
        prepared(asked("new_layers"), smooth(3))  # the imprint adds two layers, each with weights and biases


def test_a_check_that_only_reports_lets_the_clients_send() -> None:
    shown = prepared(asked("new_layers", refuse=False), smooth(3))
    (reading,) = shown.checked
    assert (reading.number, reading.threshold, reading.tripped, reading.round) == (4, 0, True, 1)
    assert shown.seen.secret


def test_an_honest_server_trips_no_check_of_the_layers() -> None:
    (reading,) = prepared(asked("new_layers", server=None), smooth(3)).checked
    assert (reading.number, reading.tripped) == (0, False)
