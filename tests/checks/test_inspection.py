"""The clients' checks in a federation: who checks what in which round, and what a refusal ends."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from small_problems import IDS, RELU, relative, smooth
from torch import nn

from leakage.checks.new_layers import NewLayers
from leakage.checks.same_for_all import SameForAll
from leakage.engine.check import CheckReading, RefusedError
from leakage.engine.client import weights_of
from leakage.engine.core import Check, Handed, Observation, Params, Server
from leakage.engine.inspection import Inspection
from leakage.engine.observe import inspection_of, observe, ready
from leakage.servers.imprint import Imprint
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import federation, network, prepare

X, Y = smooth(6), torch.arange(6)
SUM = {"aggregation": Part(id="secure_aggregation", fields={"clients": 3})}


def computed(formula: Callable[[Handed], float], threshold: float = 1e6) -> Check:
    """Return a check with this formula as its number."""

    @dataclass(frozen=True, kw_only=True)
    class Computed(Check):
        title = "Computes a formula"
        short = "Formula"

        def measure(self, handed: Handed) -> float:
            return formula(handed)

    return Computed(threshold=threshold)


def inspected(
    *checks: Check, server: Server | None = None, refuse: bool = False, **settings: object
) -> tuple[Inspection | None, Callable[[], Observation]]:
    """Return the clients' inspection, and a function that runs all rounds and returns what the server sees."""
    experiment = Experiment(model=RELU, **settings)
    setting = replace(federation(experiment), checks=checks, refuse=refuse)
    setting = replace(setting, server=server) if server else setting
    agreed = network(experiment, (1, 8, 8))
    inspection = inspection_of(agreed, setting, X)
    model = ready(agreed, setting, X)
    return inspection, lambda: observe(model, X, Y, setting, num_classes=10, inspection=inspection)


def readings(*checks: Check, **settings: object) -> list[CheckReading]:
    """Return what all checks found in all rounds."""
    inspection, run = inspected(*checks, **settings)
    run()
    return inspection.readings


def distance(one: Params, other: Params) -> float:
    """Return the norm of the difference of all tensors."""
    return math.sqrt(sum(float((one[name] - other[name]).detach().square().sum()) for name in one))


def first_pixel(handed: Handed) -> float:
    return float(handed.x[0, 0, 0, 0])


def test_each_client_checks_with_its_own_pictures_and_the_largest_number_counts() -> None:
    firsts = [float(X[number, 0, 0, 0]) for number in (0, 2, 4)]  # of each of three clients with two pictures
    counted = list[tuple[int, list[int]]]()
    (reading,) = readings(computed(lambda handed: counted.append((len(handed.x), handed.y.tolist())) or first_pixel(handed)), **SUM)
    assert reading.number == max(firsts)
    assert counted == [(2, [0, 1]), (2, [2, 3]), (2, [4, 5])]
    assert (reading.check, reading.title, reading.round, reading.tripped) == ("test_inspection", "Formula", 1, False)


def test_a_client_for_which_a_check_is_not_defined_does_not_count_and_nan_never_trips() -> None:
    firsts = sorted(float(X[number, 0, 0, 0]) for number in (0, 2, 4))
    hidden = computed(lambda handed: math.nan if first_pixel(handed) == firsts[2] else first_pixel(handed))
    undefined = computed(lambda _handed: math.nan, threshold=-1e9)
    found = readings(hidden, undefined, refuse=True, **SUM)
    assert found[0].number == firsts[1]
    assert math.isnan(found[1].number)
    assert not found[1].tripped


def test_every_round_is_checked_with_the_weights_of_that_round_and_of_the_rounds_before() -> None:
    def step(handed: Handed) -> float:
        """Return how far the weights moved since the round before; -1 in the first round."""
        return distance(weights_of(handed.model), handed.earlier[-1]) if handed.earlier else -1

    def moved(handed: Handed) -> float:
        return distance(weights_of(handed.model), weights_of(handed.agreed))

    protocol = Part(id="fedsgd", fields={"rate": 0.1})
    inspection, run = inspected(computed(lambda handed: len(handed.earlier)), computed(step), computed(moved), protocol=protocol, rounds=3)
    history = run().received.history
    sizes = [0.1 * distance(seen.update, {name: torch.zeros(()) for name in seen.update}) for seen in history]
    counts, steps, distances = ([reading.number for reading in inspection.readings[number::3]] for number in range(3))
    assert counts == [0, 1, 2]
    assert steps == pytest.approx([-1, sizes[0], sizes[1]], rel=1e-4)  # float32: a difference of weights
    assert distances[:2] == pytest.approx([0, sizes[0]], rel=1e-4)  # the agreed network keeps its initial weights
    assert [reading.round for reading in inspection.readings] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_a_refusal_says_what_was_measured_and_that_nothing_was_sent() -> None:
    large = computed(lambda _handed: 2.0, threshold=1.5)
    inspection, run = inspected(computed(lambda _handed: 1.0), NewLayers(), large, server=Imprint(), refuse=True)
    with pytest.raises(RefusedError) as refused:
        run()
    assert str(refused.value) == (
        "The phone refused to train this model in round 1: the check New layers measured 4, above its threshold of 0. Nothing was sent."
    )
    assert refused.value.tripped.check == "new_layers"  # the first of the two that tripped
    assert [reading.tripped for reading in refused.value.readings] == [False, True, True]
    assert list(refused.value.readings) == inspection.readings


