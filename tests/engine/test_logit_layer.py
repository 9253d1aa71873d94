"""The layer of the logits is found from the computation of a model; where labels cannot be read, a message says why."""

from collections.abc import Callable

import pytest
import torch
from small_problems import altered, observed, smooth
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, prune

from leakage.engine.chain import TwoClasses
from leakage.engine.client import gradient_client, weights_of
from leakage.engine.core import Observation
from leakage.engine.labels import recover
from leakage.engine.logit_layer import last_layer, logit_layer


def seen_by(model: nn.Module) -> Observation:
    """A server that attacks this model with two pictures of 8 x 8."""
    return altered(observed(smooth(2)), model=model.eval(), weights=weights_of(model), size=2)


def body(out: int = 6) -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, out), nn.Tanh())


class Net(nn.Module):
    """A body, and a head that is handed what it makes."""

    def __init__(self, head: nn.Module, how: Callable[["Net", Tensor], Tensor], *, first: bool = False) -> None:
        super().__init__()
        if first:
            self.head = head
        self.body = body()
        self.head, self.how = head, how

    def forward(self, x: Tensor) -> Tensor:
        return self.how(self, self.body(x))


def plain(net: Net, h: Tensor) -> Tensor:
    out: Tensor = net.head(h)
    return out


def frozen(part: str) -> nn.Linear:
    """A linear layer with one parameter as a buffer, like the frozen parameters of an attacked copy."""
    layer = nn.Linear(6, 5)
    value = getattr(layer, part).detach()
    del layer._parameters[part]
    layer.register_buffer(part, value)
    return layer


FOUND = {  # model -> names of weight and bias
    "the last of a sequence": (lambda: nn.Sequential(*body(), nn.Linear(6, 5)), ("3.weight", "3.bias")),
    "without a bias": (lambda: nn.Sequential(*body(), nn.Linear(6, 5, bias=False)), ("3.weight", None)),
    "the only one": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 5)), ("1.weight", "1.bias")),
    "defined first": (lambda: Net(nn.Linear(6, 5), plain, first=True), ("head.weight", "head.bias")),
    "a frozen bias": (lambda: Net(frozen("bias"), plain), ("head.weight", None)),
    "log-probabilities": (lambda: Net(nn.Linear(6, 5), lambda net, h: net.head(h).log_softmax(1)), ("head.weight", "head.bias")),
    "a constant added": (lambda: Net(nn.Linear(6, 5), lambda net, h: net.head(h) + torch.arange(5.0)), ("head.weight", "head.bias")),
    "one output of two classes": (lambda: nn.Sequential(*body(), nn.Linear(6, 1), TwoClasses()), ("3.weight", "3.bias")),
    "changed in place after it": (lambda: Net(nn.Linear(6, 5), lambda net, h: net.head(h).sub_(1)), ("head.weight", "head.bias")),
    "a head that is kept twice": (lambda: twice_kept(), ("head.weight", "head.bias")),
}


