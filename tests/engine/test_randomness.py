"""The names from which random numbers are derived: with another name no result could be repeated."""

from typing import Any

import pytest
import torch
from small_problems import LABELS, TINY, smooth

from leakage.engine import client_protections, core, federation, weights
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import observe

DRAWN = {
    "shuffled": ({"protocol": Part(id="fedavg", fields={"mini_batch": 1, "shuffled": True})}, [(1, "client", 0)]),
    "noise": ({"defenses": (Part(id="gaussian_noise"),)}, [(1, "defense", 0, "gaussian_noise", 0)]),
    "in a sum": (
        {"defenses": (Part(id="gaussian_noise"),), "aggregation": Part(id="secure_aggregation", fields={"clients": 2})},
        [(1, "defense", 0, "gaussian_noise", 0), (1, "defense", 0, "gaussian_noise", 1, 0)],
    ),
    "a changed model": ({"defenses": (Part(id="precode"),)}, [(1, "defense", 0, "precode", "weights")]),
}


@pytest.mark.parametrize("name", DRAWN)
def test_every_random_number_has_the_purpose_that_it_always_had(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[Any, ...]] = []

    def noted(seed: int, *purpose: str | int) -> torch.Generator:
        drawn.append((seed, *purpose))
        return core.generator(seed, *purpose)

    for module in (client_protections, federation, weights):
        monkeypatch.setattr(module, "generator", noted)
    settings, purposes = DRAWN[name]
    observe(Experiment(model=TINY, **settings), smooth(2), LABELS[:2])
    assert (1, "model") in drawn
    assert [one for one in purposes if one not in drawn] == []
