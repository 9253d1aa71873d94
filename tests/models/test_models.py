"""The networks are those of the papers: size, first weights, first layer; each builds for every kind of picture."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from small_problems import CATALOG, IDS, LIGHT, light, observed, smooth
from torch import nn

from leakage.engine.core import Normalise, generator
from leakage.models import _layers
from leakage.spec.experiment import Part
from leakage.workers.adapter import plugin

TAKEN = [  # every model with every kind of picture that it takes
    pytest.param(side, channels, entry.id, id=f"{side}-{channels}-{entry.id}")
    for entry in CATALOG.models
    for side, channels in product((28, 32, 64), (1, 3))
    if side >= entry.smallest
]
NORMALISED = [entry.id for entry in CATALOG.models if any(field.name == "normalise" for field in entry.fields)]
CIFAR10 = ([0.4914672, 0.4822617, 0.4467701], [0.2470322, 0.2434851, 0.2615879])  # of the training pictures


def built(name: str, shape: tuple[int, int, int], classes: int = 10, **fields: bool | float | str) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return plugin("model", Part(id=name, fields=fields)).build(shape, classes)


def sizes(name: str, shape: tuple[int, int, int], classes: int = 10, **fields: bool | float | str) -> dict[str, torch.Size]:
    """The shape of every parameter, without memory for any of them."""
    with torch.device("meta"):
        return {key: value.shape for key, value in built(name, shape, classes, **fields).named_parameters()}


@pytest.mark.parametrize(
    ("name", "fields", "shape", "classes", "numbers"),
    [
        ("lenet", {}, (3, 32, 32), 10, 15_826),
        ("lenet", {}, (3, 32, 32), 100, 85_036),
        ("lenet", {}, (1, 28, 28), 10, 13_426),
        ("lenet", {"bias": False}, (3, 32, 32), 10, 15_826 - 3 * 12 - 10),
        ("lenet", {"bias": False}, (3, 32, 32), 1, 900 + 3600 + 3600 + 768),
        ("mnist_cnn", {}, (1, 28, 28), 10, 35_900),
        ("vgg16", {}, (3, 224, 224), 1000, 138_357_544),  # as torchvision says
        ("vgg16", {}, (3, 32, 32), 10, 138_357_544 - 990 * 4097),
        ("resnet18_imagenet", {}, (3, 224, 224), 1000, 11_689_512),  # as torchvision says
        ("resnet18_imagenet", {}, (1, 224, 224), 10, 11_689_512 - 990 * 513),
        ("convnet", {"width": 64}, (3, 32, 32), 10, 2_904_970),
        ("convnet", {"width": 64, "norm": "group"}, (3, 32, 32), 10, 2_904_970),
        ("convnet", {"width": 64, "norm": "none"}, (3, 32, 32), 10, 2_904_970 - 2 * 64 * (1 + 2 + 2 + 5 * 4)),
        ("cnn6", {}, (3, 32, 32), 1, 125_456),
        ("cnn6", {"second": 20}, (3, 32, 32), 1, 118_544),
        ("fcn3", {}, (1, 28, 28), 1, 884_100),
        ("rgap_net", {"net": "A"}, (3, 32, 32), 1, 192 + 3364),
        ("rgap_net", {"net": "B"}, (3, 32, 32), 1, 144 + 2523),
        ("rgap_net", {"net": "C"}, (3, 32, 32), 1, 144 + 2523 * 500 + 500),
        ("rgap_net", {"net": "D"}, (3, 32, 32), 1, 108 + 144 + 3136),
        ("rgap_net", {"net": "E"}, (3, 32, 32), 1, 300 + 256 + 2500),
        ("he_resnet", {}, (3, 32, 32), 10, 269_722),
        ("he_resnet", {}, (3, 32, 32), 100, 275_572),
        ("he_resnet", {"kind": "resnet32"}, (3, 32, 32), 10, 464_154),
        ("he_resnet", {"kind": "resnet32"}, (3, 32, 32), 100, 470_004),
        ("mlp", {"width": 1024, "depth": 2}, (3, 32, 32), 10, 3072 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10),
    ],
)
def test_a_model_has_as_many_numbers_as_published(
    name: str, fields: dict[str, bool | int | str], shape: tuple[int, int, int], classes: int, numbers: int
) -> None:
    assert sum(shape.numel() for shape in sizes(name, shape, classes, **fields).values()) == numbers


@pytest.mark.parametrize(
    ("kind", "width", "classes", "millions"),
    [
        ("resnet18", 16, 10, 0.70),
        ("resnet18", 64, 10, 11.17),
        ("resnet18", 128, 10, 44.66),
        ("resnet34", 64, 10, 21.28),
        ("resnet50", 64, 10, 23.52),
        ("resnet101", 16, 10, 2.68),
        ("resnet20-4", 64, 10, 4.33),
        ("resnet32-10", 160, 100, 46.4),
    ],
)
def test_a_resnet_has_as_many_million_numbers_as_published(kind: str, width: int, classes: int, millions: float) -> None:
    digits = 1 if millions > 46 else 2
    numbers = sum(shape.numel() for shape in sizes("resnet", (3, 32, 32), classes, kind=kind, width=width).values())
    assert round(numbers / 1e6, digits) == millions


@pytest.mark.parametrize("cut", [3, 8])
def test_a_cut_block_has_lost_its_skip_and_no_other_has(cut: int) -> None:
    whole, less = built("resnet", (3, 32, 32)), built("resnet", (3, 32, 32), cut=cut)
    lost = {name for name, _ in whole.named_parameters()} - {name for name, _ in less.named_parameters()}
    assert {name.split(".")[0] for name in lost} == ({"block3"} if cut == 3 else set())  # block 3 begins a stage: its skip has weights
    block = less.get_submodule(f"block{cut}")
    x = torch.randn(1, next(block.parameters()).shape[1], 8, 8)
    block.eval()
    torch.testing.assert_close(block(x), block.body(x).relu())
    other = less.get_submodule("block1").eval()
    x = torch.randn(1, 16, 8, 8)
    torch.testing.assert_close(other(x), (other.body(x) + x).relu())


@pytest.mark.parametrize("name", IDS["model"])
@pytest.mark.long
def test_every_model_trains_one_step_and_is_attacked_for_three(name: str) -> None:
    net = built(name, (3, 32, 32), **LIGHT.get(name, {})).train()
    x, y = smooth(4, 3, 32), torch.arange(4)
    before = [value.detach().clone() for value in net.parameters()]
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    torch.optim.SGD(net.parameters(), lr=1e-3).step()
    assert all(torch.isfinite(value).all() for value in net.parameters())
    assert any(not torch.equal(old, new) for old, new in zip(before, net.parameters(), strict=True))
    seen = observed(smooth(1, 3, 32), model=light(name))
    attack = plugin("attack", Part(id="inverting_gradients", fields={"steps": 3}))
    *steps, answer = attack.run(seen, generator(0, "attack"))
    assert [moment.step for moment in steps] == [1, 2, 3]
    assert answer.x.shape == (1, 3, 32, 32)
    assert torch.isfinite(answer.x).all()
    assert 0 <= float(answer.loss) <= 2


@pytest.mark.parametrize(("name", "shape"), [("lenet", (3, 32, 32)), ("mnist_cnn", (1, 28, 28))])
def test_all_weights_are_uniform_between_minus_and_plus_a_half(name: str, shape: tuple[int, int, int]) -> None:
    net = built(name, shape)
    for layer, value in net.named_parameters():
        assert float(value.detach().abs().max()) <= 0.5, layer
    every = torch.cat([value.detach().flatten() for value in net.parameters()])
    assert float(every.mean()) == pytest.approx(0, abs=0.01)  # 15826 numbers and more: the mean is known to 0.0023
    assert float(every.std()) == pytest.approx(12**-0.5, rel=0.02)
    assert [float(every.min()), float(every.max())] == pytest.approx([-0.5, 0.5], abs=0.001)


@pytest.mark.parametrize(("side", "channels", "name"), TAKEN)
@pytest.mark.long
def test_every_model_takes_every_size_and_colour_with_every_normalisation(side: int, channels: int, name: str) -> None:
    options = next((field.options for field in CATALOG.models.get(name).fields if field.name == "normalise"), ())
    x, fields = smooth(2, channels, side), LIGHT.get(name, {})
    nets = [built(name, (channels, side, side), 7, **fields, normalise=option) for option in options] or [built(name, x.shape[1:], 7)]
    outputs = [net.eval()(x) for net in nets]
    for output in outputs:
        assert output.shape == (2, 7)
        assert torch.isfinite(output).all()
    raw, *normalised = outputs
    assert not any(torch.equal(raw, other) for other in normalised)


@pytest.mark.parametrize("name", IDS["model"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("side", [224, 256])
def test_every_model_takes_photographs_of_224_and_of_256_pixels(name: str, channels: int, side: int) -> None:
    with torch.device("meta"):
        assert built(name, (channels, side, side)).eval()(torch.empty(2, channels, side, side)).shape == (2, 10)


@pytest.mark.parametrize("name", IDS["model"])
@pytest.mark.long
def test_the_same_seed_builds_the_same_weights_and_leaves_the_global_generator_alone(name: str) -> None:
    x, state = smooth(channels=3, side=32), torch.get_rng_state()
    first, again, other = (observed(x, model=light(name), seed=seed).received.weights for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(first[layer], again[layer]) for layer in first)
    assert not all(torch.equal(first[layer], other[layer]) for layer in first)


@pytest.mark.parametrize("name", NORMALISED)
def test_the_first_layer_subtracts_the_mean_and_divides_by_the_deviation_per_channel(name: str) -> None:
    x = smooth(2, 3, 28)
    model = built(name, (3, 28, 28), **LIGHT.get(name, {}), normalise="cifar10")
    first = next(iter(model.children()))
    assert isinstance(first, Normalise)
    mean, std = (np.array(values, np.float32).reshape(1, 3, 1, 1) for values in CIFAR10)
    np.testing.assert_allclose(first(x).numpy(), (x.numpy() - mean) / std, rtol=1e-6, atol=1e-6)  # float32


def test_an_attacker_reads_mean_and_deviation_from_the_model() -> None:
    x = smooth(2, 3, 28)
    mean, std = observed(x, model=Part(id="lenet", fields={"normalise": "cifar10"})).scale
    assert (mean.shape, std.shape) == ((1, 3, 1, 1), (1, 3, 1, 1))
    assert [mean.flatten().tolist(), std.flatten().tolist()] == [pytest.approx(values, rel=1e-6) for values in CIFAR10]
    mean, std = observed(x, model=Part(id="lenet")).scale
    assert (mean.flatten().tolist(), std.flatten().tolist()) == ([0, 0, 0], [1, 1, 1])


def test_constants_of_colour_pictures_are_averaged_for_grey_ones_and_those_of_grey_ones_repeated() -> None:
    mean, _ = observed(smooth(1, 1, 28), model=Part(id="lenet", fields={"normalise": "cifar10"})).scale
    assert mean.flatten().tolist() == pytest.approx([sum(CIFAR10[0]) / 3], rel=1e-6)
    mean, std = observed(smooth(1, 3, 28), model=Part(id="lenet", fields={"normalise": "mnist"})).scale
    assert mean.flatten().tolist() == pytest.approx([0.1306638] * 3, rel=1e-6)
    assert std.flatten().tolist() == pytest.approx([0.3081078] * 3, rel=1e-6)


def torchs(convolutions: list[nn.Conv2d], linear: nn.Linear) -> list[torch.Tensor]:
    """The state of a plain network of torch's own layers: each convolution, then its BatchNorm."""
    state = [(layer.state_dict(), nn.BatchNorm2d(layer.out_channels).state_dict()) for layer in convolutions]
    return [value for pair in state for part in pair for value in part.values()] + list(linear.state_dict().values())


