"""The model in an attack computes what it computes by itself, however updates and constants are written."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from published_lenet import PublishedLeNet
from small_problems import smooth
from torch import Tensor, nn
from torch.nn import functional as F

import leakage
from leakage.api.normalization import constants_of
from leakage.attacks.idlg import IDLG
from leakage.attacks.inverting_gradients import InvertingGradients
from leakage.engine.capabilities import capabilities_of
from leakage.engine.core import Normalise

X, Y = smooth(2, 3, 8), torch.tensor([1, 3])
MEAN, STD = (0.5, 0.4, 0.3), (0.25, 0.2, 0.3)


def net() -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Sigmoid(), nn.Flatten(), nn.Linear(144, 5)).eval()


def gradient(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    gradients = torch.autograd.grad(F.cross_entropy(model(x), Y), list(model.parameters()))
    return dict(zip([name for name, _ in model.named_parameters()], gradients, strict=True))


def same(found: dict[str, Tensor], true: dict[str, Tensor]) -> None:
    assert found.keys() == true.keys()
    for name, value in true.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-7)


# ---------------------------------------------------------------- normalisation


class Doubling(nn.Sequential):
    """A sequence with a forward of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + super().forward(x.flip(3))


def hooked() -> nn.Module:
    model = net()
    model.register_forward_pre_hook(lambda _model, given: (given[0] + 0.1,))
    model.register_forward_hook(lambda _model, _given, out: 2 * out)
    return model


def repeated() -> nn.Module:
    activation = nn.Sigmoid()
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 12), activation, nn.Linear(12, 12), activation, nn.Linear(12, 5))


SEQUENCES: dict[str, Callable[[], nn.Module]] = {
    "a plain sequence": net,
    "a forward of its own": lambda: Doubling(*net()),
    "hooks of its own": hooked,
    "an activation that stands twice": repeated,
    "a normalisation of ours inside": lambda: nn.Sequential(Normalise((0.2,) * 3, (0.9,) * 3), *net()),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_normalization_changes_the_pictures_and_nothing_of_the_model(name: str) -> None:
    model = SEQUENCES[name]().eval()
    scaled = (X - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(STD).view(1, 3, 1, 1)
    seen = leakage.observe(model, X, Y, normalization=(MEAN, STD))
    same(seen.received.update, gradient(model, scaled))
    assert [type(layer) for layer in seen.model.modules()] == [type(layer) for layer in model.modules()]
    mean, std = seen.scale
    other, spread = (0.2, 0.9) if "ours" in name else (0.0, 1.0)
    torch.testing.assert_close((X - mean) / std, (scaled - other) / spread)


WAYS: dict[str, tuple[Callable[[], Any], list[list[float]]]] = {
    "numbers": (lambda: (0.5, 0.25), [[0.5] * 3, [0.25] * 3]),
    "lists": (lambda: [list(MEAN), list(STD)], [list(MEAN), list(STD)]),
    "an array": (lambda: np.array([MEAN, STD]), [list(MEAN), list(STD)]),
    "tensors for pictures": (lambda: (torch.tensor(MEAN).view(1, 3, 1, 1), torch.tensor(STD).view(3, 1, 1)), [list(MEAN), list(STD)]),
    "a dictionary": (lambda: {"mean": MEAN, "std": STD, "crop": 224}, [list(MEAN), list(STD)]),
    "a generator": (lambda: (part for part in (MEAN, STD)), [list(MEAN), list(STD)]),
    "a number and a list": (lambda: (0.5, list(STD)), [[0.5] * 3, list(STD)]),
}


@pytest.mark.parametrize("name", WAYS)
def test_constants_are_taken_as_people_write_them(name: str) -> None:
    given, wanted = WAYS[name]
    for found, expected in zip(constants_of(given(), 3), wanted, strict=True):
        assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    "given",
    [
        "imagenet",
        0.5,
        (0.5,),
        (MEAN, STD, STD),
        (MEAN, (0.25, 0.2)),
        (MEAN, (0.2, 0.2, -0.2)),
        (MEAN, None),
        ("a", "b"),
        {"mean": MEAN},
        torch.tensor(0.5),
        (True, False),
    ],
    ids=repr,
)
def test_other_constants_are_refused_with_the_form_that_is_expected(given: object) -> None:
    with pytest.raises(ValueError, match=r"normalization must be \(mean, std\) with 3 numbers each"):
        constants_of(given, 3)


# ---------------------------------------------------------------- memory, closures, input


def test_the_layout_of_memory_is_changed_only_where_the_forward_stands_it() -> None:
    class Viewing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(144, 5)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.conv(x).sigmoid().view(len(x), -1))

    class ByStrides(Viewing):
        """Other numbers, without an error, where memory lies in another order."""

        def forward(self, x: Tensor) -> Tensor:
            z = self.conv(x).sigmoid()
            return self.head(torch.as_strided(z, (len(x), 144), (144, 1)))

    for model in (Viewing(), ByStrides()):
        seen = leakage.observe(model, X, Y)
        same(seen.received.update, gradient(model, X))
        assert not capabilities_of(seen.model).channels_last
    assert capabilities_of(leakage.observe(net(), X, Y).model).channels_last


def test_a_forward_that_reaches_the_model_by_a_closure_is_refused() -> None:
    model = net()
    layers = nn.ModuleList([model])
    layers.forward = lambda x: model(x)  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=r"through a function that cannot be copied.*Let forward reach it through self"):
        leakage.observe(layers, X, Y)


