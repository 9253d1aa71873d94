"""A fully connected layer in front of the network: what comes back, what is added, and where it does not fit."""

import pytest
import torch
from photographs import photographs
from small_problems import moments, observed, precision, refuse_large_pictures, smooth
from torch import Tensor

import leakage
from leakage.engine.core import DoesNotApplyError
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import observe

LENET = Part(id="lenet")


def found(attack: str, x: Tensor, y: Tensor, *, model: Part = LENET, cheats: bool = True, **fields: float) -> list[bool]:
    """Return which pictures x are among the attack's pictures, to 1e-5 in every pixel."""
    with precision(torch.float64):
        server = Part(id="first_layer", fields=fields) if cheats else None
        answer = moments(Part(id=attack), observe(Experiment(model=model, server=server), x, y))[-1].x.double()
    return [bool(((answer - picture).abs().amax((1, 2, 3)) < 1e-5).any()) for picture in x]


@pytest.mark.parametrize("model", ["lenet", "convnet", "mnist_cnn"])
def test_one_picture_comes_back_exactly_from_a_network_of_convolutions(model: str) -> None:
    x, y = photographs(1)
    assert found("linear_layer", x, y, model=Part(id=model)) == [True]


def test_without_the_layer_the_attack_does_not_apply() -> None:
    with pytest.raises(DoesNotApplyError, match="here it is a convolution"):
        found("linear_layer", *photographs(1), cheats=False)


def test_a_batch_comes_back_exactly_by_its_zeros() -> None:
    x, y = photographs(6)
    assert found("spear", x, y) == [True] * 6


def test_the_python_interface_uses_the_attack_that_reads_the_layer() -> None:
    x, y = photographs(1)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(3600, 10)).double()
    result = leakage.attack(model, x, y, server="first_layer")
    assert result.note["read from"].endswith(" rows of first.read")
    assert float((result.reconstruction - x).abs().max()) < 1e-5


def test_a_server_adds_two_layers_and_leaves_all_other_parameters_alone() -> None:
    x = smooth(2, 3, 32)
    honest, changed = observed(x, model=LENET), observed(x, model=LENET, server=Part(id="first_layer", fields={"units": 8}))
    added = {name: tuple(value.shape) for name, value in changed.received.weights.items() if name not in honest.received.weights}
    assert added == {"first.read.weight": (8, 3072), "first.read.bias": (8,), "first.mix.weight": (3072, 8), "first.mix.bias": (3072,)}
    assert all(torch.equal(changed.received.weights[name], value) for name, value in honest.received.weights.items())


def test_a_layer_that_is_too_large_gets_a_sentence_before_the_run_and_in_the_python_interface() -> None:
    words = r"First layer would have 25\.2 million weights with 1,024 units; allowed are 20 million"
    refuse_large_pictures(Part(id="first_layer", fields={"units": 1024}), words)
