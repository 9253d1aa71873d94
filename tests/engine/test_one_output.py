"""Networks with one output: the logistic loss, the network's prediction or its opposite as label, and float64 clients."""

import math

import pytest
import torch
from page_visits import Open, asked, fine, press_run
from small_problems import CATALOG, altered, precision, smooth
from torch.nn import functional as F

from leakage.engine.core import Observation
from leakage.engine.labels import ONE_OUTPUT, RULES, head, recover
from leakage.runs.service import Service
from leakage.spec.experiment import Experiment, Part, Picture, SpecError
from leakage.spec.threat_model import assumptions
from leakage.workers.adapter import observe, play, predicted_labels, prepare
from leakage.workers.attack_job import TWO

STAR = Part(id="lenet", fields={"activation": "leaky_relu", "bias": False, "initialisation": "default"})
TASKS = pytest.mark.parametrize("task", ["two", "flipped"])


def seen_by(x: torch.Tensor, model: Part, task: str, **settings: object) -> tuple[Observation, torch.Tensor]:
    experiment = Experiment(model=model, task=task, **settings)
    y = predicted_labels(experiment, x)
    return observe(experiment, x, y), y


@TASKS
def test_its_gradient_is_that_of_the_logistic_loss(task: str) -> None:
    with precision(torch.float64):
        x = smooth(3, channels=3, side=12)
        seen, y = seen_by(x, STAR, task)
        z = seen.model(x)[:, 1]
        signs = 2.0 * y - 1
        loss = F.softplus(-signs * z).mean()  # log(1 + exp(-mu)), mu = +-z
        by_hand = torch.autograd.grad(loss, list(seen.received.weights.values()))
    assert seen.received.weights["linear.weight"].shape[0] == 1
    assert bool((signs * z > 0).all()) == (task == "two")
    assert bool((signs * z < 0).all()) == (task == "flipped")
    for sent, mine in zip(seen.received.update.values(), by_hand, strict=True):
        assert torch.allclose(sent, mine, atol=1e-14)


@TASKS
@pytest.mark.parametrize("model", [Part(id="lenet"), Part(id="lenet", fields={"bias": False}), Part(id="mlp", fields={"depth": 1})])
def test_the_label_of_one_picture_is_read_where_features_are_positive_or_a_bias_tells(model: Part, task: str) -> None:
    for seed in range(1, 11):
        seen, y = seen_by(smooth(channels=3, side=12, seed=seed), model, task, seed=seed)
        found = recover(seen)
        assert torch.equal(found.labels, y)
        assert found.certainty == 1


def test_features_of_both_signs_leave_the_label_uncertain() -> None:
    seen, _ = seen_by(smooth(channels=3, side=12), STAR, "flipped")
    mixed = altered(seen, update={**seen.received.update, "linear.weight": torch.tensor([[1.0, -2.0, 0.5]])})
    found = recover(mixed)
    assert (found.labels.tolist(), found.rule, found.certainty) == ([1], ONE_OUTPUT, None)  # the sum is negative: class 1


def test_one_output_stands_for_two_rows() -> None:
    seen, y = seen_by(smooth(2, channels=3, side=12), Part(id="lenet"), "two")
    weight, weight_gradient, bias = head(seen)
    assert bias is not None
    own = seen.received.weights["linear.weight"].detach()
    assert torch.equal(weight, torch.cat([torch.zeros_like(own), own]))
    assert float(weight_gradient.sum(0).abs().max()) == float(bias.sum().abs()) == 0
    z = seen.model(smooth(2, channels=3, side=12))[:, 1].detach()
    assert float(bias[1]) == pytest.approx(float((z.sigmoid() - y).mean()), abs=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_reads_a_batch_of_one_output(rule: str) -> None:
    seen, _ = seen_by(smooth(4, channels=3, side=12), Part(id="lenet"), "flipped")
    found = recover(seen, rule).labels
    assert len(found) == 4
    assert set(found.tolist()) <= {0, 1}


@pytest.mark.long
def test_a_float64_client_sends_float64_and_is_attacked_in_float64() -> None:
    for attack, fields in (("idlg", {"steps": 2, "restarts": 1}), ("inverting_gradients", {"steps": 3}), ("gradinversion", {"steps": 3})):
        asked_for = Experiment(size=28, channels=1, precision="float64", attack=Part(id=attack, fields=fields)).resolve(CATALOG)
        prepared = prepare(asked_for)
        *_, last = play(asked_for, prepared=prepared)
        assert {value.dtype for value in prepared.seen.received.update.values()} == {torch.float64}
        assert last.final
        assert math.isfinite(last.scores["psnr"])
    plain = prepare(asked_for.model_copy(update={"precision": "float32"}))
    for name, value in prepared.seen.received.update.items():
        assert torch.allclose(plain.seen.received.update[name], value.float(), rtol=1e-3, atol=1e-6)  # the same network and picture


@pytest.mark.long
def test_the_truth_of_a_run_is_the_label_of_its_task() -> None:
    kept = [prepare(Experiment(model=STAR, task=task).resolve(CATALOG)) for task in ("two", "flipped")]
    assert int(kept[0].y) + int(kept[1].y) == 1
    assert len(TWO) == kept[0].seen.batch.num_classes == 2


def test_trained_weights_have_one_output_per_class() -> None:
    trained = Experiment(pictures=(Picture(source="mnist", id="0"),), size=28, channels=1, task="two", checkpoint="lenet-mnist-0c6d1f4e@1")
    with pytest.raises(SpecError, match="task: with trained weights only classes"):
        trained.resolve(CATALOG)


@pytest.mark.parametrize(("task", "piece"), [("classes", "10 classes"), ("two", "what the network says itself"), ("flipped", "opposite")])
def test_the_threat_model_table_says_what_the_outputs_mean(task: str, piece: str) -> None:
    found = assumptions(Experiment(task=task).resolve(CATALOG), CATALOG, None, {})
    assert piece in next(value for _, what, value in found if what == "The model and its weights")


def test_the_page_offers_one_output_and_keeps_it_in_the_address(door: Service, visit: Open) -> None:
    at = visit()
    at.selectbox(key="task").select("flipped").run()
    assert at.query_params["task"] in ("flipped", ["flipped"])
    assert asked(door, press_run(at)).task == "flipped"
    again = visit(task="two")
    fine(again)
    assert asked(door, press_run(again)).task == "two"
