"""What checks find on honest networks, trained and untrained, and on the networks of each server that changes the model."""

import json
import math
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from small_problems import CATALOG, IDS, cheated, light, smooth
from torch import nn

from leakage.checks.head_rows import HeadRows
from leakage.data.checkpoints import Card, cards
from leakage.engine.check import CheckReading
from leakage.engine.client import weights_of
from leakage.engine.core import Check, Handed, Params
from leakage.engine.observe import inspection_of, observe, ready
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import federation, load_checkpoint, network, plugin, untrained

GRADIENTS = ("alive", "d_snr")  # checks that read the gradients of the client's pictures; the others read weights alone
WEIGHTS = [id for id in IDS["check"] if id not in GRADIENTS]
CLIENTS = 2
TRIPPED: dict[str, set[str]] = {  # server -> the checks that trip at their default thresholds in its last round
    "bisect": {"d_snr", "equal_rows", "new_layers"},
    "class_fishing": {"alive", "d_snr", "head_rows"},
    "feature_fishing": {"alive", "head_rows"},
    "first_layer": {"new_layers"},
    "identity_kernels": {"equal_rows", "transmit_snr"},
    "imprint": {"d_snr", "equal_rows", "new_layers"},
    "imprint_sparse": {"d_snr", "equal_rows", "new_layers"},
    "inconsistent": {"alive", "same_for_all"},
    "label_flip": {"head_rows"},
    "loki": {"d_snr", "new_layers", "same_for_all", "transmit_snr"},
    "traps": {"trap_rows"},
}
LATER: dict[str, dict[str, object]] = {  # servers that checks see in a later round than the server needs
    "label_flip": {"rounds": 2, "attacked_round": 2, "server": Part(id="label_flip", fields={"first_round": 2})},
}
MEASURED = Path(__file__).parents[2] / "benchmarks" / "results" / "checks.json"
FROM_THE_FIRST_ROUND = ("label_flip", "head_rows")  # without published weights there is nothing to compare the rows with


def test_the_checks_of_weights_are_those_of_the_list() -> None:
    assert WEIGHTS == ["equal_rows", "head_rows", "new_layers", "same_for_all", "transmit_snr", "trap_rows"]


def of_weights() -> Iterator[Check]:
    """Yield the checks that read weights alone, with head_rows also beside published weights."""
    yield from (plugin("check", Part(id=id)) for id in WEIGHTS)
    yield HeadRows(published=True)


def alarms(handed: Handed) -> dict[str, float]:
    """Return the numbers of the checks of weights that trip."""
    found = {check.id: (check, check.measure(handed)) for check in of_weights()}
    assert not any(math.isnan(number) for _, number in found.values())  # each of them is defined here
    return {id: number for id, (check, number) in found.items() if check.trips(number)}


def honest(model: nn.Module, agreed: nn.Module, shape: tuple[int, int, int], earlier: list[Params]) -> Handed:
    """Return what a client holds that received this model, as another client did."""
    x = torch.rand((2, *shape), generator=torch.Generator().manual_seed(0))
    return Handed(model.eval(), agreed.eval(), x, torch.tensor([0, 1]), earlier, [deepcopy(weights_of(model))])


@pytest.mark.parametrize("card", cards().values(), ids=lambda card: card.id)
def test_no_check_of_weights_trips_on_a_stage_of_an_honest_training(card: Card) -> None:
    part = Part(id=card.model, fields=card.fields)
    agreed = untrained(part, card.image_shape, card.num_classes, seed=card.training["seed"])
    earlier = [weights_of(agreed)]
    assert len(card.stages) >= 3
    for stage in card.stages:
        model = untrained(part, card.image_shape, card.num_classes, seed=0)
        load_checkpoint(model, f"{card.id}@{stage.rounds}")
        assert alarms(honest(model, agreed, card.image_shape, earlier)) == {}
        earlier = [*earlier, weights_of(model)]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", IDS["model"])
def test_no_check_of_weights_trips_on_an_untrained_network(name: str, seed: int) -> None:
    shape = (3, 32, 32)
    model = untrained(light(name), shape, 10, seed=seed)
    assert alarms(honest(model, deepcopy(model), shape, [])) == {}
    assert 2 * len(IDS["model"]) >= 20


# ---------------------------------------------------------------- the servers


def found_on(cheating: str, **settings: object) -> Mapping[int, dict[str, CheckReading]]:
    """Return what all checks find on what a server hands to two clients with four pictures each: round -> check -> reading."""
    x, y = smooth(8), torch.arange(8)
    sum_of = {"aggregation": Part(id="secure_aggregation", fields={"clients": CLIENTS})}
    checks = {"checks": tuple(Part(id=id) for id in IDS["check"]), "refuse": False}
    experiment = Experiment(**{**cheated(cheating), **LATER.get(cheating, {}), **sum_of, **checks, **settings})
    setting, agreed = federation(experiment), network(experiment, (1, 8, 8))
    inspection, model = inspection_of(agreed, setting, x), ready(agreed, setting, x)
    observe(model, x, y, setting, num_classes=10, inspection=inspection)
    rounds: dict[int, dict[str, CheckReading]] = {}
    for reading in inspection.readings:
        rounds.setdefault(reading.round, {})[reading.check] = reading
    return rounds


def tripped(readings: Mapping[str, CheckReading]) -> set[str]:
    return {id for id, reading in readings.items() if reading.tripped}


def test_every_server_has_its_row_in_the_table_of_this_test() -> None:
    assert set(TRIPPED) >= set(IDS["server"]), "Add the new server's row to TRIPPED: the checks that trip at their default thresholds."


@pytest.mark.parametrize("cheating", IDS["server"])
def test_the_checks_of_the_table_trip_on_a_server_and_no_others(cheating: str) -> None:
    rounds = found_on(cheating)
    last = rounds[max(rounds)]
    assert list(last) == IDS["check"]
    assert tripped(last) == TRIPPED[cheating]
    assert TRIPPED[cheating], "a server that no check sees must be named as such"


def test_the_benchmark_measured_what_the_table_says() -> None:
    runs = [run for run in json.loads(MEASURED.read_text())["runs"] if "server" in run]
    cells = {(run["server"], run["check"]): run["result"] for run in runs}
    assert {server.split()[0] for server, _ in cells} == set(IDS["server"])
    for (name, check), cell in cells.items():
        server = name.split()[0]
        if check in GRADIENTS:  # depends on the pictures; the others trip on each draw or on none
            continue
        expected = check.split(",")[0] in TRIPPED[server] and (name, check) != FROM_THE_FIRST_ROUND
        assert all(cell[size]["hits"] == expected * cell[size]["of"] == expected * 6 for size in ("1", "8", "16")), (name, check)
        assert all((cell[size]["number"] > cell["threshold"]) == expected for size in ("1", "8", "16")), (name, check)


def test_an_honest_server_trips_none_of_them() -> None:
    rounds = found_on("imprint", server=None, rounds=3, attacked_round=1)
    assert len(rounds) == 3
    assert [tripped(readings) for readings in rounds.values()] == [set()] * 3


@pytest.mark.parametrize("cheating", [entry.id for entry in CATALOG.servers if entry.changes == "architecture"])
def test_new_layers_sees_every_server_that_changes_the_network(cheating: str) -> None:
    assert "new_layers" in TRIPPED[cheating]


@pytest.mark.parametrize("cheating", [entry.id for entry in CATALOG.servers if entry.changes == "parameters"])
def test_new_layers_sees_no_server_that_changes_values_alone(cheating: str) -> None:
    assert "new_layers" not in TRIPPED[cheating]
