"""GRNN: the untrained generator has the published size and form, and produces the picture and its label."""

import pytest
import torch
from small_problems import GRANTED, LABELS, TINY, moments, observed, smooth

from leakage.attacks._gated_generator import GatedBlock, GatedGenerator
from leakage.attacks.grnn import squared_variation
from leakage.evaluation.metrics import psnr
from leakage.spec.experiment import Part


def test_the_generator_for_lenet_has_as_many_weights_as_published() -> None:
    # first 128 * 256 * 16 + 256; blocks 128 * 128 * 9 + 256, 64 * 64 * 9 + 128, 32 * 6 * 9 + 12, the latter of BatchNorm; label 1280 + 10
    network = GatedGenerator(128, (3, 32, 32), 10)
    assert sum(weight.numel() for weight in network.parameters()) == 524_544 + 147_712 + 36_992 + 1_740 + 1_290 == 712_278


@pytest.mark.parametrize(("height", "width", "doublings"), [(8, 8, 0), (28, 28, 2), (32, 32, 2), (33, 20, 3)])
def test_it_generates_the_next_power_of_two_and_cuts_out_the_middle(height: int, width: int, doublings: int) -> None:
    network = GatedGenerator(4, (1, height, width), 3)
    x, y = network(torch.ones(2, 4))
    assert (x.shape, y.shape) == ((2, 1, height, width), (2, 3))
    assert len(network.blocks) == doublings + 1
    assert 0 < float(x.detach().min()) < float(x.detach().max()) < 1
    whole = GatedGenerator(4, (1, 2 ** (doublings + 3), 2 ** (doublings + 3)), 3)
    whole.load_state_dict(network.state_dict())
    full, side = whole(torch.ones(2, 4))[0], 2 ** (doublings + 3)
    top, left = (side - height) // 2, (side - width) // 2
    assert torch.equal(x, full[..., top : top + height, left : left + width])


def test_a_block_gates_the_first_half_of_its_channels_by_the_second() -> None:
    block = GatedBlock(1, 1)
    with torch.no_grad():
        block.conv.weight.zero_()
        block.conv.weight[:, 0, 1, 1] = torch.tensor([1.0, 0.0])  # the centre: the first channel repeats the input, the second is 0
    h = torch.tensor([[-1.0, 1.0], [1.0, -1.0]]).view(1, 1, 2, 2)  # mean 0 and variance 1: BatchNorm leaves it as it is
    expected = h.repeat_interleave(2, 2).repeat_interleave(2, 3) * 0.5  # times sigmoid(0)
    torch.testing.assert_close(block(h), expected, atol=1e-4, rtol=0)  # BatchNorm adds 1e-5 to the variance


def test_the_squared_variation_of_a_step_and_of_a_constant() -> None:
    x = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]).view(1, 1, 2, 3)
    assert float(squared_variation(x)) == 1  # across: 2 of 4 differences are 1, squared and halved; down: none; times 2
    assert float(squared_variation(torch.ones(2, 3, 4, 4))) == 0


@pytest.mark.long
def test_picture_and_label_are_generated_together() -> None:
    x = smooth()
    run = moments(Part(id="grnn", fields={"steps": 400}), observed(x))
    assert run[-1].y.argmax(1).tolist() == LABELS[:1].tolist()
    assert float(run[-1].y.max()) > 0.99
    assert float(psnr(run[-1].x, x)) >= 25 > float(psnr(run[0].x, x)) + 10
    assert run[0].note["label rule"] == "generated together with the picture"
    assert run[0].note["prior"] == "nothing: its generator has never seen a picture"


def test_the_picture_that_gives_the_very_gradient_stops_nothing() -> None:
    x = smooth()
    seen = observed(x, model=TINY, assume=GRANTED)
    exact = moments(Part(id="grnn", fields={"steps": 1, "step_size": 0.000001}), seen)[0].x
    run = moments(
        Part(id="grnn", fields={"steps": 3}), observed(exact, model=TINY, assume=GRANTED)
    )  # a distance of 0 has a root of no derivative
    assert float(run[0].loss) < 1e-12
    assert all(bool(torch.isfinite(moment.x).all()) for moment in run)
