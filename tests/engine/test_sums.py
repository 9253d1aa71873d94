"""A sum over phones is replayed in one pass where their loss is a mean over pictures, and phone by phone elsewhere."""

import pytest
import torch
from small_problems import precision, smooth
from torch import Tensor

from leakage.engine.client import Gradient, use_batch_statistics, weights_of
from leakage.engine.core import ClientState, Params, Update
from leakage.evaluation.metrics import gradient_distances
from leakage.models.convnet import ConvNet
from leakage.models.lenet import LeNet
from leakage.protocols.secure_aggregation import SecureAggregation


class Counted(Gradient):
    """Notes with how many pictures it was called."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__(model)
        self.pictures: list[int] = []

    def __call__(self, weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        self.pictures.append(len(x))
        return super().__call__(weights, x, y, state)


def summed(client: Counted, weights: Params, pictures: int, phones: int, *, alike: bool) -> tuple[Params, Tensor]:
    """The sum of the phones' gradients, and the derivative of its squared norm by the pictures."""
    x, y = smooth(pictures, 3, 32, seed=3).requires_grad_(), torch.arange(pictures) % 10
    merged = SecureAggregation(clients=phones).merge_clients([client if alike else lambda *given: client(*given) for _ in range(phones)])
    total, state = merged(weights, x, y, {})
    assert state == {}
    squares = torch.stack([(value**2).sum() for value in total.values()]).sum()
    return total, torch.autograd.grad(squares, x)[0]


@pytest.mark.parametrize(("pictures", "passes"), [(8, [8]), (7, [2, 2, 2, 1])])
def test_phones_with_equally_many_pictures_take_one_pass(pictures: int, passes: list[int]) -> None:
    with precision(torch.float64):
        model = LeNet().build((3, 32, 32), 10)
        client, each = Counted(model), Counted(model)
        once, derivative = summed(client, weights_of(model), pictures, 4, alike=True)
        added, expected = summed(each, weights_of(model), pictures, 4, alike=False)
    assert client.pictures == passes
    assert len(each.pictures) == 4
    assert gradient_distances(once, added)["relative_l2"] < 1e-12  # float64
    torch.testing.assert_close(derivative, expected, atol=1e-14, rtol=1e-9)


def test_phones_that_take_statistics_of_their_own_batch_are_added_one_by_one() -> None:
    model = ConvNet(width=4).build((3, 32, 32), 10)
    use_batch_statistics(model, smooth(4, 3, 32))
    client = Counted(model)
    summed(client, weights_of(model), 8, 2, alike=True)
    assert client.pictures == [4, 4]
