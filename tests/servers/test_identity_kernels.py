"""Kernels that hand on the picture: what enters the first fully connected layer, what comes back, and which networks are refused."""

import pytest
import torch
from photographs import photographs
from small_problems import CATALOG, KEEPING, moments, observed, precision, smooth
from torch import Tensor, nn

import leakage
from leakage.engine.core import Observation
from leakage.networks.kept_pictures import keeps_pictures
from leakage.spec.experiment import Experiment, Part, SpecError
from leakage.workers.adapter import observe

SERVER = Part(id="identity_kernels")


def network(text: str, **fields: object) -> Part:
    return Part(id="custom", fields={"network": text, "activation": "relu", "bias": True, **fields})


def seen_by(x: Tensor, y: Tensor, model: Part) -> Observation:
    with precision(torch.float64):
        return observe(Experiment(model=model, server=SERVER), x, y)


@pytest.mark.parametrize("channels", [1, 3])
def test_what_enters_the_first_fully_connected_layer_is_the_picture(channels: int) -> None:
    x = smooth(2, channels).double()
    entered: list[Tensor] = []
    for server in (SERVER, None):
        with precision(torch.float64):
            seen = observe(Experiment(model=KEEPING, server=server), x, torch.tensor([1, 2]))
        seen.model.linear3.register_forward_pre_hook(lambda _, given: entered.append(given[0].detach()))
        seen.model(x)
    kept, honest = (maps.view(2, 4, 8, 8) for maps in entered)
    for filter in range(4):
        assert torch.equal(kept[:, filter], x[:, filter % channels])
        assert not torch.allclose(honest[:, filter], x[:, filter % channels], atol=0.1)


@pytest.mark.parametrize(
    "text", ["conv 3@12 p1 - conv 3@12 p1 - linear 100", "conv 1@3 - conv 5@7 p2", "conv 3@4 p1 - linear 50 - linear 20"]
)
@pytest.mark.parametrize("bias", [True, False])
def test_one_picture_comes_back_exactly(text: str, bias: bool) -> None:
    x, y = smooth(1, 3).double(), torch.tensor([2])
    answer = moments(Part(id="linear_layer"), seen_by(x, y, network(text, bias=bias)))[-1]
    assert float((answer.x - x).abs().max()) < 1e-5


@pytest.mark.parametrize("attack", CATALOG.servers.get("identity_kernels").reading)
def test_the_attacks_that_are_offered_find_a_batch_of_photographs(attack: str) -> None:
    x, y = photographs(3)
    answer = moments(Part(id=attack), seen_by(x, y, network("conv 3@3 p1 - conv 3@3 p1 - linear 200")))[-1].x.double()
    assert [bool(((answer - picture).abs().amax((1, 2, 3)) < 1e-5).any()) for picture in x] == [True] * 3


def test_the_preset_that_the_sentence_names_is_taken() -> None:
    (name,) = (name for name in CATALOG.models.get("custom").presets if name in CATALOG.servers.get("identity_kernels").needs_model)
    model = Part(id="custom", fields=CATALOG.models.get("custom").presets[name])
    assert Experiment(model=model, server=SERVER).resolve(CATALOG).server == SERVER


def test_the_convolutions_change_and_nothing_else() -> None:
    x = smooth(2)
    honest, changed = observed(x, model=KEEPING), observed(x, model=KEEPING, server=SERVER)
    differing = {name for name, value in honest.received.weights.items() if not torch.equal(value, changed.received.weights[name])}
    assert differing == {f"conv{number}.{part}" for number in (1, 2) for part in ("weight", "bias")}
    kernels = changed.received.weights["conv2.weight"].detach()
    assert kernels.flatten(1).sort().values[:, -2:].tolist() == [[0.0, 1.0]] * 4


UNFIT = {
    "a stride": network("conv 3@12 /2 p1 - linear 100"),
    "a smaller map": network("conv 3@12 - linear 100"),
    "pooling": network("conv 3@12 p1 - max 2 - linear 100"),
    "too few filters": network("conv 3@2 p1 - linear 100"),
    "no convolution": network("linear 100"),
    "negative numbers": network("conv 3@12 p1 - linear 100", normalise="cifar10"),
    "another activation": network("conv 3@12 p1 - linear 100", activation="sigmoid"),
    "another model": Part(id="lenet"),
    "a fully connected network": Part(id="mlp"),
}


@pytest.mark.parametrize("why", UNFIT)
def test_another_network_gets_a_sentence_before_the_run_and_in_the_engine(why: str) -> None:
    asked = Experiment(model=UNFIT[why], server=SERVER)
    with pytest.raises(SpecError, match=r"^model: Identity kernels need convolutions of stride 1 .* Choose your own network with"):
        asked.resolve(CATALOG)
    with pytest.raises(ValueError, match="Identity kernels need convolutions of stride 1"):
        observe(asked, torch.rand(1, 3, 32, 32), torch.tensor([1]))


@pytest.mark.parametrize("text", ["conv 3@12 p1 norm - linear 100", "block 12 - linear 100"])
def test_a_norm_and_a_block_are_refused_before_the_run_as_their_weights_decide_what_they_hand_on(text: str) -> None:
    with pytest.raises(SpecError, match=r"^model: Identity kernels need"):
        Experiment(model=network(text), server=SERVER).resolve(CATALOG)


def test_a_text_keeps_a_picture_if_each_of_its_convolutions_does() -> None:
    assert keeps_pictures("conv 3@3 p1", 3)
    assert keeps_pictures("conv 5@1 p2 - conv 1@1 - linear 5 - linear 5", 1)
    assert not keeps_pictures("conv 3@3 p1 - conv 3@2 p1", 3)
    assert not keeps_pictures("conv 3@3 p2", 3)
    assert not keeps_pictures("conv 3@12 p1 - mean", 3)


def test_the_python_interface_takes_a_network_of_the_caller() -> None:
    x, y = smooth(1), torch.tensor([1])
    model = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 16), nn.ReLU(), nn.Linear(16, 10))
    result = leakage.attack(model, x, y, server="identity_kernels")
    assert float((result.reconstruction - x).abs().max()) < 1e-4
    with pytest.raises(ValueError, match="Identity kernels need convolutions of stride 1"):
        leakage.observe(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 10)), x, y, server="identity_kernels")
