"""BatchNorm with stored or batch statistics: the client's update, the replay, and what the Result says about it."""

from collections import OrderedDict

import pytest
import torch
from reachable_truth import leaks
from sample_events import meta, received
from small_problems import CATALOG, LABELS, observed, precision, smooth
from torch import nn
from torch.nn import functional as F

from leakage.engine.client import use_batch_statistics, weights_of
from leakage.engine.core import generator
from leakage.evaluation.metrics import gradient_distances
from leakage.runs.events import MetaEvent
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.threat_model import assumptions
from leakage.workers.adapter import plugin, prepare

SIDE = 64  # at 32 pixels the last stage of torchvision's ResNet has one pixel
MODELS = [entry.id for entry in CATALOG.models if any(field.name == "norm" for field in entry.fields)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.long
def test_with_the_statistics_of_the_batch_the_client_sends_torchs_training_gradient_and_the_attacker_replays_it(name: str) -> None:
    with precision(torch.float64):
        x, model = smooth(3, 3, SIDE), Part(id=name)
        seen = observed(x, model=model, batch_norm="batch")
        trained = plugin("model", model).build((3, SIDE, SIDE), 10)
        trained.load_state_dict(seen.model.state_dict())
        trained.train()
        F.cross_entropy(trained(x), LABELS).backward()
        gradient = {layer: value.grad for layer, value in trained.named_parameters()}
        stored = observed(x, model=model).received.update
    assert gradient_distances(seen.received.update, gradient)["relative_l2"] < 1e-10  # float64
    assert gradient_distances(seen.replay.single(x, LABELS), seen.received.update)["relative_l2"] < 1e-10
    assert gradient_distances(stored, seen.received.update)["relative_l2"] > 0.1  # the other mode is another question


@pytest.mark.parametrize("mode", ["eval", "batch"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.long
def test_neither_the_client_nor_an_attack_changes_the_stored_statistics(name: str, mode: str) -> None:
    granted = Assumptions(labels=mode == "eval")  # what reads labels runs the model, which moves nothing in eval mode
    seen = observed(smooth(2, 3, SIDE), model=Part(id=name), batch_norm=mode, assume=granted)
    *_, answer = plugin("attack", Part(id="inverting_gradients", fields={"steps": 1})).run(seen, generator(0, "attack"))
    assert torch.isfinite(answer.x).all()
    for layer, value in seen.model.named_buffers():
        end = layer.rsplit(".", 1)[-1]
        if end in ("running_mean", "running_var", "num_batches_tracked"):
            assert (value == (1 if end == "running_var" else 0)).all(), layer


def test_no_attack_can_reach_pictures_whose_statistics_batchnorm_took() -> None:
    x = smooth(3, 3, 32)
    seen = observed(x, model=Part(id="convnet", fields={"width": 4}), batch_norm="batch")
    running = plugin("attack", Part(id="inverting_gradients")).run(seen, generator(1, "attack"))
    assert leaks((seen, running, next(running)), x, LABELS) == []


def test_only_batchnorm_trains_nothing_is_dropped_out() -> None:
    net = nn.Sequential(OrderedDict(norm=nn.BatchNorm2d(3), drop=nn.Dropout(0.5))).eval()
    x = smooth(2, 3, 8)
    use_batch_statistics(net, x)
    for _ in range(2):
        torch.testing.assert_close(net(x), F.batch_norm(x, None, None, training=True))
    assert not net.training


def test_one_number_per_channel_has_no_statistics_and_that_is_said() -> None:
    model = Part(id="resnet18_imagenet")
    with pytest.raises(ValueError, match=r"BatchNorm has no statistics .* Choose more or larger pictures"):
        observed(smooth(1, 3, 32), model=model, batch_norm="batch")
    assert weights_of(observed(smooth(2, 3, 32), model=model, batch_norm="batch").model)


def test_pictures_that_share_their_statistics_have_no_gradients_of_their_own() -> None:
    pictures = (Picture(id="astronaut"), Picture(id="chelsea"))
    for mode, count in (("eval", 2), ("batch", 0)):
        model = Part(id="convnet", fields={"width": 4})
        scene = prepare(Experiment(pictures=pictures, model=model, batch_norm=mode), device=torch.device("cpu"))
        assert len(scene.received["singles"]) == count


def test_the_threat_model_table_says_which_statistics_were_used_and_what_the_attacker_replays() -> None:
    normed = meta(batch_norm=True, received=received(1))

    def said(experiment: Experiment, told: MetaEvent) -> list[str]:
        return [text for _, about, text in assumptions(experiment.resolve(CATALOG), CATALOG, told, {}) if about == "BatchNorm"]

    convnet = Part(id="convnet")
    (stored,) = said(Experiment(model=convnet), normed)
    assert "statistics stored in the model" in stored
    (batch,) = said(Experiment(model=convnet, batch_norm="batch"), normed)
    assert "statistics of the batch" in batch
    assert "the attacker's guess" in batch
    assert said(Experiment(), meta(batch_norm=False)) == []
