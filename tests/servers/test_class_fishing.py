"""Fishing by class: the body's gradient of a batch is that of one class alone, and a search runs on this class."""

import pytest
import torch
from small_problems import few_units, precision, relative, smooth

import leakage
from leakage.engine.core import DoesNotApplyError, Observation, Params
from leakage.evaluation.metrics import psnr
from leakage.servers._fishing import LENGTH
from leakage.spec.experiment import Experiment, Part, SpecError
from leakage.workers import plugin_catalog
from leakage.workers.adapter import observe, plugin

Y = torch.tensor([3, 1, 0, 3, 5, 2, 3, 7, 2, 8, 8, 4])
X = smooth(len(Y), channels=3, side=28, seed=1)
LENET, CONVNET = Part(id="lenet"), Part(id="convnet", fields={"width": 4})


def fishing(target: int, **fields: float) -> Part:
    return Part(id="class_fishing", fields={"target": target, **fields})


def seen_by(target: int, x: torch.Tensor = X, y: torch.Tensor = Y, **settings: object) -> Observation:
    return observe(Experiment(**{"model": LENET, "server": fishing(target)} | settings), x, y)


def body(update: Params) -> Params:
    return {name: value for name, value in update.items() if not name.startswith("linear.")}


@pytest.mark.parametrize("model", [LENET, CONVNET], ids=lambda part: part.id)
@pytest.mark.parametrize(("dtype", "least"), [(torch.float64, 1e-12), (torch.float32, 2e-6)], ids=["float64", "float32"])
@pytest.mark.parametrize("target", sorted(set(Y.tolist())))
def test_the_body_has_the_gradient_of_one_class_alone(target: int, dtype: torch.dtype, least: float, model: Part) -> None:
    own = target == Y
    with precision(dtype):
        x = X.to(dtype)
        seen, lonely = seen_by(target, x, model=model), seen_by(target, x[own], Y[own], model=model)
    scale = int(own.sum()) / len(Y)
    assert relative(body(seen.update), {name: scale * value for name, value in body(lonely.update).items()}) < least
    left = plugin("server", fishing(target)).isolate(seen, 1)
    assert left.batch.size == int(own.sum())
    assert left.granted.labels.tolist() == [target] * int(own.sum())
    assert relative(left.gradient(x[own], Y[own]), left.as_gradient()) < least  # of the body, and of the features in the last layer
    parts = (body(left.as_gradient()), {"": left.update["linear.weight"]})
    torch.testing.assert_close(*(torch.cat([value.flatten() for value in part.values()]).norm() for part in parts))  # both count as much
    assert float(left.update["linear.weight"].norm()) == pytest.approx(LENGTH, rel=1e-5)  # for any network and batch
    compared = left.knowledge.entry_weights
    assert compared["linear.weight"].sum(1).nonzero().flatten().tolist() == [target]
    assert not compared["linear.bias"].any()


def test_the_last_layer_alone_changes() -> None:
    honest, changed = observe(Experiment(model=LENET), X, Y).received.weights, seen_by(2).received.weights
    assert all(torch.equal(changed[name], honest[name]) for name in body(honest))
    expected = torch.zeros(10, honest["linear.weight"].shape[1])
    expected[2] = 0.5
    assert torch.equal(changed["linear.weight"], expected)
    assert changed["linear.bias"].tolist() == [1000.0 if number != 2 else 0.0 for number in range(10)]


def test_it_works_in_a_sum_over_phones() -> None:
    sum_of = {"aggregation": Part(id="secure_aggregation", fields={"clients": 4})}
    apart, together = seen_by(8, **sum_of), seen_by(8)
    left, one = (plugin("server", fishing(8)).isolate(seen, members) for seen, members in ((apart, 4), (together, 1)))
    assert left.isolated == one.isolated == "2 pictures of class 8, counted by the gradient of the last bias, of 12"
    assert relative(left.as_gradient(), one.as_gradient()) < 2e-6


