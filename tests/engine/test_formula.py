"""The gradient by formula and its derivative are those of autograd, for every model, batch and label; elsewhere autograd computes."""

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import torch
from small_problems import CATALOG
from torch import Tensor, nn
from torch.autograd import forward_ad

from leakage.engine import derivatives, layer_maps
from leakage.engine.capabilities import capabilities_of, set_capabilities
from leakage.engine.client import Gradient, use_batch_statistics, weights_of
from leakage.engine.core import Params, generator
from leakage.engine.formula import GradientByFormula, Pass
from leakage.engine.formula_reader import NoFormulaError, formula_of
from leakage.engine.forward_mode import quiet_forward_mode
from leakage.spec.catalog import ModelEntry
from leakage.spec.experiment import Part
from leakage.workers.adapter import plugin

EXACT = 1e-10  # relative error in float64
CLASSES = 5
SIDES = {"vgg16": 32, "resnet18_imagenet": 33, "mnist_cnn": 16}
LARGE = ("vgg16", "resnet18_imagenet", "resnet", "he_resnet")
LONG = ("resnet34", "resnet101", "resnet32-10", "cifar100", "mnist", "imagenet")  # choices that only repeat others
CROSSED = ("activation", "norm", "padding", "bias")
OPTIONS = (*CROSSED, "kind", "net", "normalise")
SMALL = {"vgg16": {"units": 16}, "resnet": {"width": 4}, "convnet": {"width": 4}, "mlp": {"width": 8}}
COMBINED = list(product((1, 3), (False, True), (1, 3)))  # pictures, probabilities instead of labels, lanes
FEW = [(1, False, 1), (3, True, 3)]


def choices(entry: ModelEntry) -> dict[str, Sequence[object]]:
    return {field.name: field.options or (True, False) for field in entry.fields if field.name in OPTIONS}


def varied() -> Iterator[tuple[str, dict[str, object]]]:
    """Every model as it is, and with every other choice of one option."""
    for entry in CATALOG.models:
        yield entry.id, {}
        defaults = {field.name: field.default for field in entry.fields}
        for name, values in choices(entry).items():
            others = [value for value in values if value not in (defaults[name], *LONG)]
            yield from ((entry.id, {name: value}) for value in others if name != "normalise" or entry.id not in SIDES)


def crossed() -> Iterator[tuple[str, dict[str, object]]]:
    """Every model with every combination of activation, norm, padding and biases."""
    for entry in CATALOG.models:
        options = {name: values for name, values in choices(entry).items() if name in CROSSED}
        yield from ((entry.id, dict(zip(options, values, strict=True))) for values in product(*options.values()))


def has_formula(fields: dict[str, object]) -> bool:
    """GroupNorm divides by the deviation of the picture, and a circular convolution reads beyond the edges: neither is written out."""
    return fields.get("norm") != "group" and fields.get("padding") != "circular"


def built(name: str, fields: dict[str, object], seed: int = 1) -> nn.Module:
    """A model in float64 whose BatchNorms have seen something."""
    side = SIDES.get(name, 12)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: nn.Module = plugin("model", Part(id=name, fields=SMALL.get(name, {}) | fields)).build((3, side, side), CLASSES)
        model = model.double().eval()
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d):
                assert layer.running_mean is not None
                assert layer.running_var is not None
                for value, low, high in ((layer.running_mean, -0.3, 0.3), (layer.running_var, 0.5, 2.0), (layer.weight, 0.5, 1.5)):
                    nn.init.uniform_(value, low, high)
                nn.init.uniform_(layer.bias, -0.3, 0.3)
    return model


def drawn(shape: tuple[int, ...], seed: int) -> Tensor:
    return torch.rand(shape, generator=generator(seed, "test"), dtype=torch.float64)


def pictures_of(name: str, batch: int, seed: int) -> Tensor:
    return drawn((batch, 3, SIDES.get(name, 12), SIDES.get(name, 12)), seed)


def labels_of(batch: int, *, soft: bool, seed: int) -> Tensor:
    if soft:
        return drawn((batch, CLASSES), seed)  # they do not add up to 1: so every term of the derivative counts
    return torch.arange(batch) * 2 % CLASSES


