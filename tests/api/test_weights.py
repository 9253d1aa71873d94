"""A training client needs the model with other weights: the model computes with these weights alone, or is refused."""

import pytest
import torch
from model_zoo import By
from small_problems import smooth
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import leakage
from leakage.attacks.inverting_gradients import InvertingGradients
from leakage.engine.federation import ThreatModel

X, Y = smooth(2, 3, 8), torch.tensor([1, 3])
RATE, STEPS, GRANTED = 0.05, 2, ThreatModel(labels=True)
TRAINED = {"protocol": leakage.plugin("fedavg", epochs=STEPS, rate=RATE)}


class Kept(nn.Module):
    """A weight that is reached by a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(192, 12), nn.Linear(12, 5)
        self.kept = [self.first.weight]

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(x.flatten(1) @ self.kept[0].T + self.first.bias))


def recomputed() -> nn.Module:
    body = nn.Sequential(nn.Flatten(), nn.Linear(192, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh())
    return By(lambda net, x: net.head(checkpoint(net.body, x, use_reentrant=False)), body=body, head=nn.Linear(12, 5))


def embedded(**how: object) -> nn.Module:
    return By(
        lambda net, x: net.head(x.flatten(1) @ net.table(torch.arange(192))), table=nn.Embedding(192, 12, **how), head=nn.Linear(12, 5)
    )


def switching() -> nn.Module:
    return By(lambda net, x: (torch.set_grad_enabled(True), net.head(x.flatten(1)))[1], head=nn.Linear(192, 5))


def squeezing() -> nn.Module:
    return By(lambda net, x: net.conv(x).squeeze(), conv=nn.Conv2d(3, 5, 8))


def update(model: nn.Module) -> dict[str, Tensor]:
    """What torch's own SGD sends after STEPS steps."""
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    optimiser = torch.optim.SGD(model.parameters(), RATE)
    for _ in range(STEPS):
        optimiser.zero_grad()
        F.cross_entropy(model(X.double()), Y).backward()
        optimiser.step()
    return {name: value.detach() - before[name] for name, value in model.named_parameters()}


@pytest.mark.parametrize(
    ("make", "sentence"), [(recomputed, "Turn gradient checkpointing off"), (Kept, r"another gradient of first\.weight")]
)
def test_a_model_that_computes_with_other_weights_than_it_is_given_is_attacked_at_its_own_alone(make: type, sentence: str) -> None:
    model = make().double()
    true = torch.autograd.grad(F.cross_entropy(model(X.double()), Y), list(model.parameters()))
    found = leakage.observe(model, X, Y).received.update
    for name, value in zip(found, true, strict=True):
        torch.testing.assert_close(found[name], value)
    assert [*leakage.frames(model, X, Y, attack=InvertingGradients(steps=2), defenses=["dp_sgd"], threat_model=GRANTED)][-1].step == 2
    with pytest.raises(ValueError, match=sentence):
        leakage.observe(model, X, Y, **TRAINED)


def test_an_embedding_with_sparse_gradients_is_trained_as_torch_trains_it() -> None:
    model = embedded(sparse=True).double()
    found = leakage.observe(model, X, Y, **TRAINED).received.update
    for defenses in ([], ["dp_sgd"]):
        frames = leakage.frames(model, X, Y, attack=InvertingGradients(steps=2), defenses=defenses, threat_model=GRANTED)
        assert [*frames][-1].step == 2
    for name, value in update(model).items():
        torch.testing.assert_close(found[name], value)


def routed() -> nn.Module:
    """Each picture goes through one of two networks: the other has no gradient of it."""
    ways = nn.ModuleList([nn.Sequential(nn.Flatten(), nn.Linear(192, 6), nn.Sigmoid(), nn.Linear(6, 5)) for _ in range(2)])
    return By(lambda net, x: torch.stack([net.ways[int(one.mean() > MIDDLE)](one[None])[0] for one in x]), ways=ways)


MIDDLE = float(X.mean())  # the two pictures go different ways
SHAPES = {
    "a learned temperature, a parameter without axes": lambda: By(
        lambda net, x: net.head(x.flatten(1)) * net.scale.exp(), head=nn.Linear(192, 5), scale=nn.Parameter(torch.tensor(0.5))
    ),
    "a parameter without numbers": lambda: By(
        lambda net, x: net.head(x.flatten(1)) + net.empty.sum(), head=nn.Linear(192, 5), empty=nn.Parameter(torch.zeros(0))
    ),
    "parameters that only some pictures use": routed,
}


@pytest.mark.parametrize("name", SHAPES)
def test_parameters_of_any_shape_and_use_are_sent_and_matched(name: str) -> None:
    model = SHAPES[name]().double()
    search = leakage.plugin("inverting_gradients", steps=2)
    for defenses in ([], ["dp_sgd"]):
        assert [*leakage.frames(model, X, Y, attack=search, defenses=defenses, threat_model=GRANTED)][-1].step == 2
    found = leakage.observe(model, X, Y, **TRAINED).received.update
    for own, value in update(model).items():
        torch.testing.assert_close(found[own], value)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: embedded(max_norm=0.5), r"Parameter table\.weight is changed by the model's own forward"),
        (switching, "switches derivatives on and leaves them on"),
    ],
)
def test_a_forward_that_changes_a_weight_or_a_mode_of_torch_is_refused(make: type, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        leakage.observe(make(), X, Y)


def test_a_model_that_answers_one_axis_for_one_picture_is_refused_where_pictures_are_played_alone() -> None:
    assert leakage.observe(squeezing(), X, Y).received.update["conv.bias"].shape == (5,)
    with pytest.raises(ValueError, match=r"answers shape \(5,\) for pictures of shape \(1, 3, 8, 8\).*Name the axis in squeeze"):
        leakage.observe(squeezing(), X, Y, defenses=["dp_sgd"])
