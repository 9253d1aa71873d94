"""Each check of a received model, on networks for which its number follows by hand."""

import math
from collections import OrderedDict
from collections.abc import Sequence
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from leakage.checks.alive import Alive
from leakage.checks.d_snr import DSnr
from leakage.checks.equal_rows import EqualRows
from leakage.checks.head_rows import HeadRows
from leakage.checks.new_layers import NewLayers
from leakage.checks.same_for_all import SameForAll
from leakage.checks.transmit_snr import TransmitSnr
from leakage.checks.trap_rows import TrapRows
from leakage.engine.client import weights_of
from leakage.engine.core import Check, Handed, Params

RNG = torch.Generator


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=RNG().manual_seed(seed))


def handed(
    model: nn.Module,
    x: Tensor | None = None,
    y: Tensor | None = None,
    *,
    agreed: nn.Module | None = None,
    earlier: Sequence[Params] = (),
    others: Sequence[Params] = (),
) -> Handed:
    """Return what a client holds that received this model; two random pictures (1, 4, 4) unless others are given."""
    x = torch.rand(2, 1, 4, 4, generator=RNG().manual_seed(1)) if x is None else x
    return Handed(model, agreed or model, x, torch.arange(len(x)) % 3 if y is None else y, earlier, others)


def with_first(rows: Tensor) -> nn.Module:
    """Return a network whose first layer is linear with these rows (K, 16)."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, len(rows)), nn.ReLU(), nn.Linear(len(rows), 3))
    with torch.no_grad():
        model[1].weight.copy_(rows)
    return model


def with_kernels(kernels: Tensor, channels: int = 1) -> nn.Module:
    """Return a network whose first layer is a convolution with these kernels (K, C, size, size)."""
    model = nn.Sequential(nn.Conv2d(channels, len(kernels), kernels.shape[2]), nn.Flatten(), nn.LazyLinear(3))
    model(torch.zeros(1, channels, 4, 4))
    with torch.no_grad():
        model[0].weight.copy_(kernels)
    return model


def with_head(rows: Tensor) -> nn.Module:
    """Return a network with a bias whose last layer has these rows (3, n)."""
    torch.manual_seed(0)
    width = rows.shape[1]
    model = nn.Sequential(OrderedDict(flat=nn.Flatten(), body=nn.Linear(16, width), on=nn.Sigmoid(), head=nn.Linear(width, 3)))
    with torch.no_grad():
        model.head.weight.copy_(rows)
    return model


# ---------------------------------------------------------------- the first layer


def test_transmit_snr_is_the_largest_number_of_a_kernel_over_the_sum_of_the_others() -> None:
    kernels = torch.full((2, 1, 3, 3), 0.5)  # 0.5 / 4 = 0.125
    kernels[1, 0, 1, 2] = -5.0  # 5 / 4
    assert TransmitSnr().measure(handed(with_kernels(kernels))) == pytest.approx(1.25, rel=1e-5)
    assert TransmitSnr().measure(handed(with_kernels(kernels[:1]))) == pytest.approx(0.125, rel=1e-5)
    rows = torch.ones(2, 16)
    rows[0, 3] = 30.0
    assert TransmitSnr().measure(handed(with_first(rows))) == pytest.approx(2.0, rel=1e-5)  # rows of a linear layer too


def test_a_kernel_that_copies_a_pixel_trips_transmit_snr_and_a_kernel_of_zeros_does_not() -> None:
    kernels = noise(2, 1, 3, 3).clamp(-1, 1) * 0.1
    kernels[1] = 0
    assert not TransmitSnr().trips(TransmitSnr().measure(handed(with_kernels(kernels))))
    kernels[1, 0, 1, 1] = 1.0
    number = TransmitSnr().measure(handed(with_kernels(kernels)))
    assert number == pytest.approx(1e6)
    assert TransmitSnr().trips(number)


def test_equal_rows_counts_rows_in_the_direction_of_another_and_rows_of_zeros_not() -> None:
    a, b = noise(16, seed=1), noise(16, seed=2)
    rows = torch.stack([a, b, 2 * a, noise(16, seed=3), -0.01 * a, torch.zeros(16), torch.zeros(16), a + b])
    assert EqualRows().measure(handed(with_first(rows))) == 3 / 8
    assert EqualRows().measure(handed(with_first(rows[[0, 1, 3, 5, 7]]))) == 0


@pytest.mark.parametrize("cosine", [0.9985, 0.9995])
def test_equal_rows_begin_at_a_cosine_of_0_999(cosine: float) -> None:
    first, second = torch.eye(16)[0], torch.eye(16)[1]
    rows = torch.stack([first, cosine * first + math.sqrt(1 - cosine**2) * second])
    assert EqualRows().measure(handed(with_first(rows))) == (1.0 if cosine > 0.999 else 0.0)


def test_equal_rows_are_found_across_the_parts_in_which_they_are_compared() -> None:
    rows = noise(600, 16, seed=4)
    rows[599] = 3 * rows[2]
    assert EqualRows().measure(handed(with_first(rows))) == 2 / 600


def trap(width: int, factor: float, seed: int) -> Tensor:
    """Return a row of trap weights (width,): a random half is negative, the others are these numbers in another order times a factor."""
    rng = RNG().manual_seed(seed)
    sizes, order = torch.randn(width // 2, generator=rng).abs(), torch.randperm(width, generator=rng)
    return torch.cat([-sizes, factor * sizes[torch.randperm(width // 2, generator=rng)]])[order]


def test_trap_rows_counts_rows_whose_positive_weights_are_a_scaled_copy_of_the_negative_ones() -> None:
    rows = torch.stack([trap(400, 0.95, 1), noise(400, seed=1), trap(400, 1.3, 2), noise(400, seed=2)])
    balanced = torch.cat([-noise(200, seed=3).abs(), noise(200, seed=4).abs()])  # as many of both signs, and no copy
    positive = trap(400, 0.95, 5).abs()
    unequal = torch.cat([-torch.ones(100), torch.ones(300)])  # of a single size, but not in halves
    wide = nn.Sequential(nn.Flatten(), nn.Linear(400, 7), nn.ReLU(), nn.Linear(7, 3))
    with torch.no_grad():
        wide[1].weight.copy_(torch.cat([rows, torch.stack([balanced, positive, unequal])]))
    x = torch.rand(2, 1, 20, 20)
    assert TrapRows().measure(handed(wide, x)) == 2 / 7
    with torch.no_grad():
        wide[1].weight.add_(0.01 * noise(7, 400, seed=9))  # noise hides the traps: a check is no proof
    assert TrapRows().measure(handed(wide, x)) == 0


@pytest.mark.parametrize("check", [TransmitSnr(), EqualRows(), TrapRows()])
def test_checks_of_the_first_layer_are_not_defined_for_short_rows_or_without_a_layer(check: Check) -> None:
    short = with_kernels(torch.ones(4, 1, 2, 2))  # equal, but of 4 numbers: rows so short are alike by chance
    assert math.isnan(check.measure(handed(short)))
    assert math.isnan(check.measure(handed(nn.Sequential(nn.Flatten()))))
    assert not check.trips(math.nan)


def test_the_first_layer_is_found_by_its_kind_and_not_by_its_name() -> None:
    inner = nn.Sequential(OrderedDict(head=nn.Conv2d(1, 4, 3), last=nn.Flatten()))
    model = nn.Sequential(OrderedDict(fc=nn.Identity(), classifier=inner, stem=nn.Linear(16, 3)))
    with torch.no_grad():
        inner.head.weight.fill_(1.0)
    assert EqualRows().measure(handed(model)) == 1


# ---------------------------------------------------------------- the last layer


def test_head_rows_counts_rows_that_are_zero_constant_or_of_one_entry() -> None:
    rows = noise(3, 8)
    assert HeadRows().measure(handed(with_head(rows))) == 0
    for row in (torch.zeros(8), torch.full((8,), 0.5), torch.eye(8)[3] * 1e5):
        emptied = rows.clone()
        emptied[1] = row
        assert HeadRows().measure(handed(with_head(emptied))) == pytest.approx(1 / 3)
    assert HeadRows().measure(handed(with_head(torch.zeros(3, 8)))) == 1


def test_exchanged_rows_are_seen_beside_the_head_of_the_round_before_and_with_published_weights_in_the_first_round() -> None:
    before, now = with_head(noise(3, 8)), with_head(noise(3, 8)[[2, 1, 0]])
    assert HeadRows().measure(handed(now, agreed=before)) == 0  # in the first round nothing is there to compare with
    assert HeadRows(published=True).measure(handed(now, agreed=before)) == pytest.approx(2 / 3)
    assert HeadRows().measure(handed(now, agreed=before, earlier=[weights_of(before)])) == pytest.approx(2 / 3)
    assert HeadRows().measure(handed(now, agreed=before, earlier=[weights_of(before), weights_of(now)])) == 0  # the round before counts


def test_rows_that_a_training_has_moved_are_not_exchanged() -> None:
    before = with_head(noise(3, 8))
    now = with_head(noise(3, 8) + 0.3 * noise(3, 8, seed=5))
    assert HeadRows(published=True).measure(handed(now, agreed=before, earlier=[weights_of(before)])) == 0
    # Rows that training has moved, and the server has then exchanged, are still much closer to the other row.
    moved = with_head((noise(3, 8) + 0.1 * noise(3, 8, seed=5))[[1, 0, 2]])
    assert HeadRows().measure(handed(moved, earlier=[weights_of(before)])) == pytest.approx(2 / 3)


class BackToFront(nn.Module):
    """A network that holds its last layer first, under a name of a first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(8, 3)
        self.classifier = nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.stem(torch.sigmoid(self.classifier(x.flatten(1))))


