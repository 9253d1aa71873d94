"""CI-Net: the untrained generator has the published form, more weights than the model, and produces the picture of a gradient."""

from dataclasses import replace

import pytest
import torch
from small_problems import GRANTED, LABELS, TINY, altered, moments, observed, smooth
from torch import nn
from torch.nn.utils.parametrize import remove_parametrizations

from leakage.attacks._flat_weights import flat_weights, generate_with
from leakage.attacks._upsampling_generator import GeneratorSize, UpsamplingGenerator
from leakage.engine.core import Snapshot, generator
from leakage.engine.matching import total_variation
from leakage.engine.weights import drawing
from leakage.evaluation.metrics import psnr
from leakage.spec.experiment import Assumptions, Part

LENET = Part(id="lenet")
SIXTEEN = Part(id="ci_net", fields={"width": 16, "steps": 3})


def ci_net(**fields: float | bool | str) -> Part:
    return Part(id="ci_net", fields={**SIXTEEN.fields, **fields})


# ---------------------------------------------------------------- the generator


@pytest.mark.parametrize(
    ("side", "weights"),
    [
        # first 128 * 32 * 16 + 32, BatchNorm 64; four blocks of two times 32 * 32 * 9 + 32, BatchNorm 64; last 32 * 3 + 3
        (32, 65_568 + 64 + 4 * 2 * 9_312 + 99),
        # the next block halves its channels: 32 * 16 * 9 + 16, BatchNorm 32, 16 * 16 * 9 + 16, BatchNorm 32; last 16 * 3 + 3
        (64, 65_632 + 4 * 2 * 9_312 + 4_624 + 32 + 2_320 + 32 + 51),
        # two more, 16 to 8 and 8 to 8: 16 * 8 * 9 + 8, 3 times 8 * 8 * 9 + 8, BatchNorm 16 each; last 8 * 3 + 3
        (256, 65_632 + 4 * 2 * 9_312 + 7_008 + 1_160 + 3 * 584 + 4 * 16 + 27),
    ],
)
def test_the_generator_has_as_many_weights_as_its_layers_by_hand(side: int, weights: int) -> None:
    size = GeneratorSize(128, 32, (3, side, side))
    assert size.weights == weights == sum(weight.numel() for weight in UpsamplingGenerator(size).parameters())


@pytest.mark.parametrize(("height", "width", "blocks"), [(4, 4, 1), (8, 8, 2), (28, 28, 4), (32, 32, 4), (33, 20, 5)])
def test_it_generates_the_next_power_of_two_and_cuts_out_the_middle(height: int, width: int, blocks: int) -> None:
    network = UpsamplingGenerator(GeneratorSize(4, 4, (2, height, width)))
    v = torch.tensor([[1.0, 0, 0, 0], [0, 1.0, 0, 0]])
    x = network(v)
    assert x.shape == (2, 2, height, width)
    assert len(network.blocks) == blocks
    assert 0 < float(x.detach().min()) < float(x.detach().max()) < 1
    assert float((x[0] - x[1]).detach().abs().max()) > 0.01  # each picture has numbers of its own
    side = 2 ** (blocks + 1)
    whole = UpsamplingGenerator(GeneratorSize(4, 4, (2, side, side)))
    whole.load_state_dict(network.state_dict())
    for one in (whole, network):
        one.eval()  # else each call goes on looking for the spectral norms
    top, left = (side - height) // 2, (side - width) // 2
    assert torch.equal(network(v), whole(v)[..., top : top + height, left : left + width])


def test_a_block_repeats_every_pixel_twice_across_and_down() -> None:
    network = UpsamplingGenerator(GeneratorSize(1, 1, (1, 8, 8)))
    entered: list[torch.Tensor] = []
    network.blocks[0].register_forward_hook(lambda _, given, out: entered.append(out))
    network.blocks[1].register_forward_pre_hook(lambda _, given: entered.append(given[0]))
    network(torch.ones(1, 1))
    small, large = entered
    assert torch.equal(large, small.repeat_interleave(2, 2).repeat_interleave(2, 3))


def test_a_weight_is_divided_by_its_spectral_norm() -> None:
    network = UpsamplingGenerator(GeneratorSize(4, 4, (1, 8, 8)))
    for block in network.blocks:
        for convolution in (block[0], block[3]):
            with torch.no_grad():
                convolution.parametrizations.weight.original.fill_(-0.5)  # 4 x 36 equal entries: the norm is 0.5 * sqrt(144) = 6
                network(torch.ones(3, 4))
                convolution.eval()
                torch.testing.assert_close(convolution.weight, torch.full((4, 4, 3, 3), -1 / 12))