class Routed(nn.Module):
    """Each picture goes to one of three networks, by its pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.ways = nn.Linear(64, 3), nn.ModuleList([nn.Sequential(body(), nn.Linear(6, 5)) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        way = self.gate(x.flatten(1)).argmax(1)
        return torch.stack([(way == place).unsqueeze(1) * one(x) for place, one in enumerate(self.ways)]).sum(0)


def twice_kept() -> nn.Module:
    net = Net(nn.Linear(6, 5), plain)
    net.add_module("again", net.head)
    return net


ELEMENTWISE: dict[str, Callable[[Tensor], Tensor]] = {
    "a temperature": lambda z: z / 3,
    "a sigmoid": lambda z: 5 * z.sigmoid(),
    "a leaky ReLU": F.leaky_relu,
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_behind_an_activation_or_a_temperature_one_label_is_read_and_of_a_batch_nothing_is_warranted(name: str) -> None:
    torch.manual_seed(0)
    model = Net(nn.Linear(6, 5), lambda net, h: ELEMENTWISE[name](net.head(h)))
    for y in (torch.tensor([3]), torch.tensor([3, 1])):
        x = smooth(len(y))
        update, _ = gradient_client(model)(weights_of(model), x, y, {})
        seen = altered(seen_by(model), update=update, size=len(y), num_classes=5)
        assert logit_layer(seen) == ("head.weight", "head.bias", False)
        found = recover(seen)
        assert found.certainty == (1.0 if len(y) == 1 else None)
        assert len(y) > 1 or found.labels.tolist() == [3]


@pytest.mark.parametrize("name", FOUND)
def test_the_layer_that_makes_the_logits_is_found(name: str) -> None:
    make, names = FOUND[name]
    assert last_layer(seen_by(make())) == names


def tied() -> nn.Module:
    net = Net(nn.Linear(6, 6, bias=False), plain)
    net.body = nn.Sequential(*body(), nn.Linear(6, 6, bias=False))
    net.body[3].weight = net.head.weight
    return net


def tied_by_hand() -> nn.Module:
    return Net(nn.Linear(6, 6, bias=False), lambda net, h: net.head(F.linear(h, net.head.weight).tanh()))


def dead() -> nn.Module:
    net = Net(nn.Linear(6, 5), lambda net, h: net.head(h).relu())
    with torch.no_grad():
        net.head.weight.zero_()
        net.head.bias.fill_(-1)  # ReLU lets no output through
    return net


def pruned() -> nn.Module:
    head = nn.Linear(6, 5)
    prune.l1_unstructured(head, "weight", 0.5)
    return Net(head, plain)


UNREADABLE = {  # model -> why, in words
    "no linear layer": (lambda: nn.Sequential(nn.Conv2d(1, 5, 8), nn.Flatten()), "needs a linear last layer, and this model has none"),
    "a convolution": (
        lambda: nn.Sequential(*body(), nn.Unflatten(1, (6, 1, 1)), nn.Conv2d(6, 5, 1), nn.Flatten()),
        "none of the model's linear layers makes its logits",
    ),
    "pictures that go ways of their own": (Routed, "none of the model's linear layers makes its logits"),
    "dead outputs": (dead, "no linear layer of the model changes its logits"),
    "a frozen weight": (lambda: Net(frozen("weight"), plain), r"head \(Linear\), which makes the logits, has a weight that is frozen"),
    "a weight norm": (lambda: Net(parametrizations.weight_norm(nn.Linear(6, 5)), plain), "computes its weight from other parameters"),
    "a spectral norm": (lambda: Net(parametrizations.spectral_norm(nn.Linear(6, 5)), plain), "computes its weight from other"),
    "an orthogonal head": (lambda: Net(parametrizations.orthogonal(nn.Linear(6, 5)), plain), "computes its weight from other"),
    "a pruned head": (pruned, "computes its weight from other"),
    "a cosine": (lambda: Net(nn.Linear(6, 5), lambda net, h: F.normalize(net.head(h))), "none of the model's linear layers"),
    "logits turned round": (lambda: Net(nn.Linear(6, 5), lambda net, h: -net.head(h)), "none of the model's linear layers"),
    "logits in another order": (lambda: Net(nn.Linear(6, 5), lambda net, h: net.head(h).flip(1)), "none of the model's linear layers"),
    "a tied weight": (tied, r"has a weight that the model uses elsewhere too"),
    "a weight that is used by hand": (tied_by_hand, r"head \(Linear\), which makes the logits, has a weight that the model uses elsewhere"),
    "a head called twice": (lambda: Net(nn.Linear(6, 6), lambda net, h: net.head(net.head(h))), "uses elsewhere too"),
    "a mean over tokens": (
        lambda: Net(nn.Linear(2, 5), lambda net, h: net.head(h.view(-1, 3, 2)).mean(1)),
        "none of the model's linear layers",
    ),
    "the sum of two heads": (lambda: Net(nn.Linear(6, 5), lambda net, h: net.head(h) + net.head(2 * h)), "uses elsewhere too"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_where_no_layer_says_the_labels_the_reason_is_given(name: str) -> None:
    make, why = UNREADABLE[name]
    with pytest.raises(ValueError, match=f"{why}.*Grant the labels instead"):
        last_layer(seen_by(make()))


def test_a_probe_leaves_model_and_rng_state_as_they_were() -> None:
    seen = seen_by(Net(nn.Linear(6, 5), plain))
    before, rng_state = {name: value.clone() for name, value in seen.model.state_dict().items()}, torch.get_rng_state()
    last_layer(seen)
    assert all(torch.equal(value, before[name]) for name, value in seen.model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), rng_state)
    assert all(value.grad is None for value in seen.model.parameters())
    assert not any(layer._forward_hooks for layer in seen.model.modules())


def test_an_activation_that_leaves_the_answers_to_some_pictures_as_they_are_is_an_activation_all_the_same() -> None:
    head = nn.Linear(64, 5)
    nn.init.constant_(head.weight, 1 / 64)
    nn.init.constant_(head.bias, -0.3)  # above 0 for pictures of mean brightness 0.5, below for dark ones
    assert logit_layer(seen_by(nn.Sequential(nn.Flatten(), head))).plain
    assert not logit_layer(seen_by(nn.Sequential(nn.Flatten(), head, nn.LeakyReLU(0.1)))).plain