def test_the_last_layer_is_found_by_what_it_computes_and_not_by_its_place() -> None:
    model = BackToFront()
    with torch.no_grad():
        model.stem.weight[0] = 0
    assert HeadRows().measure(handed(model)) == pytest.approx(1 / 3)
    assert Alive().measure(handed(model)) == 0


def test_head_rows_are_not_defined_without_a_linear_last_layer_or_with_a_single_feature() -> None:
    without = nn.Sequential(nn.Conv2d(1, 3, 4), nn.Flatten())
    assert math.isnan(HeadRows().measure(handed(without)))
    assert math.isnan(HeadRows().measure(handed(with_head(torch.ones(3, 1)))))  # every row is constant there


# ---------------------------------------------------------------- names, shapes, other clients


def test_new_layers_counts_tensors_that_are_added_missing_or_of_another_shape() -> None:
    agreed = with_head(noise(3, 8))
    assert NewLayers().measure(handed(deepcopy(agreed), agreed=agreed)) == 0
    other_values = with_head(noise(3, 8, seed=7))
    assert NewLayers().measure(handed(other_values, agreed=agreed)) == 0
    wider = with_head(noise(3, 9))  # both tensors of the body, and the weight of the head
    assert NewLayers().measure(handed(wider, agreed=agreed)) == 3
    added = deepcopy(agreed)
    added.add_module("more", nn.Linear(3, 3))
    assert NewLayers().measure(handed(added, agreed=agreed)) == 2
    assert NewLayers().measure(handed(agreed, agreed=added)) == 2
    buffered = deepcopy(agreed)
    buffered.register_buffer("table", torch.zeros(2))
    assert NewLayers().measure(handed(buffered, agreed=agreed)) == 1