def test_a_default_convnet_has_the_names_and_the_first_weights_that_stored_trainings_have() -> None:
    net = built("convnet", (3, 32, 32), normalise="none")
    torch.manual_seed(0)
    widths = (3, 16, 32, 32, 64, 64, 64, 64, 64)
    convolutions = [nn.Conv2d(before, after, 3, padding=1) for before, after in pairwise(widths)]
    plain = torchs(convolutions, nn.Linear(64 * 9, 10))
    parts = ["weight", "bias", *(f"norm.{part}" for part in nn.BatchNorm2d(1).state_dict())]
    state = net.state_dict()
    assert list(state) == [f"conv{number}.{part}" for number in range(8) for part in parts] + ["linear.weight", "linear.bias"]
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(state.values(), plain, strict=True))


def test_a_default_lenet_has_the_names_and_the_first_weights_that_it_always_had() -> None:
    net = built("lenet", (3, 32, 32))
    torch.manual_seed(0)
    layers = {f"conv{n}": nn.Conv2d(before, 12, 5) for n, before in enumerate((3, 12, 12), 1)} | {"linear": nn.Linear(768, 10)}
    plain = {f"{name}.{part}": value for name, layer in layers.items() for part, value in layer.named_parameters()}
    for value in plain.values():
        nn.init.uniform_(value, -0.5, 0.5)
    assert list(net.state_dict()) == list(plain)
    assert all(torch.equal(value, plain[name]) for name, value in net.state_dict().items())