def differentiated(client: Callable[[Tensor, Tensor], Params], x: Tensor, y: Tensor) -> list[Tensor]:
    """The gradient, its derivatives along one random direction by x and, where y is probabilities, by y."""
    x = x.clone().requires_grad_()
    y = y.clone().requires_grad_() if y.is_floating_point() else y
    gradient = client(x, y)
    loss = torch.stack([(value * drawn(value.shape, number)).sum() for number, value in enumerate(gradient.values())]).sum()
    return [*(value.detach() for value in gradient.values()), *torch.autograd.grad(loss, [x, y] if y.requires_grad else [x])]


def agree(found: list[Tensor], expected: list[Tensor]) -> bool:
    assert len(found) == len(expected)
    return all(float((one - other).norm()) <= EXACT * float(other.norm()) for one, other in zip(found, expected, strict=True))


def by_autograd(model: nn.Module) -> Gradient:
    before = capabilities_of(model)
    set_capabilities(model, replace(before, formula=False))
    client = Gradient(model)
    set_capabilities(model, before)
    return client


def both(model: nn.Module, x: Tensor, y: Tensor, weights: Params | None = None) -> tuple[list[Tensor], list[Tensor]]:
    """What formula and autograd find for a batch."""
    weights = weights or weights_of(model)
    fast, slow = Gradient(model), by_autograd(model)
    found = differentiated(lambda x, y: fast(weights, x, y, {})[0], x, y)
    return found, differentiated(lambda x, y: slow(weights, x, y, {})[0], x, y)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each gradient that is computed by formula."""
    calls, apply = list[int](), GradientByFormula.apply

    def counting(*given: object) -> object:
        calls.append(1)
        return apply(*given)

    monkeypatch.setattr(GradientByFormula, "apply", counting)
    return calls


def named(value: object) -> str:
    return value if isinstance(value, str) else "-".join(map(str, value.values())) if isinstance(value, dict) else ""


def hold_to_autograd(name: str, fields: dict[str, object], combined: Sequence[tuple[int, bool, int]]) -> None:
    """Assert equal derivatives at other weights and pictures than those with which the formula was read."""
    model, other = built(name, fields), weights_of(built(name, fields, seed=2))
    by_formula, slow = Gradient(model), by_autograd(model)

    def by_lanes(x: Tensor, y: Tensor, lanes: int) -> Params:
        if lanes == 1:
            return by_formula(other, x, y, {})[0]
        repeated = {key: value.expand(lanes, *value.shape) for key, value in other.items()}
        pictures, labels = (value.unflatten(0, (lanes, -1)).transpose(0, 1) for value in (x, y))
        return by_formula.lanes(repeated, pictures, labels, {})[0]

    def one_by_one(x: Tensor, y: Tensor, lanes: int) -> Params:
        each = [slow(other, *part, {})[0] for part in zip(x.chunk(lanes), y.chunk(lanes), strict=True)]
        return each[0] if lanes == 1 else {key: torch.stack([gradient[key] for gradient in each]) for key in each[0]}

    for batch, soft, lanes in combined:
        x, y = pictures_of(name, batch * lanes, batch), labels_of(batch * lanes, soft=soft, seed=batch)
        found, expected = (differentiated(partial(way, lanes=lanes), x, y) for way in (by_lanes, one_by_one))
        assert agree(found, expected), (batch, soft, lanes)


@pytest.mark.parametrize(("name", "fields"), list(varied()), ids=named)
def test_gradient_and_derivatives_are_those_of_autograd(name: str, fields: dict[str, object], counted: list[int]) -> None:
    combined = FEW if name in LARGE else COMBINED
    hold_to_autograd(name, fields, combined)
    assert len(counted) == (len(combined) if has_formula(fields) else 0)


@pytest.mark.grid
@pytest.mark.parametrize(("name", "fields"), list(crossed()), ids=named)
def test_every_combination_of_layers_has_the_derivatives_of_autograd(name: str, fields: dict[str, object], counted: list[int]) -> None:
    hold_to_autograd(name, fields, COMBINED)
    assert len(counted) == (len(COMBINED) if has_formula(fields) else 0)


# ---------------------------------------------------------------- errors are noticed

USED = [  # node, its parts, and a model that uses it
    (layer_maps.FullyConnected, ("forward", "backward", "along", "backward_along"), "mlp", {}),
    (layer_maps.Columns, ("entered", "matrix", "forward", "backward", "along", "backward_along"), "lenet", {}),
    (layer_maps.Convolution, ("forward", "backward", "along", "backward_along"), "convnet", {}),
    (derivatives.WeightedLayer, ("unfold", "fold_along"), "convnet", {}),
    (derivatives.StepCall, ("backward", "along"), "lenet", {}),
    (derivatives.GlobalMeanCall, ("backward", "along"), "resnet", {}),
    (derivatives.MeanCall, ("backward", "along"), "custom", {"network": "conv 3@4 p1 - mean 2 - conv 3@4"}),
    (derivatives.MaxCall, ("backward", "along"), "custom", {"network": "conv 3@4 p1 - max 2 - conv 3@4"}),
    (derivatives.LinearCall, ("backward", "along"), "he_resnet", {"kind": "resnet20"}),
    (derivatives.ReluCall, ("backward", "along"), "mlp", {"activation": "relu"}),
    (derivatives.SmoothCall, ("backward", "along", "backward_along"), "mlp", {"activation": "tanh"}),
    (derivatives.SmoothCall, ("backward", "along", "backward_along"), "mlp", {"activation": "sigmoid"}),
    (derivatives.WeightedCall, ("backward_weights", "along_weights", "backward_along"), "lenet", {}),
]
PLANTED = [(node, part, name, fields) for node, parts, name, fields in USED for part in parts]


def enlarged(value: object) -> object:
    """A number that is wrong by a millionth."""
    if isinstance(value, dict):
        return {key: enlarged(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(enlarged(each) for each in value)
    return value * (1 + 1e-6) if isinstance(value, Tensor) else value


@pytest.mark.parametrize(("node", "part", "name", "fields"), PLANTED, ids=lambda value: getattr(value, "__name__", named(value)))
def test_an_error_planted_in_a_node_is_seen(
    node: type, part: str, name: str, fields: dict[str, object], counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = getattr(node, part)
    monkeypatch.setattr(node, part, lambda *given, **named: enlarged(right(*given, **named)))
    found, expected = both(built(name, fields), pictures_of(name, 3, 1), labels_of(3, soft=False, seed=1))
    assert counted
    assert not agree(found, expected)


class Reversed(torch.autograd.Function):
    """The identity, whose derivative has the wrong sign on purpose."""

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: object, d: Tensor) -> Tensor:
        return -d


class ReversedLayer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        reversed_: Tensor = Reversed.apply(x)
        return reversed_


# ---------------------------------------------------------------- where autograd computes


def small(*layers: nn.Module) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 12 * 12, 6), *layers, nn.Linear(6, CLASSES))
    return model.double().eval()


def shared() -> nn.Module:
    layer = nn.Linear(6, 6)
    return small(layer, nn.Tanh(), layer)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(shared, id="shared"),
        pytest.param(lambda: small(nn.GELU()), id="unknown activation"),
        pytest.param(lambda: small(ReversedLayer()), id="own derivative"),
        pytest.param(lambda: small(nn.LayerNorm(6)), id="norm of each picture"),
    ],
)
def test_autograd_computes_what_has_no_formula(make: Callable[[], nn.Module], counted: list[int]) -> None:
    assert agree(*both(make(), pictures_of("", 3, 1), labels_of(3, soft=True, seed=1)))
    assert not counted


def test_a_hook_that_looks_at_a_layer_sees_it(counted: list[int]) -> None:
    model, x, y = small(nn.Tanh()), pictures_of("", 3, 1), labels_of(3, soft=False, seed=1)
    assert agree(*both(model, x, y))
    assert counted.pop()
    seen = list[Tensor]()
    with model[1].register_forward_hook(lambda _layer, _given, out: seen.append(out)):
        assert agree(*both(model, x, y))
    assert len(seen) == 2  # at the formula's turn, and at autograd's
    assert not counted


def test_a_frozen_parameter_has_no_formula() -> None:
    model = small()
    model[1].bias.requires_grad_(False)
    with pytest.raises(NoFormulaError, match="frozen"):
        formula_of(model, (3, 12, 12))


def test_a_batch_without_pictures_is_left_to_autograd(counted: list[int]) -> None:
    found, expected = both(small(), pictures_of("", 0, 1), labels_of(0, soft=False, seed=1))
    assert [value.isnan().all() for value in found] == [value.isnan().all() for value in expected]
    assert not counted


def test_batch_norm_with_the_statistics_of_the_batch_is_left_to_autograd(counted: list[int]) -> None:
    model, x, y = built("convnet", {}), pictures_of("convnet", 3, 1), labels_of(3, soft=False, seed=1)
    client = Gradient(model)
    differentiated(lambda x, y: client(weights_of(model), x, y, {})[0], x, y)
    assert counted.pop()
    use_batch_statistics(model, x)
    found = differentiated(lambda x, y: client(weights_of(model), x, y, {})[0], x, y)
    assert agree(found, both(model, x, y)[1])
    assert not counted


def test_weights_that_depend_on_the_guess_are_left_to_autograd(counted: list[int]) -> None:
    """The second of two local steps: the derivative by the pictures passes through the weights too."""
    model, x, y = small(nn.Tanh()), pictures_of("", 2, 1), labels_of(2, soft=False, seed=1)

    def two_steps(client: Gradient) -> Callable[[Tensor, Tensor], Params]:
        def stepped(x: Tensor, y: Tensor) -> Params:
            first, _ = client(weights_of(model), x, y, {})
            return client({key: value - 0.1 * first[key] for key, value in weights_of(model).items()}, x, y, {})[0]

        return stepped

    fast, slow = Gradient(model), by_autograd(model)
    assert agree(differentiated(two_steps(fast), x, y), differentiated(two_steps(slow), x, y))
    assert len(counted) == 1


@pytest.mark.parametrize("lanes", [1, 2])
def test_higher_derivatives_are_left_to_autograd(lanes: int, counted: list[int]) -> None:
    model, x, y = small(nn.Tanh()), pictures_of("", 2 * lanes, 1), labels_of(2 * lanes, soft=True, seed=1)

    def twice(client: Gradient) -> list[Tensor]:
        pictures, labels = x.clone().requires_grad_(), y.clone().requires_grad_()
        if lanes == 1:
            sent, _ = client(weights_of(model), pictures, labels, {})
        else:
            repeated = {key: value.expand(lanes, *value.shape) for key, value in weights_of(model).items()}
            sent, _ = client.lanes(repeated, *(value.unflatten(0, (lanes, -1)).transpose(0, 1) for value in (pictures, labels)), {})
        length = torch.stack([value.square().sum() for value in sent.values()]).sum()
        first = torch.autograd.grad(length, [pictures, labels], create_graph=True)
        total = torch.stack([value.square().sum() for value in first]).sum()
        return [*(value.detach() for value in first), *torch.autograd.grad(total, [pictures, labels])]

    assert agree(twice(Gradient(model)), twice(by_autograd(model)))
    assert counted


def test_forward_mode_is_left_to_autograd(counted: list[int]) -> None:
    model, x, y = small(nn.Tanh()), pictures_of("", 2, 1).requires_grad_(), labels_of(2, soft=False, seed=1)
    client = Gradient(model)
    with quiet_forward_mode(), forward_ad.dual_level():
        sent, _ = client(weights_of(model), forward_ad.make_dual(x, torch.ones_like(x)), y, {})
        along = forward_ad.unpack_dual(sent["1.bias"]).tangent
    assert along is not None
    step = 1e-5
    plus, minus = (client(weights_of(model), (x + sign * step).detach(), y, {})[0]["1.bias"] for sign in (1, -1))
    assert torch.allclose(along, (plus - minus) / (2 * step), rtol=1e-6)
    assert not counted


def test_weights_that_change_in_place_are_read_again(counted: list[int]) -> None:
    model, x, y = built("convnet", {}), pictures_of("convnet", 1, 1), labels_of(1, soft=False, seed=1)
    client, slow = Gradient(model), by_autograd(model)
    for _ in range(2):
        found, expected = (differentiated(lambda x, y, of=of: of(weights_of(model), x, y, {})[0], x, y) for of in (client, slow))
        assert agree(found, expected)
        with torch.no_grad():
            for value in model.parameters():
                value.mul_(1.5)
    assert len(counted) == 2


def test_nothing_of_a_step_stays_in_memory() -> None:
    """Without the garbage collector: a graph that held itself would grow by a step's pictures with every step."""
    model, x, y = small(nn.Tanh()), pictures_of("", 2, 1), labels_of(2, soft=False, seed=1)
    client = Gradient(model)
    gc.collect()
    gc.disable()
    try:
        differentiated(lambda x, y: client(weights_of(model), x, y, {})[0], x, y)
        assert [kept for kept in gc.get_objects() if type(kept) is Pass] == []
    finally:
        gc.enable()