def test_same_for_all_counts_the_clients_with_another_model_bit_by_bit() -> None:
    model = with_head(noise(3, 8))
    own = weights_of(model)
    copy = {name: value.detach().clone() for name, value in own.items()}
    near = {**copy, "head.bias": torch.nextafter(copy["head.bias"], torch.tensor(9.0))}
    assert math.isnan(SameForAll().measure(handed(model)))  # a client that is alone has nothing to compare with
    assert SameForAll().measure(handed(model, others=[own, copy])) == 0
    assert SameForAll().measure(handed(model, others=[copy, near, near])) == 2
    with torch.no_grad():
        model.head.bias.fill_(math.nan)  # a diverged model is the same model for all
    same = {**copy, "head.bias": torch.full((3,), math.nan)}
    assert SameForAll().measure(handed(model, others=[same])) == 0


# ---------------------------------------------------------------- gradients of single pictures


def softmax_on_pixels() -> nn.Module:
    """Return a linear layer of zeros: each picture's gradient has the norm ||x|| ||1/3 - y||, and the second factor is the same for all."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3, bias=False))
    with torch.no_grad():
        model[1].weight.zero_()
    return model


def test_d_snr_is_one_pictures_norm_over_the_sum_of_the_others() -> None:
    sizes = torch.tensor([0.9, 0.2, 0.1])
    x = sizes.view(3, 1, 1, 1) * torch.ones(3, 1, 4, 4)
    assert DSnr().measure(handed(softmax_on_pixels(), x)) == pytest.approx(3.0, rel=1e-5)
    assert DSnr().trips(3.0)
    assert DSnr().measure(handed(softmax_on_pixels(), torch.ones(4, 1, 4, 4))) == pytest.approx(1 / 3, rel=1e-5)


def test_d_snr_takes_the_layer_in_which_one_picture_outweighs_the_others_most() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))
    with torch.no_grad():  # a black picture has no part in the gradient of the first weight, and one in that of the second
        model[1].weight.abs_()
        model[1].bias.fill_(1.0)
    x = torch.cat([torch.full((1, 1, 4, 4), 0.5), torch.zeros(1, 1, 4, 4)])
    assert DSnr().measure(handed(model, x)) > 1e3


def test_checks_of_single_gradients_are_not_defined_where_pictures_have_none() -> None:
    model = with_head(noise(3, 8))
    assert math.isnan(DSnr().measure(handed(model, torch.rand(1, 1, 4, 4))))  # the sum over the other pictures is empty
    mixing = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3))
    for check in (DSnr(), Alive()):
        assert math.isnan(check.measure(handed(mixing)))
        assert not math.isnan(check.measure(handed(deepcopy(mixing).eval())))
    assert math.isnan(Alive().measure(handed(softmax_on_pixels())))  # there is no layer before the last one
    assert math.isnan(Alive().measure(handed(nn.Sequential(nn.Conv2d(1, 3, 4), nn.Flatten()))))


def test_alive_is_the_fraction_of_pictures_without_a_gradient_before_the_last_layer() -> None:
    model = with_head(noise(3, 8))
    x, y = torch.rand(4, 1, 4, 4, generator=RNG().manual_seed(2)), torch.tensor([0, 1, 2, 1])
    assert Alive().measure(handed(model, x, y)) == 0
    with torch.no_grad():  # certain of class 1: exp(-1000) is 0, so pictures of class 1 have no loss
        model.head.bias.copy_(torch.tensor([0.0, 1000.0, 0.0]))
    assert Alive().measure(handed(model, x, y)) == 0.5
    with torch.no_grad():  # a dead body: no unit passes anything on
        dead = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))
        dead[1].bias.fill_(-1e3)
    assert Alive().measure(handed(dead, x, y)) == 1
