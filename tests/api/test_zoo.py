"""A zoo of users' models: each is attacked as its forward computes it, or refused with one message; none is changed."""

import copy
from typing import Any

import model_zoo as zoo
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import leakage
from leakage.attacks.inverting_gradients import InvertingGradients
from leakage.defenses.dp_sgd import DPSGD
from leakage.engine.federation import ThreatModel
from leakage.protocols.fedavg import FedAvg

CLOSE = 1e-5  # the nets are float64: in float32 torch.optim's own rounding of the weights is more than that of what a step moves them
RATE, STEPS, BOUND = 0.05, 2, 0.3
HOW: dict[str, dict[str, Any]] = {
    "a gradient": {},
    "FedAvg": {"protocol": FedAvg(epochs=STEPS, rate=RATE)},
    "DP-SGD": {"defenses": [DPSGD(max_grad_norm=BOUND, noise_multiplier=0.0)]},
}
Y = torch.tensor([1, 3])
REFUSED = {  # what no attack that searches can be played on -> the layer that the sentence names
    "a sigmoid that is differentiated once": r"layer 2 \(Layer\) has no second derivative",
}
UNREADABLE = {  # what says no labels -> the reason
    "a frozen head": "has a weight that is frozen",
    "a head under weight norm": "computes its weight from other parameters",
    "pruned layers": "computes its weight from other parameters",
    "a cosine head": "none of the model's linear layers makes its logits",
    "prototypes": "none of the model's linear layers makes its logits",
    "a convolution as head": "needs a linear last layer",
    "SqueezeNet": "needs a linear last layer",
}
TINY = zoo.ACTIVATIONS | zoo.PARTS | zoo.NETS
QUICK = (
    "ReLU in place",
    "Hardsigmoid by its function",
    "a sigmoid that is differentiated once",
    "standardised filters",
    "pruned layers",
    "a frozen bias of the head",
    "prototypes",
    "GRU",
    "a transformer's layer",
    "a view behind a convolution",
    "an encoder kept beside the whole",
    "a tied weight",
    "DataParallel",
    "pictures changed in place",
    "a question to the picture",
)


def built(make: zoo.Make, dtype: torch.dtype = torch.float64) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make().to(dtype)


def pictures(side: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.rand(2, zoo.CHANNELS, side, side, generator=torch.Generator().manual_seed(1), dtype=dtype)


def gradient(net: nn.Module, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Autograd's, of the parameters that are trained and used."""
    trained = {name: value for name, value in net.named_parameters() if value.requires_grad}
    found = torch.autograd.grad(F.cross_entropy(net(x.clone()), y), list(trained.values()), allow_unused=True)
    return {name: value for name, value in zip(trained, found, strict=True) if value is not None}


def expected(kind: str, net: nn.Module, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """What a client of torch sends that trains this network in eval mode."""
    net = net.eval()
    used = gradient(net, x, y)
    if kind == "a gradient":
        return used
    if kind == "DP-SGD":
        singles = [gradient(net, x[place : place + 1], y[place : place + 1]) for place in range(len(x))]
        shares = [min(1.0, BOUND / float(torch.cat([g.flatten() for g in one.values()]).norm())) for one in singles]
        return {name: sum(share * one[name] for share, one in zip(shares, singles, strict=True)) / len(x) for name in used}
    before = {name: value.detach().clone() for name, value in net.named_parameters()}
    optimiser = torch.optim.SGD([value for value in net.parameters() if value.requires_grad], RATE)
    for _ in range(STEPS):
        optimiser.zero_grad()
        F.cross_entropy(net(x.clone()), y).backward()
        optimiser.step()
    return {name: value.detach() - before[name] for name, value in net.named_parameters() if name in used}


def error(found: dict[str, Tensor], true: dict[str, Tensor]) -> float:
    assert found.keys() == true.keys()
    apart = sum(float((found[name] - value).square().sum()) for name, value in true.items())
    return float((apart / sum(float(value.square().sum()) for value in true.values())) ** 0.5)


def flags(net: nn.Module) -> list[Any]:
    """All that a person may have set beside the numbers."""
    layers = [(layer.training, len(layer._forward_hooks), len(layer._forward_pre_hooks)) for layer in net.modules()]
    return [*layers, *((name, value.requires_grad, value.grad is None) for name, value in net.named_parameters())]


def check(name: str, make: zoo.Make, kind: str, side: int, ways: tuple[bool, ...] = (True, False)) -> None:
    """Play it with granted labels and with labels that are read, or in one of these ways."""
    net, x = built(make), pictures(side)
    true = expected(kind, built(make), x, Y)
    before = copy.deepcopy(dict(net.state_dict())), flags(net), x.clone(), torch.get_rng_state()
    assert error(leakage.observe(net, x, Y, **HOW[kind]).received.update, true) < CLOSE
    for granted in ways:
        asked: dict[str, Any] = {"attack": InvertingGradients(steps=2), "threat_model": ThreatModel(labels=granted), **HOW[kind]}
        refusal = REFUSED.get(name) or (UNREADABLE.get(name) if not granted else None)
        if refusal:
            with pytest.raises(ValueError, match=refusal):
                leakage.attack(net, x, Y, **asked)
            continue
        result = leakage.attack(net, x, Y, **asked)
        assert bool(result.reconstruction.isfinite().all())
        if granted:
            assert sorted(result.labels) == Y.tolist()  # in the order of the pictures that the guesses fit best
        assert (result.update.labels is None) == (name in UNREADABLE)
    state, set_before, pixels, rng_state = before
    assert all(torch.equal(value, state[key]) for key, value in net.state_dict().items())
    assert flags(net) == set_before
    assert torch.equal(x, pixels)
    assert torch.equal(torch.get_rng_state(), rng_state)


@pytest.mark.pairwise
@pytest.mark.parametrize("granted", [True, False])
@pytest.mark.parametrize("kind", HOW)
@pytest.mark.parametrize("name", QUICK)
@pytest.mark.long
def test_a_model_is_attacked_as_its_forward_computes_it_or_refused(name: str, kind: str, granted: bool) -> None:
    check(name, TINY[name], kind, zoo.SIDE, (granted,))


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOW)
@pytest.mark.parametrize("name", [name for name in TINY if name not in QUICK])
def test_each_other_model_of_the_zoo_is_attacked_or_refused(name: str, kind: str) -> None:
    check(name, TINY[name], kind, zoo.SIDE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOW)
@pytest.mark.parametrize("name", zoo.TORCHVISION)
def test_networks_of_torchvision_are_attacked_or_refused(name: str, kind: str) -> None:
    check(name, zoo.TORCHVISION[name], kind, 32)


@pytest.mark.parametrize("name", ["ReLU in place", "standardised filters", "GRU", "a transformer's layer"])
@pytest.mark.long
def test_in_float32_the_update_is_autograds_too(name: str) -> None:
    x = pictures(zoo.SIDE, torch.float32)
    true = gradient(built(TINY[name], torch.float32).eval(), x, Y)
    assert error(leakage.observe(built(TINY[name], torch.float32), x, Y).received.update, true) < CLOSE


def test_the_zoo_has_the_animals_that_it_promises() -> None:
    assert len(zoo.ACTIVATIONS) >= 24
    assert len(zoo.PARTS) >= 20
    assert len(zoo.NETS) + len(zoo.TORCHVISION) >= 16