def test_a_class_that_no_picture_has_is_no_catch() -> None:
    with pytest.raises(DoesNotApplyError, match="looked for pictures of class 9, and the gradient shows none"):
        plugin("server", fishing(9)).isolate(seen_by(9), 1)


def test_a_search_finds_the_picture_that_is_alone_in_its_class_and_leaves_the_others_grey() -> None:
    x = smooth(len(Y), seed=2)
    model = few_units(6)  # 460 numbers: fewer than the 768 pixels of all pictures, and more than the 64 of one
    asked = {"attack": leakage.plugin("inverting_gradients", steps=200)}
    cheated = leakage.attack(model, x, Y, server=leakage.plugin("class_fishing", target=7), **asked)
    honest = leakage.attack(model, x, Y, threat_model=leakage.ThreatModel(labels=True), **asked)
    assert psnr(cheated.reconstruction, x)[7] > psnr(honest.reconstruction, x)[7] + 5
    assert (cheated.reconstruction == 0.5).flatten(1).all(1).tolist() == [number != 7 for number in range(len(Y))]
    said = "1 picture of class 7, counted by the gradient of the last bias, of 12; 11 places are grey: not looked for"
    assert cheated.note["read from"] == said
    assert cheated.note["label rule"] == "known to the server, which has separated the pictures of this class"
    assert cheated.labels[7] == 7
    assert sorted(cheated.labels) == sorted(Y.tolist())  # the last layer counts all classes
    closed = leakage.attack(model, x, Y, server=leakage.plugin("class_fishing", target=7), attack="linear_layer")
    assert float((closed.reconstruction[7] - x[7]).abs().max()) < 1e-4


def test_a_found_picture_stands_at_its_own_place_also_where_another_is_darker() -> None:
    x = 0.8 * smooth(3, seed=2)
    x[0] = 0
    found = leakage.attack(
        few_units(6), x, torch.tensor([3, 7, 2]), server=leakage.plugin("class_fishing", target=7), attack="linear_layer"
    )
    assert (found.reconstruction[[0, 2]] == 0.5).all()
    assert float((found.reconstruction[1] - x[1]).abs().max()) < 1e-4


def test_where_all_pictures_are_of_the_class_no_place_is_grey() -> None:
    x = smooth(2, seed=2)
    asked = {"server": leakage.plugin("class_fishing", target=7), "attack": leakage.plugin("inverting_gradients", steps=2)}
    found = leakage.attack(few_units(6), x, torch.tensor([7, 7]), **asked)
    assert found.labels == [7, 7]
    assert "grey" not in found.note["read from"]


def test_what_does_not_fit_is_refused_with_a_sentence() -> None:
    known = plugin_catalog.describe()
    with pytest.raises(SpecError, match=r"server class_fishing\.target: allowed is 0 to 9, the classes of the network; given was 10"):
        Experiment(server=fishing(10)).resolve(known)
    with pytest.raises(SpecError, match="Class fishing needs a bias in the last layer, given was LeNet without biases"):
        Experiment(model=Part(id="lenet", fields={"bias": False}), server=fishing(1)).resolve(known)
    with pytest.raises(SpecError, match="Class fishing needs one output for each class"):
        Experiment(task="two", server=fishing(1)).resolve(known)
    with pytest.raises(SpecError, match="batch_norm: Class fishing separates pictures of a batch, and here BatchNorm mixes them"):
        Experiment(model=CONVNET, server=fishing(1), batch_norm="batch").resolve(known)
    pictures, x = torch.nn.Sequential(torch.nn.Conv2d(1, 5, 8), torch.nn.Flatten()), smooth(2)
    with pytest.raises(
        ValueError, match="Class fishing changes the last layer, and this network has no linear layer that makes its outputs"
    ):
        leakage.observe(pictures, x, torch.tensor([1, 2]), server=leakage.plugin("class_fishing"))
    mixing = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(144, 5))
    mixed = leakage.attack(mixing, x, torch.tensor([1, 2]), server="class_fishing", batch_norm="batch")
    assert "BatchNorm mixes them: it uses the statistics of the batch" in mixed.verdict["why"]