def test_parameters_that_share_memory_a_hook_on_a_gradient_and_lazy_layers_are_refused() -> None:
    twins = nn.Sequential(nn.Flatten(), nn.Linear(192, 192), nn.Linear(192, 192), nn.Linear(192, 5))
    twins[2].weight.data = twins[1].weight.data
    with pytest.raises(ValueError, match=r"1.weight and 2.weight share their memory"):
        leakage.observe(twins, X, Y)
    watched = net()
    watched[0].weight.register_hook(lambda gradient: gradient / 2)
    with pytest.raises(ValueError, match=r"0.weight has a hook that changes its gradient"):
        leakage.observe(watched, X, Y)
    with pytest.raises(ValueError, match="no shape yet"):
        leakage.observe(nn.Sequential(nn.Flatten(), nn.LazyLinear(5)), X, Y)


def test_a_layer_that_fails_later_is_named() -> None:
    class Pairs(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.view(2, -1)

    model = nn.Sequential(Pairs(), nn.Linear(192, 5))
    with pytest.raises(ValueError, match=r"layer 0 \(Pairs\)|shape"):
        leakage.observe(model, X, Y, defenses=["dp_sgd"])


@pytest.mark.parametrize("last", [nn.Sigmoid, nn.Softmax, nn.Hardsigmoid])
def test_probabilities_are_refused_and_logits_that_happen_to_lie_between_0_and_1_are_not(last: type[nn.Module]) -> None:
    ended = last(1) if last is nn.Softmax else last()
    with pytest.raises(ValueError, match="answers probabilities"):
        leakage.observe(nn.Sequential(nn.Flatten(), nn.Linear(192, 5), ended), X, Y)
    small = nn.Sequential(nn.Flatten(), nn.Linear(192, 5))
    nn.init.constant_(small[1].weight, 1e-4)
    nn.init.constant_(small[1].bias, 0.5)
    assert bool(((small(X) > 0) & (small(X) < 1)).all())
    leakage.observe(small, X, Y)


# ---------------------------------------------------------------- updates


FORMS: dict[str, Callable[[nn.Module, dict[str, Tensor]], Any]] = {
    "arrays by name": lambda _, g: {name: value.numpy() for name, value in g.items()},
    "arrays of half precision in order": lambda _, g: [value.half().numpy() for value in g.values()],
    "bfloat16": lambda _, g: {name: value.bfloat16() for name, value in g.items()},
    "two prefixes": lambda _, g: {f"module._orig_mod.{name}": value for name, value in g.items()},
    "a prefix of one's own": lambda _, g: {f"net.model.{name}": value for name, value in g.items()},
    "pairs": lambda _, g: list(g.items()),
    "one vector": lambda _, g: torch.cat([value.flatten() for value in g.values()]),
    "a state dictionary in order": lambda model, g: [g.get(name, value) for name, value in model.state_dict().items()],
    "values of a dictionary": lambda _, g: g.values(),
    "sparse tensors": lambda _, g: {name: value.to_sparse() for name, value in g.items()},
    "parameters": lambda _, g: [nn.Parameter(value) for value in g.values()],
}


@pytest.mark.parametrize("name", FORMS)
def test_an_update_is_taken_as_frameworks_send_it(name: str) -> None:
    model = net()
    true = gradient(model, X)
    result = leakage.attack(model, update=FORMS[name](model, true), image_shape=(3, 8, 8), batch_size=2, attack=InvertingGradients(steps=2))
    assert result.update.labels == Y.tolist()


def test_of_frozen_parameters_an_update_may_hold_nothing() -> None:
    model = net()
    model[0].requires_grad_(False)
    true = {name: value for name, value in gradient(net(), X).items() if not name.startswith("0.")}
    for update in (list(true.values()), [None, None, *true.values()], true, {**true, "0.weight": None, "0.bias": None}):
        result = leakage.attack(model, update=update, image_shape=(3, 8, 8), batch_size=2, attack=InvertingGradients(steps=2))
        assert result.update.labels == Y.tolist()


def test_a_pixel_beyond_white_by_rounding_is_white_and_a_refusal_shows_that_it_is_beyond() -> None:
    x = X.clone()
    x[0, 0, 0, 0] = 1 + 5e-6
    assert float(leakage.observe(net(), x, Y).received.update["4.bias"].sum()) == pytest.approx(0, abs=1e-6)
    x[0, 0, 0, 0] = 1.00003
    with pytest.raises(ValueError, match=r"x must lie in \[0, 1\]; got .* to 1.00003"):
        leakage.observe(net(), x, Y)


# ---------------------------------------------------------------- DLG's own network


@pytest.mark.long
def test_dlgs_published_network_gives_a_picture_of_28_pixels_back() -> None:
    result = leakage.attack(PublishedLeNet(1), smooth(1, 1, 28), torch.tensor([7]), attack=IDLG(steps=40, restarts=2))
    assert result.scores["psnr"] > 40
    assert result.labels == [7]


class Answering(nn.Sequential):
    """A network that returns its logits in a dictionary or an object, as Hugging Face's models do."""

    def __init__(self, answer: Callable[[Tensor], Any]) -> None:
        super().__init__(*net())
        self.answer = answer

    def forward(self, x: Tensor) -> Any:
        return self.answer(super().forward(x))


@pytest.mark.parametrize("answer", [lambda z: {"loss": None, "logits": z}, lambda z: SimpleNamespace(logits=z, features=None)])
def test_logits_in_a_dictionary_or_an_object_are_taken(answer: Callable[[Tensor], Any]) -> None:
    seen = leakage.observe(Answering(answer), X, Y)
    same(seen.received.update, gradient(net(), X))
    assert leakage.attack(Answering(answer), X, Y, attack=InvertingGradients(steps=3)).reconstruction.isfinite().all()
