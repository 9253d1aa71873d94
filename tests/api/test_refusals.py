"""Settings that cannot be attacked are refused with a message that names the fault and the layer."""

from typing import Any

import pytest
import torch
from once_differentiable import Once
from small_problems import smooth
from torch import Tensor, nn

import leakage
from leakage.attacks.inverting_gradients import InvertingGradients
from leakage.engine.federation import ThreatModel

X, Y = smooth(2, 1, 6), torch.tensor([0, 2])


def linear(**how: Any) -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 3, **how))


class Squares(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return Once.apply(x)


class Cut(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.detach()


class Flat(nn.Module):
    """So steep an activation that its derivative is 0."""

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(5, 6) - torch.tensor([5.0, 4.0, 3.0])


class Noisy(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(x, 0.5, training=True)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x


class Both(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = linear()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.net(x), x


class Swapped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head, self.body = nn.Linear(8, 3), nn.Linear(36, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x.flatten(1)).sigmoid())


def filled(value: float) -> nn.Sequential:
    net = linear()
    nn.init.constant_(net[1].weight, value)
    return net


def pictures(value: float) -> Tensor:
    x = X.clone()
    x[0, 0, 0, 0] = value
    return x


SEARCH = InvertingGradients(steps=2)
UPDATE = {"image_shape": (1, 6, 6), "batch_size": 2}
ZEROS = [torch.zeros(3, 36), torch.zeros(3)]
REFUSED = {  # a model is built in its test
    "NaN in a picture": ({"x": pictures(float("nan"))}, ValueError, "x holds numbers that are not finite"),
    "a picture beyond white": ({"x": pictures(1.5)}, ValueError, r"x must lie in \[0, 1\]; got 0\.\d+ to 1.5"),
    "bytes": ({"x": (255 * X).byte()}, TypeError, "Divide bytes by 255"),
    "half precision": ({"x": X.half()}, TypeError, "half precision hides"),
    "a picture without a batch": ({"x": X[0]}, ValueError, r"shape \(B, C, H, W\).*One picture is x\[None\]"),
    "no tensor": ({"x": X.numpy()}, TypeError, "x must be a tensor.*got a ndarray.*to_tensor"),
    "a sparse picture": ({"x": X.to_sparse()}, TypeError, "x must be a dense tensor.*sparse_coo"),
    "a picture without numbers": ({"x": X.to("meta")}, TypeError, "x must be a dense tensor.*device meta"),
    "labels in a list": ({"y": [0, 2]}, TypeError, "got list. torch.tensor makes one"),
    "one-hot labels": (
        {"y": torch.tensor([[1, 0, 0], [0, 0, 1]])},
        ValueError,
        "One-hot rows are probabilities: give them as floating-point",
    ),
    "a label outside the head": ({"y": torch.tensor([0, 3])}, ValueError, "Labels must lie in 0 to 2, the model's classes; got 3"),
    "a negative label": ({"y": torch.tensor([-1, 2])}, ValueError, "got -1"),
    "too few labels": ({"y": torch.tensor([1])}, ValueError, "one label for each of the 2 pictures"),
    "labels with a point": ({"y": torch.tensor([0.0, 1.0])}, TypeError, "whole numbers"),
    "no labels": ({"y": None}, ValueError, "Give pictures and labels"),
    "labels without numbers": ({"y": Y.to("meta")}, TypeError, "y must be a dense tensor"),
    "a model on another device": (
        {"model": lambda: linear(device="meta")},
        ValueError,
        "Parameter 1.weight lies on meta and the pictures on cpu",
    ),
    "no weights": ({"model": lambda: nn.Sequential(nn.Flatten(), nn.Softshrink())}, ValueError, "no parameter that is trained"),
    "a half model": ({"model": lambda: linear().half()}, TypeError, "Parameter 1.weight is torch.float16.*model.float"),
    "a mixed model": ({"model": lambda: nn.Sequential(nn.Flatten(), nn.Linear(36, 3), nn.Linear(3, 3).double())}, TypeError, "mixes"),
    "weights that are no numbers": (
        {"model": lambda: filled(float("nan"))},
        ValueError,
        "Parameter 1.weight holds numbers that are not finite",
    ),
    "no module": ({"model": lambda: lambda x: x}, TypeError, "must be a torch.nn.Module; got a function"),
    "a tuple as output": ({"model": Both}, TypeError, "answers a tuple; expected is one tensor of logits"),
    "one output": (
        {"model": lambda: nn.Sequential(nn.Flatten(), nn.Linear(36, 1))},
        ValueError,
        r"answers shape \(2, 1\).*logits \(0, z\)",
    ),
    "probabilities": ({"model": lambda: nn.Sequential(linear(), nn.Softmax(1))}, ValueError, "Leave out its softmax"),
    "pictures that do not fit": (
        {"model": lambda: nn.Sequential(nn.Flatten(), nn.Linear(9, 3))},
        ValueError,
        r"does not take pictures of shape",
    ),
    "no second derivative": (
        {"model": lambda: nn.Sequential(nn.Flatten(), nn.Linear(36, 9), Squares(), nn.Linear(9, 3))},
        ValueError,
        r"layer 2 \(Squares\) has no second derivative",
    ),
    "a cut": ({"model": lambda: nn.Sequential(Cut(), linear())}, ValueError, r"layer 0 \(Cut\) has no second derivative.*does not depend"),
    "a cut at the end": (
        {"model": lambda: nn.Sequential(linear(), Cut())},
        ValueError,
        "The logits do not depend on the model's parameters",
    ),
    "randomness in eval mode": (
        {"model": lambda: nn.Sequential(nn.Flatten(), Noisy(), linear()[1])},
        ValueError,
        r"Layer 1 \(Noisy\) answers",
    ),
    "a buffer that counts": ({"model": lambda: nn.Sequential(Counting(), linear())}, ValueError, "Buffer 0.calls changes"),
    "a frozen head": (
        {"model": lambda: nn.Sequential(*linear(), nn.Linear(3, 3).requires_grad_(False))},
        ValueError,
        r"2 \(Linear\), which makes the logits, has a weight that is frozen.*Grant the labels",
    ),
    "nothing to train": ({"model": lambda: linear().requires_grad_(False)}, ValueError, "no parameter that is trained"),
    "a saturated model": ({"model": lambda: nn.Sequential(filled(0.0), Flat())}, ValueError, "passes no gradient on"),
    "BatchNorm over one number": (
        {"model": lambda: nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36), linear()[1]), "x": X[:1], "y": Y[:1], "batch_norm": "batch"},
        ValueError,
        "one number per channel",
    ),
    "an unknown attack": ({"attack": "psychic"}, ValueError, "There is no attack 'psychic'; expected is one of .*dlg"),
    "a class for a value": ({"attack": InvertingGradients}, TypeError, r"got InvertingGradients. Call it: InvertingGradients\(\)"),
    "an unknown defense": ({"defenses": ["prayer"]}, ValueError, "There is no defense 'prayer'"),
    "a word for a list": ({"defenses": "pruning"}, TypeError, r"Write \['pruning'\]"),
    "an aggregation as protocol": ({"protocol": "secure_aggregation"}, ValueError, "Name it as aggregation"),
    "a protocol as aggregation": ({"aggregation": "fedavg"}, ValueError, "fedavg is no aggregation"),
    "an uneven sum": ({"x": X[:1], "y": Y[:1], "aggregation": "secure_aggregation"}, ValueError, "shared evenly by 2 clients"),
    "an unknown strategy": (
        {"defenses": ["pruning"], "threat_model": ThreatModel(strategy="prayer")},
        ValueError,
        "'prayer' is none of these defenses; expected is one of",
    ),
    "unknown statistics": ({"threat_model": ThreatModel(statistics="all")}, ValueError, "must be none, running or exact; got 'all'"),
    "a seed below 0": ({"seed": -1}, ValueError, "seed must be a whole number"),
    "too few constants": ({"normalization": ((0.5, 0.5), (1, 1))}, ValueError, r"normalization must be \(mean, std\) with 1 numbers each"),
    "a deviation of 0": ({"normalization": ((0.5,), (0,))}, ValueError, "std above 0"),
    "both pictures and an update": ({"update": ZEROS, **UPDATE}, ValueError, r"Give either pictures \(x\), or an update"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.long
def test_what_cannot_be_attacked_is_refused_with_a_sentence(name: str) -> None:
    given, kind, sentence = REFUSED[name]
    model = given.get("model", linear)()
    with pytest.raises(kind, match=sentence):
        leakage.attack(**({"x": X, "y": Y, "attack": SEARCH} | given | {"model": model}))


UPDATES = {
    "zero": (ZEROS, {}, ValueError, "zero everywhere"),
    "one tensor": (ZEROS[:1], {}, ValueError, "update holds 1 tensors; the model has 2"),
    "another shape": ([torch.ones(3, 35), torch.ones(3)], {}, ValueError, r"update\['1.weight'\] must have the shape"),
    "not finite": ([torch.full((3, 36), float("inf")), torch.ones(3)], {}, ValueError, "not finite"),
    "whole numbers": ([torch.ones(3, 36).long(), torch.ones(3)], {}, TypeError, "floating-point numbers; got torch.int64"),
    "no gradient": ([torch.ones(3, 36), None], {}, ValueError, r"update\['1.bias'\] is None.*Call backward"),
    "a word": ("gradient", {}, TypeError, "update must be tensors or arrays.*got a str"),
    "a vector too short": (torch.ones(110), {}, ValueError, "One vector would have 111 numbers"),
    "another name": ({"weight": torch.ones(3, 36), "1.bias": torch.ones(3)}, {}, ValueError, "no parameter 'weight'"),
    "a name too few": ({"1.weight": torch.ones(3, 36)}, {}, ValueError, "which the update lacks"),
    "no shape": ([torch.ones(3, 36), torch.ones(3)], {"image_shape": None}, ValueError, r"needs image_shape=\(C, H, W\)"),
    "no batch size": ([torch.ones(3, 36), torch.ones(3)], {"batch_size": None}, ValueError, "needs batch_size"),
    "granted labels": (
        [torch.ones(3, 36), torch.ones(3)],
        {"threat_model": ThreatModel(labels=True)},
        ValueError,
        "labels of the private batch cannot be granted",
    ),
}


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_that_says_nothing_or_fits_nothing_is_refused(name: str) -> None:
    update, given, kind, sentence = UPDATES[name]
    with pytest.raises(kind, match=sentence):
        leakage.attack(linear(), update=update, attack=SEARCH, **(UPDATE | given))


def test_nested_pictures_are_refused() -> None:
    nested = torch.nested.nested_tensor([*X], layout=torch.jagged)  # takes seconds: not while tests are collected
    with pytest.raises(TypeError, match=r"x must be a dense tensor.*a nested one"):
        leakage.attack(linear(), nested, Y, attack=SEARCH)


def test_a_layer_without_a_second_derivative_is_fine_for_who_solves_equations() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 9), Squares(), nn.Linear(9, 3))
    result = leakage.attack(model, X[:1], Y[:1], attack="linear_layer")
    torch.testing.assert_close(result.reconstruction, X[:1], atol=1e-4, rtol=0)


@pytest.mark.parametrize("granted", [True, False])
def test_the_labels_behind_a_head_that_is_defined_first_are_found(granted: bool) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)  # of 40 seeds, two have weights behind which the labels cannot be read
        model = Swapped()
    result = leakage.attack(model, X, Y, attack=SEARCH, threat_model=ThreatModel(labels=granted))
    assert result.labels == result.update.labels == Y.tolist()