@pytest.mark.parametrize(("name", "blocks"), [("resnet", 8), ("he_resnet", 9)])
def test_a_residual_network_keeps_batchnorm_under_the_name_norm(name: str, blocks: int) -> None:
    names = [key for key in built(name, (3, 32, 32)).state_dict() if key.endswith("running_mean")]
    skips = sum(".skip." in key for key in names)
    assert "stem.0.norm.running_mean" in names
    assert all(key.endswith(".norm.running_mean") for key in names)
    assert len(names) == 1 + 2 * blocks + skips
    assert skips == (3 if name == "resnet" else 0)


def test_lenet_star_is_bias_free_with_leaky_relu_and_the_weights_of_torch() -> None:
    (preset,) = CATALOG.models.get("lenet").presets.values()
    net = built("lenet", (3, 32, 32), **preset)
    assert [name for name, _ in net.named_parameters()] == ["conv1.weight", "conv2.weight", "conv3.weight", "linear.weight"]
    assert [layer.negative_slope for layer in net if isinstance(layer, nn.LeakyReLU)] == [0.2] * 3
    for inputs, value in zip((75, 300, 300, 768), net.parameters(), strict=True):
        largest = float(value.detach().abs().max())
        assert 0.95 * inputs**-0.5 < largest <= inputs**-0.5 * (1 + 1e-6)  # uniform up to 1 / sqrt(inputs), hundreds of draws


