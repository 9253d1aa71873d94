"""Losses of one output: the client's gradient by hand, twins with one gradient, labels, and attacks with the known loss."""

import math
import re

import pytest
import torch
from page_visits import Open, asked, fine, press_run
from small_problems import CATALOG, altered, precision, smooth
from torch import Tensor, nn

from leakage.attacks._logit import one_output
from leakage.attacks.linear_layer import LinearLayer
from leakage.attacks.r_gap import SILENT, RGap
from leakage.attacks.twin_data import NEVER, TwinData
from leakage.engine.chain import TwoClasses
from leakage.engine.client import Gradient, weights_of
from leakage.engine.core import DoesNotApplyError, Observation, Params, generator
from leakage.engine.labels import recover
from leakage.engine.losses import loss_of
from leakage.engine.whole_distance import flatten
from leakage.networks.k_curve import LOSSES, Loss, derivative, roots, twin
from leakage.runs.service import Service
from leakage.spec.experiment import Experiment, Part, Picture, SpecError, parse
from leakage.spec.threat_model import assumptions
from leakage.workers.adapter import observe, predicted_labels

each_loss = pytest.mark.parametrize("loss", LOSSES)
NET_A = Part(id="rgap_net")
MLP = Part(id="mlp", fields={"depth": 1, "width": 16})