def test_that_division_changes_no_picture_as_every_convolution_is_normalised_afterwards() -> None:
    network = UpsamplingGenerator(GeneratorSize(4, 4, (1, 8, 8)))
    v = torch.randn((3, 4), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        divided = network(v)
        for block in network.blocks:
            for convolution in (block[0], block[3]):
                remove_parametrizations(convolution, "weight", leave_parametrized=False)
                convolution.weight.mul_(3)
        torch.testing.assert_close(network(v), divided, atol=1e-2, rtol=0)  # BatchNorm adds 1e-5 to the variance


def test_channels_are_doubled_until_there_are_more_weights_than_the_models() -> None:
    size = GeneratorSize(128, 4, (3, 32, 32))
    assert [replace(size, channels=channels).weights for channels in (4, 8, 16)] == [9_467, 21_235, 51_683]
    for weights, channels in ((9_466, 4), (9_467, 8), (15_826, 8), (21_235, 16)):  # LeNet has 15,826
        assert size.beyond(weights, batch=1) == replace(size, channels=channels)


def test_doubling_ends_before_a_gigabyte() -> None:
    # 512 channels: 19,938,307 weights, 1,360 * 512 numbers put out by the blocks: 0.56 + 0.02 B GB; 1,024: over 2 GB; 256: 0.15 + 0.01 B GB
    size = GeneratorSize(128, 512, (3, 32, 32))
    assert (size.weights, size.needed(1)) == (19_938_307, 4 * (7 * 19_938_307 + 8 * 1_360 * 512))
    for least, batch, most in ((32, 1, 512), (32, 64, 256), (600, 1, 600)):  # what was asked for is not cut down
        assert replace(size, channels=least).beyond(10**9, batch=batch).channels == most


def test_it_generates_with_other_weights_than_its_own_which_stay() -> None:
    network = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
    held = flat_weights(network)
    assert torch.equal(held[0], torch.cat([network[0].weight.detach()[0], network[0].bias.detach()]))
    other = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    v = torch.tensor([[1.0, -1.0]])
    generated = generate_with(network, other, v)  # sigmoid(1 - 2 + 3)
    torch.testing.assert_close(generated.detach(), torch.tensor([[2.0]]).sigmoid())
    generated.backward()
    gradient = float(generated.detach() * (1 - generated.detach()))
    torch.testing.assert_close(other.grad, gradient * torch.tensor([[1.0, -1.0, 1.0]]))
    assert torch.equal(flat_weights(network), held)


# ---------------------------------------------------------------- the search


def test_the_page_is_told_the_sizes_and_that_a_generator_is_too_small() -> None:
    seen = observed(smooth(channels=3, side=32), model=LENET)
    for fields, weights in (({}, 51_683), ({"width": 4}, 21_235), ({"width": 4, "grow": False}, 9_467)):
        first, *rest = moments(ci_net(steps=1, **fields), seen)
        assert (first.note["generator's weights"], first.note["model's weights"]) == (weights, 15_826)
        said = "The generator has 9,467 weights and the model 15,826. The paper wants more of them than the model has: "
        assert first.note.get("event", "").startswith(said if weights == 9_467 else "")
        assert ("event" in first.note) == (weights == 9_467)
        assert all("event" not in moment.note for moment in rest)


def test_labels_are_read_unless_they_are_granted() -> None:
    x = smooth()
    for assume, rule in ((GRANTED, "granted"), (Assumptions(), "iDLG: the most negative row")):
        run = moments(SIXTEEN, observed(x, assume=assume))
        assert {moment.note["label rule"] for moment in run} == {rule}
        assert run[0].y.tolist() == LABELS[:1].tolist()


def test_weights_and_numbers_are_drawn_by_the_attacks_own_generator() -> None:
    for seed in (1, 2):
        rng = generator(seed, "attack")
        with drawing(int(torch.randint(2**31, (), generator=rng)), "generator"):
            network = UpsamplingGenerator(GeneratorSize(128, 16, (1, 8, 8)))
        first = network(torch.randn((2, 128), generator=rng)).detach()
        torch.testing.assert_close(moments(SIXTEEN, observed(smooth(2)), seed=seed)[0].x, first)


def test_its_numbers_stay_and_its_weights_move() -> None:
    """Steps of a millionth move a picture hardly; another latent code would give another one."""
    still, other = (moments(ci_net(step_size=0.000001), observed(smooth()), seed=seed) for seed in (1, 2))
    assert 0 < float((still[0].x - still[2].x).abs().max()) < 1e-3
    assert float((still[0].x - other[0].x).abs().max()) > 0.05
    assert torch.equal(still[0].x, moments(SIXTEEN, observed(smooth()))[0].x)


def test_the_step_size_falls_after_three_eighths() -> None:
    steps, constant = (moments(ci_net(steps=8, schedule=schedule), observed(smooth())) for schedule in ("steps", "constant"))
    same = [torch.equal(one.x, other.x) for one, other in zip(steps, constant, strict=True)]
    assert same == [True] * 3 + [False] * 6  # the third step is the first small one: 8 / 2.667 is just below 3, and rounded down


def test_the_first_step_of_adam_is_by_signs_in_any_case() -> None:
    signed, plain = (moments(ci_net(signed=signed, step_size=0.00001, schedule="constant"), observed(smooth())) for signed in (True, False))
    moved = float((signed[1].x - signed[0].x).abs().max())
    assert float((signed[1].x - plain[1].x).abs().max()) < 0.1 * moved  # Adam divides by the size of its only gradient
    assert float((signed[2].x - plain[2].x).abs().max()) > 0  # then by that of two


def test_smoothness_is_preferred_as_much_as_one_wants() -> None:
    seen = observed(smooth())
    free, calm = (moments(ci_net(steps=60, tv_weight=weight), seen)[-1] for weight in (0.0, 10.0))
    assert float(total_variation(calm.x[None])) < 0.2 * float(total_variation(free.x[None]))


def generated(**settings: object) -> tuple[torch.Tensor, Snapshot]:
    """Return the generator's first picture, and the Snapshot of an attack on a client with exactly this picture."""
    first = moments(SIXTEEN, observed(smooth(), assume=GRANTED))[0].x
    return first, moments(SIXTEEN, observed(first, **settings))[0]


def test_who_knows_a_protection_imitates_it_and_who_does_not_is_misled() -> None:
    pruned = {"defenses": (Part(id="pruning", fields={"fraction": 0.9}),)}
    first, knowing = generated(**pruned, assume=Assumptions(labels=True))
    _, naive = generated(**pruned, assume=Assumptions(labels=True, adaptive=False))
    assert torch.equal(knowing.x, first)
    assert float(knowing.loss) < 1e-6
    assert float(naive.loss) > 0.01


@pytest.mark.parametrize("distance", ["cosine", "squared"])
def test_entries_that_are_not_trusted_do_not_count(distance: str) -> None:
    first = moments(SIXTEEN, observed(smooth(), assume=GRANTED))[0].x
    seen = observed(first, assume=GRANTED)
    name, broken = next((name, g.clone()) for name, g in seen.received.update.items() if g.dim() == 2)
    broken[0] += 1
    trusted = torch.ones_like(broken)
    trusted[0] = 0
    spoiled = altered(seen, update=seen.received.update | {name: broken})
    losses = [float(moments(ci_net(distance=distance), one)[0].loss) for one in (spoiled, altered(spoiled, entry_weights={name: trusted}))]
    assert losses[0] > 0.01
    assert losses[1] < 1e-6


def test_the_very_gradient_stops_nothing() -> None:
    first = moments(SIXTEEN, observed(smooth(), assume=GRANTED))[0].x
    run = moments(ci_net(distance="squared"), observed(first, assume=GRANTED))
    assert float(run[0].loss) < 1e-12
    assert all(bool(torch.isfinite(moment.x).all()) for moment in run)


@pytest.mark.long
def test_a_picture_comes_back_from_lenet() -> None:
    x = smooth(channels=3, side=32)
    run = moments(ci_net(steps=300), observed(x, model=LENET))
    flat = x.mean((2, 3), keepdim=True).expand_as(x)  # the best that a plain colour can be
    assert float(psnr(run[-1].x, x)) > float(psnr(flat, x)) + 6  # a quarter of its squared error
    assert float(run[-1].loss) < 0.01 * float(run[0].loss)


def test_pictures_of_a_batch_come_back_each_by_itself() -> None:
    x = smooth(3)
    run = moments(ci_net(steps=200), observed(x, model=TINY, assume=GRANTED))
    flat = x.mean((2, 3), keepdim=True).expand_as(x)
    assert bool((psnr(run[-1].x, x) > psnr(flat, x) + 6).all())
