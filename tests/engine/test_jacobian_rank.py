"""The rank of a whole gradient compared with the dense Jacobian and with derivations; and what a sketch keeps."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacfwd
from torch.nn import functional as F

from leakage.engine import jacobian_rank
from leakage.engine.jacobian_rank import spectrum
from leakage.engine.stopping import StoppedError
from leakage.models.custom import Custom

LABEL = torch.tensor([3])


def picture(channels: int, side: int) -> Tensor:
    return torch.rand(1, channels, side, side, generator=torch.Generator().manual_seed(0))


def network(text: str, channels: int, side: int, activation: str = "leaky_relu") -> nn.Module:
    torch.manual_seed(0)
    return Custom(network=text, activation=activation).build((channels, side, side), 10)


def dense(model: nn.Module, x: Tensor) -> Tensor:
    """Every singular value of the Jacobian of the gradient of the weights, the plain way: (columns,), float64."""
    weights = {name: weight.detach().double() for name, weight in model.named_parameters()}

    def gradient(picture: Tensor) -> Tensor:
        found = grad(lambda w: F.cross_entropy(functional_call(model, w, (picture,)), LABEL))(weights)
        return torch.cat([one.flatten() for one in found.values()])

    whole = jacfwd(gradient)(x.double()).flatten(1)  # (rows, columns)
    return torch.linalg.svdvals(whole)


@pytest.mark.parametrize(
    "text", ["linear 7", "conv 3@4 p1", "conv 3@4 /2 p1 - conv 3@5", "conv 3@4 p1 - max 2 - conv 3@6", "block 4 /2 - mean"]
)
@pytest.mark.parametrize("activation", ["sigmoid", "leaky_relu", "relu"])
@pytest.mark.long
def test_the_singular_values_are_those_of_the_dense_jacobian(text: str, activation: str) -> None:
    model, x = network(text, 2, 8, activation), picture(2, 8)
    found, true = spectrum(model, x, LABEL), dense(model.double(), x)
    true = F.pad(true, (0, x.numel() - len(true)))  # fewer rows than columns
    assert found.exact
    assert torch.allclose(found.values, true, atol=2e-7 * float(true[0]))
    assert found.rank == int((true > 1e-7 * true[0]).sum())


def test_of_a_network_that_sees_the_mean_of_every_channel_three_directions_are_left() -> None:
    """Its gradient is that of a linear layer on three numbers: a Jacobian of rank 3, whatever else is in the picture."""
    found = spectrum(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 10)), picture(3, 8), LABEL)
    assert (found.rank, found.unknowns) == (3, 192)


def test_of_one_picture_a_linear_layer_gives_every_direction_and_what_a_number_moves_can_be_told() -> None:
    """dL/dW = e x^T with e = p - onehot: a direction that leaves the logits alone moves it by |e| times its length."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Flatten(), nn.Linear(48, 4, bias=False)), picture(3, 4)
    found = spectrum(model, x, LABEL)
    error = float((torch.softmax(model(x).detach(), 1) - F.one_hot(LABEL, 4)).double().norm())
    assert found.rank == 48
    alone = (found.values / error - 1).abs() < 1e-6
    assert int(alone.sum()) == 44  # at right angles to what moves the 3 differences of 4 logits, and to x
    assert found.above(error * 1.001) < found.above(error * 0.999)
    assert found.above(0.0) == 48


def test_a_sketch_has_the_same_rank_and_singular_values_within_a_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = network("conv 3@12 p1 - conv 3@2 p1", 1, 8), picture(1, 8)
    exact = spectrum(model, x, LABEL)
    monkeypatch.setattr(jacobian_rank, "ROOM", 0)
    sketched = spectrum(model, x, LABEL)
    assert (exact.exact, sketched.exact) == (True, False)
    assert sketched.rank == exact.rank
    share = sketched.values[: exact.rank] / exact.values[: exact.rank]
    assert float(share.min()) > 0.4
    assert float(share.max()) < 1.6


def test_noise_as_long_as_a_share_of_the_gradient_is_spread_over_all_numbers_that_are_sent() -> None:
    """Of a linear layer 4 x 48 with e = p - onehot: J is |e| in 44 directions, the gradient e x^T is |e| |x| long, of 192 numbers."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Flatten(), nn.Linear(48, 4, bias=False)), picture(3, 4)
    found = spectrum(model, x, LABEL)
    error, length = (torch.softmax(model(x).detach(), 1) - F.one_hot(LABEL, 4)).double().norm(), float(x.double().norm())
    assert (found.sent, found.gradient) == (192, pytest.approx(float(error) * length))
    share = 192**0.5 / length  # noise of |e| in every number
    assert found.above_fraction(0.999 * share) - found.above_fraction(1.001 * share) == 44


def test_random_directions_find_a_short_rank_and_else_are_all_seen() -> None:
    blind = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 10))
    model, x = network("conv 3@4 p1", 1, 8), picture(1, 8)
    some, every = spectrum(model, x, LABEL, directions=20), spectrum(model, x, LABEL)
    assert (some.rank, some.directions, some.unknowns) == (20, 20, 64)
    assert spectrum(blind, picture(3, 8), LABEL, directions=20).rank == 3
    assert torch.all(some.values <= every.values[:20] * (1 + 1e-9))  # J on a part of all directions: interlaced
    assert torch.all(some.values >= every.values[-20:] * (1 - 1e-9))


def test_it_stops_when_told_and_leaves_the_model_as_it_was() -> None:
    model, x = network("conv 3@4 p1", 1, 8), picture(1, 8)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(StoppedError):
        spectrum(model, x, LABEL, should_stop=lambda _: True)
    spectrum(model, x, LABEL)
    assert all(torch.equal(value, before[name]) and value.dtype == before[name].dtype for name, value in model.state_dict().items())
    assert model.training
