"""Epsilon in the Result of an attack: value, delta, what it protects and on which assumption."""

import math
import sys

import pytest
import torch
from torch import nn

import leakage
from leakage.defenses.dp_sgd import DPSGD
from leakage.engine import accounting


@pytest.mark.parametrize("noise_multiplier", [2.0, 0.0])
def test_a_result_states_the_privacy_budget_that_its_protection_promises(noise_multiplier: float) -> None:
    found = attacked(DPSGD(noise_multiplier=noise_multiplier)).privacy
    assert found is not None
    assert found.epsilon == (accounting.epsilon(2.0, 1) if noise_multiplier else math.inf)
    assert (found.delta, found.unit, found.uses) == (1e-5, "one picture, present or absent", 1)
    assert "the noise stays secret" in found.assumption


@pytest.mark.parametrize("defenses", [(), ("gaussian_noise",)])
def test_without_a_promise_there_is_no_budget(defenses: tuple[str, ...]) -> None:
    assert attacked(*defenses).privacy is None


def test_without_the_accountant_an_attack_goes_on_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opacus.accountants", None)  # as where the package is not installed
    found = attacked(DPSGD(noise_multiplier=2.0)).privacy
    assert found is not None
    assert found.epsilon is None
    assert found.assumption == (
        'Epsilon is computed by the package opacus, which is not installed. Run `pip install "gradient-leakage-explorer[privacy]"`.'
    )


def attacked(*defenses: str | DPSGD) -> leakage.Result:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
    return leakage.attack(model, torch.rand(1, 3, 4, 4), torch.tensor([2]), attack="linear_layer", defenses=defenses)
