"""`checks=` of the Python interface: a client that refuses to train a changed model, and one that trains the agreed model."""

import math

import pytest
import torch
from small_problems import smooth
from torch import nn

import leakage
from leakage.engine.check import RefusedError

X, Y = smooth(4, 1, 8), torch.arange(4)
REFUSAL = "The phone refused to train this model in round 1: the check New layers measured 4, above its threshold of 0. Nothing was sent."


def network() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


def test_a_client_that_refuses_leaves_a_result_without_verdict_and_a_grey_picture() -> None:
    results = [leakage.attack(network(), X, Y, server="imprint", checks=["new_layers"]) for _ in range(2)]
    result = results[0]
    assert (result.refused, result.verdict, result.scores, result.baselines, result.labels, result.fit) == (
        "new_layers",
        None,
        {},
        {},
        [],
        None,
    )
    assert torch.equal(result.reconstruction, torch.full((4, 1, 8, 8), 0.5))
    assert (result.update.numbers, result.update.unknowns, result.update.rule, result.privacy) == (0, 256, REFUSAL, None)
    assert repr(result) == f"Result(refused: {REFUSAL})"
    assert results[1] == result
    run = leakage.frames(network(), X, Y, server="imprint", checks=["new_layers"])
    assert ([*run], run.result == result) == ([], True)
    with pytest.raises(ValueError, match=r"Nothing was sent\. So there is no observation\."):
        _ = run.observation


def test_the_progress_of_a_refused_run_is_no_step() -> None:
    told: list[tuple[int, int | None, float]] = []
    leakage.attack(network(), X, Y, server="imprint", checks=["new_layers"], progress=lambda *step: told.append(step))
    assert told == []


def test_a_client_whose_checks_do_not_trip_changes_nothing() -> None:
    """Without a server no layer is new; and a threshold of 4 lets the four parameters of an imprint pass."""
    plain = leakage.attack(network(), X, Y, attack="linear_layer")
    assert plain == leakage.attack(network(), X, Y, attack="linear_layer", checks=["new_layers"])
    assert plain.refused == ""
    patient = leakage.plugin("new_layers", threshold=4)
    assert leakage.attack(network(), X, Y, server="imprint", checks=[patient]) == leakage.attack(network(), X, Y, server="imprint")


def test_observe_raises_the_refusal_with_what_the_checks_found() -> None:
    with pytest.raises(RefusedError) as refusal:
        leakage.observe(network(), X, Y, server="imprint", checks=["new_layers"])
    assert str(refusal.value) == REFUSAL
    (found,) = refusal.value.readings
    assert (found.check, found.number, found.threshold, found.tripped, found.round) == ("new_layers", 4.0, 0.0, True, 1)
    assert not math.isnan(leakage.observe(network(), X, Y, checks=["new_layers"]).update["1.bias"].sum())


def test_checks_that_cannot_be_used_get_a_sentence() -> None:
    with pytest.raises(TypeError, match=r"checks must be a list; got the word 'new_layers'. Write \['new_layers'\]"):
        leakage.attack(network(), X, Y, checks="new_layers")
    with pytest.raises(ValueError, match=r"There is no check 'imprint'; expected is one of .*new_layers"):
        leakage.attack(network(), X, Y, checks=["imprint"])
    with pytest.raises(ValueError, match=r"same_for_all compares the models of several clients, and one client is alone here. Give an agg"):
        leakage.attack(network(), X, Y, checks=["same_for_all"])
    with pytest.raises(TypeError, match=r"new_layers has no field 'limit'. Its fields are threshold"):
        leakage.plugin("new_layers", limit=1)
    with pytest.raises(ValueError, match=r"Give either checks, or an update: a client checks the model before it computes its update"):
        leakage.attack(network(), update=dict(network().named_parameters()), image_shape=(1, 8, 8), batch_size=1, checks=["new_layers"])