def in_round(number: int) -> Check:
    """Return a check that trips in one round."""
    return computed(lambda handed: float(len(handed.earlier) + 1 == number), threshold=0.5)


@pytest.mark.parametrize("number", [1, 2])
def test_a_refusal_before_the_attacked_round_ends_the_run_in_that_round(number: int) -> None:
    inspection, run = inspected(in_round(number), refuse=True, rounds=3, attacked_round=2)
    since = "" if number == 1 else " from this round on"
    with pytest.raises(
        RefusedError, match=rf"in round {number}: the check Formula measured 1, above its threshold of 0\.5\. Nothing was sent{since}\.$"
    ):
        run()
    assert [reading.tripped for reading in inspection.readings] == [False] * (number - 1) + [True]


def test_a_refusal_after_the_attacked_round_ends_the_watched_rounds() -> None:
    settings = {"rounds": 4, "attacked_round": 2}
    inspection, run = inspected(in_round(3), refuse=True, **settings)
    seen = run()
    unchecked = inspected(**settings)[1]()
    assert (len(seen.received.history), len(unchecked.received.history)) == (2, 4)
    assert [reading.tripped for reading in inspection.readings] == [False, False, True]
    for own, other in zip(seen.received.history, unchecked.received.history, strict=False):
        assert all(torch.equal(own.update[name], value) for name, value in other.update.items())
    assert relative(seen.update, unchecked.update) == 0


def test_checks_that_do_not_refuse_change_nothing_and_are_reported() -> None:
    settings = {"rounds": 3, "attacked_round": 2, **SUM}
    inspection, run = inspected(in_round(1), in_round(3), refuse=False, **settings)
    seen, unchecked = run(), inspected(**settings)[1]()
    assert [reading.tripped for reading in inspection.readings] == [True, False, False, False, False, True]
    assert len(seen.received.history) == 3
    for own, other in zip(seen.received.history, unchecked.received.history, strict=True):
        assert all(torch.equal(own.update[name], value) for name, value in other.update.items())
    assert inspected(**settings)[0] is None


@dataclass(frozen=True, kw_only=True)
class Chosen(Server):
    """A server that adds 1 to the last bias of one client."""

    title = "Chooses one client"

    def single_out(self, model: nn.Module, weights: Params, member: int, members: int) -> Params:
        return {**weights, "linear.bias": weights["linear.bias"] + 1} if member == 1 else weights


def test_a_client_checks_the_weights_that_it_received_itself_beside_those_of_the_others() -> None:
    biases = list[float]()

    def of_bias(handed: Handed) -> float:
        change = weights_of(handed.model)["linear.bias"] - weights_of(handed.agreed)["linear.bias"]
        biases.append(round(float(change.detach().mean()), 4))
        return biases[-1]

    found = readings(SameForAll(), computed(of_bias), server=Chosen(), rounds=2, **SUM)
    assert [reading.number for reading in found] == [2, 1, 2, 1]  # the chosen client differs from two, each other from one
    assert biases == [0, 1, 0] * 2
    assert [reading.tripped for reading in found[::2]] == [True, True]
    assert math.isnan(readings(SameForAll(), server=Chosen())[0].number)  # a single client has nobody to ask


def test_an_experiment_with_checks_refuses_before_its_baselines_are_computed_or_reports_them() -> None:
    experiment = Experiment(model=RELU, server=Part(id="imprint"), checks=tuple(Part(id=id) for id in IDS["check"]))
    with pytest.raises(RefusedError) as refused:
        prepare(experiment)
    assert [reading.check for reading in refused.value.readings] == IDS["check"]
    prepared = prepare(experiment.model_copy(update={"refuse": False}))
    assert [reading.check for reading in prepared.checked] == IDS["check"]
    assert [reading.number for reading in prepared.checked if not math.isnan(reading.number)] == [
        reading.number for reading in refused.value.readings if not math.isnan(reading.number)
    ]
    honest = prepare(experiment.model_copy(update={"server": None}))  # honest, so that it is trained
    assert not any(reading.tripped for reading in honest.checked)