def flat(loss: Loss, weights: Tensor) -> nn.Sequential:
    """z = <weights, x>, behind this loss."""
    layer = nn.Linear(weights.numel(), 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(weights.view(1, -1))
    return nn.Sequential(nn.Flatten(), layer, TwoClasses(loss))


def seen_by(x: Tensor, loss: Loss, model: Part, task: str = "two", **settings: object) -> tuple[Observation, Tensor]:
    experiment = Experiment(model=model, task=task, loss=loss, **settings)
    y = predicted_labels(experiment, x)
    return observe(experiment, x, y), y


def with_margin(mu: float) -> tuple[Tensor, Tensor]:
    """A picture x (1, 1, 2, 2) and weights (4,) with <weights, x> = mu."""
    x = torch.tensor([0.2, 0.9, 0.4, 0.7])
    weights = torch.tensor([1.0, -2.0, 0.5, 3.0])
    return x.view(1, 1, 2, 2) * mu / (x @ weights), weights


@each_loss
@pytest.mark.parametrize("label", [0, 1])
def test_the_gradient_is_the_derivative_times_what_enters(loss: Loss, label: int) -> None:
    with precision(torch.float64):
        for mu in (-2.0, 0.4, 2.0):
            x, weights = with_margin(mu if label else -mu)
            model = flat(loss, weights)
            sent, _ = Gradient(model)(weights_of(model), x, torch.tensor([label]), {})
            k = derivative(loss, mu) * (1 if label else -1)
            assert torch.allclose(sent["1.weight"], k * x.view(1, 4), atol=1e-15)


@each_loss
def test_guesses_at_once_and_soft_labels_send_what_they_send_alone(loss: Loss) -> None:
    with precision(torch.float64):
        x = smooth(6, channels=1, side=2)
        model = flat(loss, torch.tensor([1.0, -2.0, 0.5, 3.0]))
        client, weights = Gradient(model), weights_of(model)
        soft = torch.tensor([[0.3, 0.7], [1.0, 0.0]])
        many = x.view(3, 2, 1, 2, 2)
        own = {name: value.expand(3, *value.shape) for name, value in weights.items()}
        lanes, _ = client.lanes(own, many.transpose(0, 1), soft.unsqueeze(1).expand(-1, 3, -1), {})
        for place in range(3):
            alone, _ = client(weights, many[place], soft, {})
            assert torch.allclose(lanes["1.weight"][place], alone["1.weight"], atol=1e-14)
        hard, _ = client(weights, x[:2], torch.tensor([1, 0]), {})
        same, _ = client(weights, x[:2], torch.tensor([[0.0, 1.0], [1.0, 0.0]]), {})
        assert torch.allclose(hard["1.weight"], same["1.weight"], atol=1e-14)


@pytest.mark.parametrize("loss", ["cross-entropy", "exponential"])
@pytest.mark.parametrize("mu", [0.2, 0.9, 3.0])
def test_twins_have_one_gradient(loss: Loss, mu: float) -> None:
    other = twin(loss, mu)
    assert other is not None
    with precision(torch.float64):
        x, weights = with_margin(mu)
        model = flat(loss, weights)
        client, y = Gradient(model), torch.tensor([1])
        second = x * other / mu
        first, again = (client(weights_of(model), picture, y, {})[0]["1.weight"] for picture in (x, second))
    assert float((x - second).abs().max()) > 0.05
    assert torch.allclose(first, again, atol=1e-9, rtol=0)


@each_loss
def test_every_root_gives_an_input_that_sends_this_gradient(loss: Loss) -> None:
    with precision(torch.float64):
        x, weights = with_margin(0.4)
        model = flat(loss, weights)
        sent = Gradient(model)(weights_of(model), x, torch.tensor([1]), {})[0]["1.weight"]
        found = one_output(weights.view(1, -1), sent, [1], torch.ones_like, loss)
    assert len(found) == len(roots(loss, float((sent * weights).sum()))) == (1 if loss == "hinge" else 2)
    assert min(float((solution.x - x.flatten()).abs().max()) for solution in found) < 1e-12


@each_loss
@pytest.mark.parametrize("task", ["two", "flipped"])
def test_r_gap_goes_by_the_loss(loss: Loss, task: str) -> None:
    with precision(torch.float64):
        x = smooth(channels=3, side=12)
        seen, _ = seen_by(x, loss, NET_A, task)
        *_, last = RGap().run(seen, generator(1))
    assert loss_of(seen.model) == loss
    assert last.note["explanations"] == (2 if task == "two" and loss != "hinge" else 1)
    assert float((last.x - x).square().mean()) < 1e-12


def test_r_gap_that_took_another_loss_for_it_would_be_wrong() -> None:
    with precision(torch.float64):
        x = smooth(channels=3, side=12)
        seen, _ = seen_by(x, "exponential", NET_A, "flipped")
        next(layer for layer in seen.model.modules() if isinstance(layer, TwoClasses)).loss = "cross-entropy"
        *_, last = RGap().run(seen, generator(1))
    assert float((last.x - x).square().mean()) > 1e-3


def test_a_hinge_has_no_twin_and_the_attack_says_so() -> None:
    with precision(torch.float64):
        seen, _ = seen_by(smooth(channels=3, side=12), "hinge", NET_A)
        with pytest.raises(DoesNotApplyError, match=re.escape(NEVER.format("a hinge loss"))):
            list(TwinData().run(seen, generator(1)))


def test_of_a_met_margin_nothing_leaves() -> None:
    with precision(torch.float64):
        x, weights = with_margin(1.5)
        model = flat("hinge", weights)
        sent: Params = Gradient(model)(weights_of(model), x, torch.tensor([1]), {})[0]
        assert not sent["1.weight"].any()
        seen, _ = seen_by(smooth(channels=3, side=12), "hinge", NET_A)
        silent = {name: torch.zeros_like(value) for name, value in seen.received.update.items()}
        seen = altered(seen, update=silent)
        found = recover(seen)
        assert found.certainty is None
        with pytest.raises(DoesNotApplyError, match=re.escape(SILENT)):
            list(RGap().run(seen, generator(1)))


@each_loss
def test_reading_from_the_last_layer_goes_by_the_loss(loss: Loss) -> None:
    with precision(torch.float64):
        x = smooth(channels=1, side=8)
        seen, _ = seen_by(x, loss, Part(id="fcn3", fields={"activation": "leaky_relu"}), "flipped", channels=1)
        *_, last = LinearLayer().run(seen, generator(1))
    assert float((last.x - x).square().mean()) < 1e-12


@each_loss
@pytest.mark.parametrize("ones", [0, 1, 3, 4])
def test_counts_of_a_batch_go_by_the_derivatives_of_the_loss(loss: Loss, ones: int) -> None:
    with precision(torch.float64):
        x = smooth(4, channels=3, side=12)
        y = torch.tensor([1] * ones + [0] * (4 - ones))
        seen = observe(Experiment(model=Part(id="lenet"), task="two", loss=loss), x, y)
        found = recover(seen, "matched prior")  # cross-entropy is rehearsed as well, which "best" may prefer
        assert found.labels.tolist() == sorted(y.tolist())
        if loss != "cross-entropy":
            assert recover(seen).labels.tolist() == sorted(y.tolist())


@each_loss
def test_in_float64_the_gradient_of_the_first_layers_is_that_of_the_loss(loss: Loss) -> None:
    value = {
        "cross-entropy": lambda mu: (1 + (-mu).exp()).log(),
        "exponential": lambda mu: (-mu).exp(),
        "hinge": lambda mu: (1 - mu).relu(),
    }
    with precision(torch.float64):
        x = smooth(3, channels=3, side=12)
        seen, y = seen_by(x, loss, MLP, "flipped")
        mu = (2.0 * y - 1) * seen.model(x)[:, 1]
        by_hand = torch.autograd.grad(value[loss](mu).mean(), list(seen.received.weights.values()))
    assert torch.allclose(flatten(seen.received.update), torch.cat([g.flatten() for g in by_hand]), atol=1e-14)


# ---------------------------------------------------------------- as data and on the page


def test_the_usual_loss_leaves_the_data_as_they_were() -> None:
    usual = Experiment(task="two")
    assert "loss" not in usual.model_dump_json()
    assert usual.digest() == Experiment(task="two", loss="cross-entropy").digest()
    assert parse(Experiment(task="two", loss="hinge").model_dump_json()).loss == "hinge"
    assert Experiment(task="two", loss="hinge").digest() != usual.digest()


def test_several_outputs_have_cross_entropy_alone() -> None:
    with pytest.raises(
        SpecError, match=r"loss: with one output for each class allowed is cross-entropy, given was hinge\. Set task to two\."
    ):
        Experiment(loss="hinge").resolve(CATALOG)
    assert Experiment(loss="hinge", task="two", pictures=(Picture(id="astronaut"),)).resolve(CATALOG).loss == "hinge"


@pytest.mark.parametrize(
    ("loss", "piece"), [("cross-entropy", "logistic loss;"), ("exponential", "exp(-margin);"), ("hinge", "meets the margin")]
)
def test_the_threat_model_table_names_the_loss(loss: Loss, piece: str) -> None:
    found = assumptions(Experiment(task="two", loss=loss).resolve(CATALOG), CATALOG, None, {})
    assert piece in next(value for _, what, value in found if what == "The model and its weights")


def test_the_page_offers_the_losses_of_one_output_and_keeps_one_in_the_address(door: Service, visit: Open) -> None:
    at = visit()
    assert "loss" not in [box.key for box in at.selectbox]
    at.selectbox(key="task").select("two").run()
    at.selectbox(key="loss").select("hinge").run()
    assert at.query_params["loss"] in ("hinge", ["hinge"])
    assert asked(door, press_run(at)).loss == "hinge"
    again = visit(task="two", loss="exponential")
    fine(again)
    assert asked(door, press_run(again)).loss == "exponential"
    again.selectbox(key="task").select("classes").run()
    fine(again)
    assert asked(door, press_run(again)).loss == "cross-entropy"


def test_exponential_roots_far_apart_stay_finite() -> None:
    assert math.isfinite(derivative("exponential", roots("exponential", -1e-300)[1]))
