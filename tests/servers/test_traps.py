"""Trap weights: how a row is drawn, which pictures come back, and which models are refused."""

import pytest
import torch
from photographs import photographs
from small_problems import CATALOG, RELU, moments, observed, precision, smooth
from torch import Tensor, nn

import leakage
from leakage.data.datasets import datasets
from leakage.engine.core import Observation, generator
from leakage.servers.traps import Traps, trap_rows
from leakage.spec.experiment import Experiment, Part, SpecError
from leakage.workers.adapter import observe

WIDE = Part(id="mlp", fields={"width": 1000, "depth": 1, "activation": "relu"})


def seen_by(x: Tensor, y: Tensor, model: Part = WIDE, **fields: float) -> Observation:
    with precision(torch.float64):
        return observe(Experiment(model=model, server=Part(id="traps", fields=fields)), x, y)


def found(seen: Observation, x: Tensor) -> Tensor:
    """Return which pictures x (B,) are among the attack's pictures, to 1e-5 in every pixel."""
    answer = moments(Part(id="linear_layer"), seen)[-1].x.double()
    return torch.tensor([bool(((answer - picture).abs().amax((1, 2, 3)) < 1e-5).any()) for picture in x])


def own_rows(weight: Tensor, x: Tensor) -> Tensor:
    """Return for each picture x (B,) how many rows of the weight (m, n) it switches on alone."""
    on = x.flatten(1) @ weight.T > 0  # (B, m)
    return (on & (on.sum(0) == 1)).sum(1)


def test_half_of_a_row_is_negative_and_the_other_half_has_the_same_magnitudes_times_the_scale() -> None:
    rows = trap_rows(50, 9, scale=0.9, sigma=2.0, rng=generator(1, "traps"))
    for row in rows:
        assert (int((row < 0).sum()), int((row > 0).sum()), int((row == 0).sum())) == (4, 4, 1)
        assert torch.allclose(row[row > 0].sort().values, 0.9 * (-row[row < 0]).sort().values)
    many = trap_rows(200, 500, scale=1.0, sigma=2.0, rng=generator(2, "traps"))
    assert float(many.square().mean().sqrt()) == pytest.approx(2.0, rel=0.02)
    assert float((many < 0).double().std(0).mean()) > 0.45  # the negative entries are elsewhere in each row


@pytest.mark.parametrize("size", [4, 8, 20])
def test_a_picture_that_alone_switches_on_two_rows_comes_back_and_a_picture_without_such_a_row_does_not(size: int) -> None:
    x, y = photographs(size, seed=size)
    seen = seen_by(x, y)
    rows, back = own_rows(seen.received.weights["linear1.weight"], x), found(seen, x)
    assert back[rows >= 2].all()  # rows that agree are told from mixtures
    assert not back[rows == 0].any()
    assert (rows == 0).any() or size == 4
    assert (rows >= 2).any()


@pytest.mark.skipif(not datasets()["cifar10"].is_available, reason="needs CIFAR-10: set LEAKAGE_DATA")
def test_of_8_photographs_about_73_percent_are_alone_in_a_row_of_1000() -> None:
    rows = trap_rows(1000, 3072, scale=0.95, sigma=0.5, rng=generator(1, "traps"))
    shares = [float((own_rows(rows, photographs(8, seed=seed)[0]) > 0).double().mean()) for seed in range(60)]
    assert sum(shares) / 60 == pytest.approx(0.73, abs=0.05)  # the standard error of the mean is 0.02
    x, y = photographs(8, seed=3)
    seen = seen_by(x, y)
    assert int(found(seen, x).sum()) == int((own_rows(seen.received.weights["linear1.weight"], x) > 0).sum())


def test_the_first_layer_changes_and_nothing_else_and_the_seed_draws_the_same_rows_again() -> None:
    x = smooth(2)
    honest, changed, again = (observed(x, model=RELU, **by) for by in ({}, *[{"server": Part(id="traps")}] * 2))
    other = observed(x, model=RELU, server=Part(id="traps"), seed=2)
    differing = {name for name, value in honest.received.weights.items() if not torch.equal(value, changed.received.weights[name])}
    assert differing == {"linear1.weight", "linear1.bias"}
    assert not changed.received.weights["linear1.bias"].any()
    assert torch.equal(changed.received.weights["linear1.weight"], again.received.weights["linear1.weight"])
    assert not torch.equal(changed.received.weights["linear1.weight"], other.received.weights["linear1.weight"])


NORMAL = Part(id="mlp", fields={"normalise": "cifar10"})


@pytest.mark.parametrize(
    "model", [Part(id="lenet"), Part(id="fcn3"), Part(id="mlp", fields={"activation": "sigmoid"}), NORMAL], ids=lambda part: part.id
)
def test_another_model_gets_a_sentence_before_the_run_and_in_the_engine(model: Part) -> None:
    asked = Experiment(model=model, server=Part(id="traps"))
    with pytest.raises(SpecError, match=r"^model: Trap weights need .* Choose the MLP with ReLU"):
        asked.resolve(CATALOG)
    with pytest.raises(ValueError, match=r"Trap weights need .* Choose the MLP with ReLU"):
        observe(asked, torch.rand(1, 3, 32, 32), torch.tensor([1]))


@pytest.mark.parametrize("model", [Part(id="mlp"), Part(id="fcn3", fields={"activation": "relu", "bias": True})], ids=lambda part: part.id)
def test_a_model_that_fits_is_taken_before_the_run_and_in_the_engine(model: Part) -> None:
    assert Experiment(model=model, server=Part(id="traps")).resolve(CATALOG).server.fields == {"scale": 0.95, "sigma": 0.5}
    x = photographs(1)[0].float()
    assert torch.allclose(leakage_of(model, x), x, atol=1e-4)


def leakage_of(model: Part, x: Tensor) -> Tensor:
    seen = observe(Experiment(model=model, server=Part(id="traps", fields={"scale": 1.0})), x, torch.tensor([3]))
    return moments(Part(id="linear_layer"), seen)[-1].x


def test_the_python_interface_takes_a_network_of_the_caller_and_refuses_one_without_a_bias_or_with_another_way_to_the_layer() -> None:
    x, y = smooth(3).float(), torch.tensor([1, 2, 3])
    behind = nn.ReLU(), nn.Linear(512, 10)
    own = nn.Sequential(nn.Flatten(), nn.Linear(64, 512), *behind)
    rows = own_rows(leakage.observe(own, x, y, server=Traps(scale=0.98)).received.weights["1.weight"], x)
    result = leakage.attack(own, x, y, server=Traps(scale=0.98))
    back = [bool(((result.reconstruction - picture).abs().amax((1, 2, 3)) < 1e-4).any()) for picture in x]
    assert back == (rows >= 2).tolist()
    assert any(back)
    first = {
        "no bias": nn.Sequential(nn.Flatten(), nn.Linear(64, 512, bias=False)),
        "a convolution": nn.Sequential(nn.Conv2d(1, 1, 1), nn.Flatten(), nn.Linear(64, 512)),
    }
    for layers in first.values():
        with pytest.raises(ValueError, match="Trap weights need a network that begins with a fully connected layer"):
            leakage.observe(nn.Sequential(layers, *behind), x, y, server="traps")
