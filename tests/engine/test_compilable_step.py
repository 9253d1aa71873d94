"""A step as a function of tensors alone computes what the formula does, and its key tells programs apart, not runs."""

from itertools import product

import pytest
import torch
from torch import Tensor

from leakage.engine.client import weights_of
from leakage.engine.compilable_step import CompilableStep
from leakage.engine.core import generator
from leakage.engine.formula_reader import formula_of
from leakage.engine.layer_maps import Columns, Geometry, aten
from leakage.engine.matching import distance
from leakage.engine.whole_distance import WholeDistance
from leakage.spec.experiment import Part
from leakage.workers.adapter import plugin

SHAPE, CLASSES = (3, 12, 12), 5
NETWORKS: list[tuple[str, dict[str, object]]] = [
    ("lenet", {}),
    ("lenet", {"activation": "relu", "normalise": "cifar10"}),
    ("convnet", {"width": 4}),
    ("resnet", {"width": 4}),
    ("mlp", {"width": 8}),
]


def step_of(name: str, fields: dict[str, object], kind: str = "cosine", seed: int = 1) -> CompilableStep:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = plugin("model", Part(id=name, fields=fields)).build(SHAPE, CLASSES).double().eval()
        target = {key: torch.randn_like(value) for key, value in weights_of(model).items()}
    formula, compared = formula_of(model, SHAPE), distance(kind, target)
    assert isinstance(compared, WholeDistance)
    return CompilableStep(formula, formula.fold(weights_of(model)), compared)


def guesses(lanes: int = 1, pictures: int = 1, seed: int = 1) -> tuple[Tensor, Tensor]:
    rng = generator(seed, "guesses")
    labels = torch.arange(lanes * pictures).view(lanes, -1) % CLASSES
    return torch.rand((lanes, pictures, *SHAPE), generator=rng, dtype=torch.float64), labels


@pytest.mark.parametrize(("name", "fields"), NETWORKS, ids=lambda value: str(value))
@pytest.mark.parametrize("kind", ["cosine", "squared", "absolute"])
def test_it_computes_the_distance_and_its_derivative(name: str, fields: dict[str, object], kind: str) -> None:
    """Of two guesses of two pictures: what the formula's gradients and `WholeDistance` give; with other numbers, what these give."""
    step, other = (step_of(name, fields, kind, seed) for seed in (1, 2))
    x, y = guesses(2, 2)
    with torch.no_grad():
        passed = other.formula(other.folded, 2, x.flatten(0, 1), y.flatten(0, 1))
        expected, v = other.distance.derivative(passed.gradients())
        derivative, _ = passed.derivative(v)
        found = step(other.numbers, x, y)
    torch.testing.assert_close(found, (expected, derivative.view_as(x)), rtol=1e-10, atol=1e-13)


def test_the_key_depends_on_the_program_and_on_no_number() -> None:
    x, y = guesses()
    keys = {
        "as it is": step_of("lenet", {}).key(x, y),
        "ReLU": step_of("lenet", {"activation": "relu"}).key(x, y),
        "another network": step_of("mlp", {"width": 8}).key(x, y),
        "another distance": step_of("lenet", {}, "squared").key(x, y),
        "two guesses": step_of("lenet", {}).key(*guesses(2)),
        "two pictures": step_of("lenet", {}).key(*guesses(1, 2)),
        "probabilities": step_of("lenet", {}).key(x, torch.full((1, 1, CLASSES), 0.2).double()),
    }
    assert len(set(keys.values())) == len(keys)
    assert step_of("lenet", {}, seed=2).key(*guesses(seed=2)) == keys["as it is"]  # other weights, update and pictures
    assert step_of("lenet", {"normalise": "cifar10"}).key(x, y) == keys["as it is"]  # mean and deviation are numbers too


def test_another_version_of_torch_or_another_processor_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    step, (x, y) = step_of("lenet", {}), guesses()
    keys = {step.key(x, y)}
    monkeypatch.setattr(torch, "__version__", "2.15.1")
    keys.add(step.key(x, y))
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "ANOTHER")
    keys.add(step.key(x, y))
    assert len(keys) == 3


@pytest.mark.parametrize(("side", "stride", "padding"), list(product((1, 2, 3, 5), (1, 2, 3), (0, 1, 2))))
def test_columns_are_gathered_as_torch_scatters_them(side: int, stride: int, padding: int) -> None:
    for x in ((8, 8), (9, 7), (11, 12)):
        z = ((x[0] + 2 * padding - side) // stride + 1, (x[1] + 2 * padding - side) // stride + 1)
        columns = torch.randn((2, 3 * side**2, z[0] * z[1]), generator=generator(1, "columns"), dtype=torch.float64)
        expected = aten.col2im(columns, x, (side, side), (1, 1), (padding, padding), (stride, stride))
        torch.testing.assert_close(Columns(1, Geometry(side, stride, padding, x, z))._gathered(columns), expected, rtol=1e-12, atol=1e-12)