@pytest.mark.parametrize(("name", "inputs"), [("lenet", (75, 300, 300, 768)), ("convnet", (27, 144))])
def test_kaiming_normal_weights_have_a_variance_of_two_over_the_inputs_and_no_biases(name: str, inputs: tuple[int, ...]) -> None:
    net = built(name, (3, 32, 32), initialisation="kaiming_normal")
    layers = [layer for layer in net if isinstance(layer, nn.Conv2d | nn.Linear)]
    for layer, count in zip(layers, inputs, strict=False):
        assert float(layer.weight.detach().std()) == pytest.approx((2 / count) ** 0.5, rel=0.15)  # 432 weights and more
        assert not layer.bias.detach().any()


@pytest.mark.parametrize(("channels", "groups"), [(256, 32), (128, 32), (64, 16), (16, 4), (12, 2), (8, 2), (4, 1), (5, 1), (160, 32)])
def test_groups_are_at_most_32_and_hold_at_least_four_channels(channels: int, groups: int) -> None:
    assert _layers.groups_for(channels) == groups


@pytest.mark.parametrize("name", [entry.id for entry in CATALOG.models if any(field.name == "norm" for field in entry.fields)])
def test_with_groupnorm_or_none_a_picture_is_alone_in_its_batch_and_with_batchnorm_it_is_not(name: str) -> None:
    x = smooth(3, 3, 64)
    for norm, alone in {"batch": False, "group": True, "none": True}.items():
        net = built(name, (3, 64, 64), norm=norm).train()
        kinds = {type(layer) for layer in net.modules()} & {nn.BatchNorm2d, nn.GroupNorm}
        assert kinds == {"batch": {nn.BatchNorm2d}, "group": {nn.GroupNorm}, "none": set()}[norm]
        assert torch.allclose(net(x)[:2], net(x[:2]), rtol=1e-4, atol=1e-5) == alone  # float32, other orders of summation


@pytest.mark.parametrize("name", [entry.id for entry in CATALOG.models if any(field.name == "padding" for field in entry.fields)])
def test_the_padding_reaches_every_convolution_with_an_edge(name: str) -> None:
    for padding in ("zeros", "circular"):
        edges = [
            layer for layer in built(name, (3, 32, 32), padding=padding).modules() if isinstance(layer, nn.Conv2d) and any(layer.padding)
        ]
        assert len(edges) >= 8
        assert {layer.padding_mode for layer in edges} == {padding}


@pytest.mark.parametrize(("padding", "same"), [("circular", True), ("zeros", False)])
def test_a_picture_moved_by_eight_pixels_has_the_same_gradient_if_the_padding_is_circular(padding: str, same: bool) -> None:
    """Three stages of ResNet18 halve the picture, and a mean over all places comes last: shifts by 2^3 pixels commute with the rest."""
    net, x = built("resnet", (3, 32, 32), padding=padding, width=4).double().eval(), torch.rand(1, 3, 32, 32).double()
    gradients = []
    for moved in (x, x.roll((8, -16), (2, 3))):
        loss = nn.functional.cross_entropy(net(moved), torch.tensor([3]))
        gradients.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(net.parameters()))]))
    apart = float((gradients[0] - gradients[1]).norm() / gradients[0].norm())
    assert apart < 1e-12 if same else apart > 0.01


def test_vgg16_has_torchvisions_layers_and_first_weights() -> None:
    import torchvision  # takes seconds, so not while tests are only listed

    with torch.device("meta"):
        theirs = {f"net.{name}": value.shape for name, value in torchvision.models.vgg16(num_classes=10).named_parameters()}
    assert sizes("vgg16", (3, 32, 32)) == theirs
    net = built("vgg16", (3, 32, 32), units=64).get_submodule("net")
    for layer in (*net.features, *net.classifier):
        if isinstance(layer, nn.Conv2d | nn.Linear):
            wanted = (2 / (9 * layer.out_channels)) ** 0.5 if isinstance(layer, nn.Conv2d) else 0.01
            assert float(layer.weight.detach().std()) == pytest.approx(wanted, rel=0.1)  # 640 weights and more
            assert not layer.bias.detach().any()


def test_vgg16_drops_nothing_out() -> None:
    x = smooth(2, 3, 32)
    seen = observed(x, model=light("vgg16"))
    assert any(isinstance(layer, nn.Dropout) for layer in seen.model.modules())
    assert torch.equal(seen.model(x), seen.model(x))


@pytest.mark.parametrize("name", ["vgg16", "resnet18_imagenet"])
def test_torchvisions_networks_see_a_grey_picture_as_a_colour_picture_of_three_equal_channels(name: str) -> None:
    x, fields = smooth(2, 1, 32), {**LIGHT.get(name, {}), "normalise": "none"}
    grey, colour = (built(name, (channels, 32, 32), **fields).eval() for channels in (1, 3))
    torch.testing.assert_close(grey(x), colour(x.repeat(1, 3, 1, 1)))


def twice_differentiated(layer: nn.Module) -> list[torch.Tensor]:
    """The output on noise, and first and second derivatives of a function of it, by input and parameters (float64)."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 10, 11, dtype=torch.float64, requires_grad=True)
    leaves = [x, *layer.parameters()]
    out = layer(x)
    first = torch.autograd.grad(out.sin().sum(), leaves, create_graph=True)
    return [out, *first, *torch.autograd.grad(sum(gradient.cos().sum() for gradient in first), leaves)]


def random_norm() -> nn.BatchNorm2d:
    """BatchNorm of 4 channels with statistics and factors that do something."""
    norm = nn.BatchNorm2d(4).double()
    for number, values in enumerate((norm.weight, norm.bias, norm.running_mean, norm.running_var), 1):
        values.data = torch.arange(1.0, 5.0, dtype=torch.float64) * number
    return norm


@pytest.mark.pairwise
@pytest.mark.parametrize("small", [0, 2**30])
@pytest.mark.parametrize("mode", ["zeros", "circular"])
@pytest.mark.parametrize(("size", "step", "edge", "bias"), [(3, 1, 1, True), (5, 2, 2, True), (3, 2, 1, False), (4, 3, 0, True)])
def test_our_convolutions_are_those_of_torch_to_the_second_derivative(
    size: int, step: int, edge: int, bias: bool, mode: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_layers, "SMALL", small)
    plain = nn.Conv2d(3, 4, size, stride=step, padding=edge, padding_mode=mode, bias=bias).double()
    ours = _layers.Conv2d(3, 4, size, stride=step, padding=edge, padding_mode=mode, bias=bias).double()
    ours.load_state_dict(plain.state_dict())
    for mine, theirs in zip(twice_differentiated(ours), twice_differentiated(plain), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)
    norm = random_norm()
    both = _layers.ConvNorm(3, 4, size, stride=step, padding=edge, padding_mode=mode, bias=bias).double()
    both.load_state_dict({**plain.state_dict(), **{f"norm.{name}": value for name, value in norm.state_dict().items()}})
    for training in (False, True):
        pair = nn.Sequential(plain, norm).train(training)
        for mine, theirs in zip(twice_differentiated(both.train(training)), twice_differentiated(pair), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-8)
    for name, other in (("group", nn.GroupNorm(1, 4).double()), ("none", nn.Identity())):
        both = _layers.ConvNorm(3, 4, size, stride=step, padding=edge, padding_mode=mode, bias=bias, norm=name).double().eval()
        both.load_state_dict({**plain.state_dict(), **{f"norm.{key}": value for key, value in other.state_dict().items()}})
        for mine, theirs in zip(twice_differentiated(both), twice_differentiated(nn.Sequential(plain, other)), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("name", "features"), [("resnet", (2, 128, 4, 4)), ("he_resnet", (2, 64, 8, 8))])
def test_a_residual_network_halves_the_picture_at_every_stage_but_the_first(name: str, features: tuple[int, ...]) -> None:
    net = built(name, (3, 32, 32)).eval()
    seen = []
    net.get_submodule("pool").register_forward_pre_hook(lambda _, given: seen.append(given[0].shape))
    net(smooth(2, 3, 32))
    assert seen == [features]


def test_a_skip_of_he_takes_every_second_pixel_and_pads_with_zero_channels() -> None:
    block = built("he_resnet", (3, 32, 32)).get_submodule("block2-1").eval()
    for value in block.body[-1].parameters():
        value.data.zero_()  # the body answers 0: what comes out is the skip
    x = torch.rand(1, 16, 6, 6)
    out = block(x)
    torch.testing.assert_close(out[:, 8:24], x[:, :, ::2, ::2])
    assert not out[:, :8].any()
    assert not out[:, 24:].any()
