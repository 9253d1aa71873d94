"""A model written as text: it is built as counted, equals the plug-in of the same name, and misfits are refused."""

import random
from collections.abc import Callable
from functools import partial
from math import prod
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import torch
from digits_data_set import write_digits
from page_visits import Open, asked, fine, press_run, words
from small_problems import CATALOG, precision, smooth, trained_norms
from torch import nn
from torch.nn import functional as F

from leakage.__main__ import main
from leakage.engine.chain import chain
from leakage.models.custom import Custom
from leakage.networks.grammar import LIMITS, MOST_NUMBERS, NetworkError, check_fit, parse, unroll
from leakage.networks.templates import TEMPLATES
from leakage.runs.notes import SPEEDS
from leakage.runs.service import Service
from leakage.spec.catalog import CatalogError, Field
from leakage.spec.experiment import Experiment, Part, SpecError
from leakage.spec.tasks import Training
from leakage.spec.threat_model import assumptions
from leakage.ui.common.markdown import escape
from leakage.ui.training.training_view import lab_link
from leakage.workers.adapter import observe, play, plugin, prepare

SHAPE = (3, 32, 32)
MENU = "conv 5@12 /2 p2 - conv 5@12 /2 p2"  # the default


def built(name: str, shape: tuple[int, int, int] = SHAPE, classes: int = 10, **fields: object) -> nn.Module:
    return plugin("model", Part(id=name, fields=fields)).build(shape, classes).eval()


def custom(text: str, **settings: object) -> Experiment:
    return Experiment(model=Part(id="custom", fields={"network": text}), **settings)


def refused(experiment: Experiment | Training) -> str:
    with pytest.raises(SpecError) as caught:
        experiment.resolve(CATALOG)
    return str(caught.value)


# ---------------------------------------------------------------- what is built


LENET_STAR = {"activation": "leaky_relu", "bias": False, "initialisation": "default"}
NONSMOOTH = {"activation": "relu"}
TWINS = [  # template -> the plug-in with the same network, the fields of both, and what else follows in the plug-in
    ("CNN6", "cnn6", {}, {}, nn.Identity),
    ("CNN6-d", "cnn6", {"second": 20}, {}, nn.Identity),
    ("LeNet (Zhu)", "lenet", LENET_STAR, {}, nn.Identity),
    ("LeNet (Zhu)", "lenet", {}, {"activation": "sigmoid", "bias": True}, nn.Identity),
    *((f"R-GAP's net {net}", "rgap_net", {"net": net}, {}, nn.Identity) for net in "ABCDE"),
    ("FCN3", "fcn3", {}, {}, partial(nn.LeakyReLU, 0.2)),  # it has an activation behind its outputs as well
    ("ResNet18, width 16", "resnet", {"norm": "none", "normalise": "none"}, NONSMOOTH, nn.Identity),
    ("ResNet18, width 16, skip 3 cut", "resnet", {"norm": "none", "normalise": "none", "cut": 3}, NONSMOOTH, nn.Identity),
    (
        "ResNet101, width 16",
        "resnet",
        {"norm": "none", "normalise": "cifar10", "kind": "resnet101"},
        {**NONSMOOTH, "normalise": "cifar10"},
        nn.Identity,
    ),
]


@pytest.mark.parametrize(("name", "twin", "theirs", "ours", "last"), TWINS, ids=[f"{twin[0]}-{twin[1]}" for twin in TWINS])
def test_a_template_is_the_plugin_of_its_name(name: str, twin: str, theirs: dict, ours: dict, last: Callable[[], nn.Module]) -> None:
    with precision(torch.float64):
        other, mine = built(twin, **theirs), built("custom", network=TEMPLATES[name], **ours)
        given = dict(other.named_parameters())
        if twin == "resnet":  # the only bias of a network without biases is that of its outputs
            nn.init.zeros_(given.pop("linear.bias"))
        assert [value.shape for value in mine.parameters()] == [value.shape for value in given.values()]
        with torch.no_grad():
            for value, copied in zip(mine.parameters(), given.values(), strict=True):
                value.copy_(copied)
        x = smooth(2, 3, 32)
        torch.testing.assert_close(last()(mine(x)), other(x), rtol=1e-10, atol=1e-12)


def test_layers_are_called_as_the_counts_call_them() -> None:
    net = built("custom", network="conv 3@4 p1 - max 2 - block 6 /2 - mean 2 - linear 7 - linear 5", normalise="cifar10")
    names = "normalise conv1 act1 max2 block3 mean4 flatten linear5 act5 linear6 act6 linear"
    assert [name for name, _ in net.named_children()] == names.split()
    assert list(built("custom", network="").state_dict()) == ["linear.weight"]


def invented(seed: int) -> str:
    """A random small network; it may not fit."""
    draw = random.Random(seed)
    kinds = {
        "conv": lambda: f"conv {draw.randint(1, 5)}@{draw.randint(1, 6)} /{draw.randint(1, 3)} p{draw.randint(0, 2)}",
        "block": lambda: f"{draw.choice(('block', 'deep'))} {draw.randint(1, 6)} /{draw.randint(1, 2)}{draw.choice(('', ' cut'))}",
        "pool": lambda: draw.choice(("mean", "mean 1", "mean 2", "mean 3", "max 1", "max 2")),
    }
    body = [kinds[draw.choice(list(kinds))]() for _ in range(draw.randint(0, 5))]
    return "\n".join([*body, *(f"linear {draw.randint(1, 9)}" for _ in range(draw.randint(0, 2)))])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(3, 12, 12), (1, 13, 11)])
@pytest.mark.long
def test_a_random_network_has_the_layers_shapes_and_weights_that_are_counted(shape: tuple[int, int, int], bias: bool) -> None:
    fitting, refusals = 0, 0
    for seed in range(120):
        text = invented(seed)
        try:
            maps = unroll(parse(text), shape, 4)
        except NetworkError:
            refusals += 1
            with pytest.raises(NetworkError):
                built("custom", shape, 4, network=text)
            continue
        fitting += 1
        net = built("custom", shape, 4, network=text, bias=bias)
        weights = [value.numel() for name, value in net.named_parameters() if name.endswith("weight") and ".skip." not in name]
        shortcuts = [value.numel() for name, value in net.named_parameters() if name.endswith("skip.weight")]
        biases = sum(value.numel() for name, value in net.named_parameters() if name.endswith("bias"))
        assert weights == [one.weights for one in maps if one.weights], text
        assert shortcuts == [one.shortcut for one in maps if one.shortcut], text
        assert biases == bias * sum(one.z[0] * (1 + bool(one.shortcut)) for one in maps if one.weights), text
        x = torch.rand(2, *shape)
        for name, layer in net.named_children():
            x = layer(x)
            of_step = [one for one in maps if one.name.split(".")[0] == name]
            if of_step:
                assert x[0].numel() == prod(of_step[-1].z), (text, name)
        assert x.shape == (2, 4)
    assert fitting > 60
    assert refusals > 5


@pytest.mark.parametrize("text", ["conv 3@4 /2 - max 2 - linear 5", "block 4 /2 - mean", "deep 2 - mean 2", "mean - conv 1@4"])
def test_several_guesses_at_once_are_replayed_as_each_alone(text: str) -> None:
    x, y = smooth(1, 3, 16), torch.tensor([3])
    seen = observe(custom(text), x, y)
    guesses = torch.stack([smooth(1, 3, 16, seed=seed) for seed in (1, 2, 3)])
    together = seen.replay.several(guesses, y)
    for number, guess in enumerate(guesses):
        for name, alone in seen.replay.single(guess, y).items():
            torch.testing.assert_close(together[name][number], alone, rtol=1e-4, atol=1e-7)  # float32, other orders of summation


# ---------------------------------------------------------------- R-GAP


@pytest.mark.parametrize("name", ["CNN6", "LeNet (Zhu)", "FCN3", "R-GAP's net C"])
def test_a_plain_chain_has_the_layers_that_are_counted(name: str) -> None:
    layers = chain(built("custom", network=TEMPLATES[name]), SHAPE).layers
    counted = unroll(parse(TEMPLATES[name]), SHAPE, 10)
    entering = [one.x if len(one.z) == 3 else (prod(one.x),) for one in counted]  # a list of numbers enters a linear layer
    assert [(one.x, one.z) for one in layers] == list(zip(entering, [one.z for one in counted], strict=True))
    assert [layer.activation is None for layer in layers] == [False] * (len(layers) - 1) + [True]


def test_a_network_that_takes_largest_pixels_is_no_chain() -> None:
    with pytest.raises(ValueError, match="max2"):
        chain(built("custom", network="conv 3@4 - max 2"), SHAPE)


def test_a_block_is_one_link_without_its_skip_two_and_a_norm_is_part_of_its_convolution() -> None:
    layers = chain(built("custom", network="conv 3@4 p1 norm - block 6 /2 - block 6 cut norm - mean 2 - mean"), SHAPE).layers
    assert [layer.name for layer in layers] == ["conv1", "block2", "block3.body.0", "block3.body.2", "mean4", "mean5", "linear"]
    assert [layer.norm.name if layer.norm else "" for layer in layers] == [
        "conv1.norm",
        "",
        "block3.body.0.norm",
        "block3.body.2.norm",
        "",
        "",
        "",
    ]
    assert [(layer.x, layer.z) for layer in layers[1:2] + layers[4:6]] == [
        ((4, 32, 32), (6, 16, 16)),
        ((6, 16, 16), (6, 8, 8)),
        ((6, 8, 8), (6,)),
    ]
    assert layers[1].skip is not None


@pytest.mark.parametrize(
    "text", ["conv 5@6 /2 p2 norm - block 8 /2 norm - deep 3 - block 6 cut norm - mean 2 - mean", "block 5 norm - linear 9"]
)
@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "tanh"])
def test_the_links_compute_what_the_network_computes_and_pull_back_its_derivative(text: str, activation: str) -> None:
    with precision(torch.float64):
        net = built("custom", (3, 16, 16), network=text, activation=activation).double()
        trained_norms(net)
        weights, x = dict(net.named_parameters()), smooth(channels=3, side=16)[0]
        for layer in chain(net, (3, 16, 16)).layers:
            out = layer.map(weights, x.requires_grad_())
            if not layer.body:
                k = torch.randn(layer.z)
                (gradient,) = torch.autograd.grad(out, x, k, retain_graph=True)
                assert torch.allclose(layer.input_gradient(weights, k), gradient.view(layer.x))
            if layer.is_mean:
                assert torch.allclose(layer.map(weights, layer.shortest(out)), out)
            x = layer.activate(out).detach()
        assert torch.allclose(x, net(smooth(channels=3, side=16))[0])


@pytest.mark.long
def test_r_gap_reads_a_gallery_picture_exactly_off_the_gradient_of_a_written_network() -> None:
    answers = []
    for model in (Part(id="custom", fields={"network": "conv 4@4"}), Part(id="rgap_net", fields={"net": "A"})):
        experiment = Experiment(model=model, task="flipped", precision="float64", attack=Part(id="r_gap")).resolve(CATALOG)
        prepared = prepare(experiment)
        *_, last = play(experiment, prepared=prepared)
        assert last.final
        assert float(F.mse_loss(last.x, prepared.x)) < 1e-18
        answers.append(last.x)
    assert torch.equal(*answers)  # the same names, the same seed, the same network


# ---------------------------------------------------------------- the text as a field


def test_one_network_is_stored_in_one_spelling() -> None:
    with_defaults = [
        custom(text).resolve(CATALOG) for text in (MENU, "CONV 5@12  p2 /2\n\n conv 5@12 /2 p2\n", "conv 5@12 /2 p2\r\nconv 5@12 p2 /2")
    ]
    assert {one.model.fields["network"] for one in with_defaults} == {MENU}
    assert len({one.digest() for one in [*with_defaults, Experiment(model=Part(id="custom")).resolve(CATALOG)]}) == 1
    assert custom("conv 3@4").resolve(CATALOG).digest() != with_defaults[0].digest()
    assert with_defaults[0].resolve(CATALOG) == with_defaults[0]


def test_a_text_that_is_no_network_is_refused_in_the_words_of_its_grammar() -> None:
    sentence = "Step 2: 'conv 3x4' is not a step. Allowed are steps such as: conv 3@16 /2 p1"
    assert refused(custom("conv 3@4 - conv 3x4")).startswith(f"model custom.network: {sentence}")
    with pytest.raises(ValueError, match=r"Custom\.network: Step 1: 'telepathy' is not a step"):
        Custom(network="telepathy")
    field = next(field for field in CATALOG.models.get("custom").fields if field.name == "network")
    assert (field.type, field.syntax, field.options, field.default) == ("str", "network", (), MENU)
    for value in (3, True, 0.5):
        with pytest.raises(CatalogError, match=f"here.network: allowed is a text, given was {value}."):
            field.check(value, "here")
    assert field.check("linear 3\nlinear 4", "here") == "linear 3 - linear 4"
    assert Field("net", "str", "", "A network.", syntax="network").check(" ", "here") == ""


def test_a_network_that_does_not_fit_the_picture_is_refused_before_it_runs() -> None:
    small = "mean 4 - mean 4 - conv 3@4"
    assert custom(small, size=64).resolve(CATALOG).size == 64
    sentence = "model custom.network: Step 3 (conv 3@4) needs at least 3 pixels a side, and 2 x 2 reach it."
    assert refused(custom(small, size=32)) == sentence
    training = Training(model=Part(id="custom", fields={"network": "conv 9@4 /4 - conv 7@4"}), data="mnist")
    assert "needs at least 7 pixels a side, and 5 x 5 reach it." in refused(training)
    assert training.model_copy(update={"data": "cifar10", "model": Part(id="custom")}).resolve(CATALOG).model.fields["network"] == MENU


def test_a_network_too_large_to_be_built_is_refused() -> None:
    low, high = LIMITS["units"]
    fits, large = "linear 4096 - linear 4096 - linear 4096", "linear 4096 - linear 4096 - linear 4096 - linear 4096"
    weights = 3 * 32 * 32 * high + 3 * high**2 + high * 10
    assert weights > MOST_NUMBERS > weights - high**2
    assert custom(fits).resolve(CATALOG).model.fields["network"] == fits
    assert f"at most 50,000,000 weights; this one would have {weights:,}." in refused(custom(large))
    wide = "conv 1@512 - conv 1@512 - mean"
    numbers = 2 * 512 * 224 * 224 + 512 + 10
    assert f"by its layers; this one would have {numbers:,}." in refused(custom(wide, size=224))
    check_fit("conv 1@400", (3, 224, 224), 1)  # 400 * 224^2 numbers, and as many weights to the one output
    check_fit("linear 1", (3, 224, 224), low)
    assert "at most 2000 characters; this one has 2001." in refused(custom("x" * 2001))


def test_one_output_needs_fewer_weights_than_a_hundred() -> None:
    text = "conv 1@100 /4 - conv 1@200"  # 200 * 56 * 56 numbers reach the outputs
    assert custom(text, size=224, task="flipped").resolve(CATALOG).task == "flipped"
    check_fit(text, (3, 224, 224), 79)
    with pytest.raises(NetworkError, match="50,000,000 weights"):
        check_fit(text, (3, 224, 224), 80)


# ---------------------------------------------------------------- on the page


def test_the_speed_of_the_default_network_is_not_taken_for_that_of_another(door: Service) -> None:
    door.store.put_note(SPEEDS, {"custom": (0.5, 0.5)})
    assert door.estimate(custom(MENU.replace(" - ", "\n")).resolve(CATALOG)) is not None
    assert door.estimate(custom("conv 3@4").resolve(CATALOG)) is None


def test_a_network_comes_from_the_address_and_goes_into_the_run_and_the_threat_model_table(door: Service, visit: Open) -> None:
    at = visit(model="custom", **{"custom.network": "conv 3@4 /2\nlinear 20"})
    fine(at)
    assert at.text_area(key="custom.network").value == "conv 3@4 /2\nlinear 20"
    experiment = asked(door, press_run(at))
    fine(at)
    assert experiment.model.fields["network"] == "conv 3@4 /2 - linear 20"
    at.text_area(key="custom.network").set_value("conv 5@3").run()
    assert asked(door, press_run(at)).model.fields["network"] == "conv 5@3"
    told = {what: value for _, what, value in assumptions(experiment, CATALOG, None, {})}
    assert told["The model and its weights"].startswith("Your own network “conv 3@4 /2 - linear 20”, untrained")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("conv 3x4", "Step 1: 'conv 3x4' is not a step."),
        ("mean 2\nconv 11@4\nmax 9", "Step 3 (max 9) needs at least 9 pixels a side, and 6 x 6 reach it."),
        ("[here](https://example.org)", escape("Step 1: '[here](https://example.org)' is not a step.")),  # no link in disguise
    ],
)
def test_a_text_that_cannot_be_run_gets_a_sentence_and_can_be_mended(door: Service, visit: Open, text: str, sentence: str) -> None:
    at = visit(model="custom", **{"custom.network": text})
    fine(at)
    assert words(at).count(sentence) == 1
    assert at.button(key="run-button").disabled
    fine(at.text_area(key="custom.network").set_value("conv 3@4").run())
    assert sentence not in words(at)
    assert asked(door, press_run(at)).model.fields["network"] == "conv 3@4"


def test_a_preset_fills_the_lines_in(door: Service, visit: Open) -> None:
    at = visit(model="custom")
    at.button_group(key="custom.preset").set_value("ResNet18, width 16").run()
    fine(at)
    experiment = asked(door, press_run(at))
    assert (experiment.model.fields["network"], experiment.model.fields["activation"]) == (TEMPLATES["ResNet18, width 16"], "relu")


def test_a_trained_network_is_found_again_by_its_link(door: Service, visit: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKAGE_DATA", str(write_digits(tmp_path / "digits")))
    text = "conv 5@4 /4 p2 - max 2 - linear 8"
    asked_for = ["--model", "custom", "--field", f"network={text}", "--rounds", "1", "--batch", "32", "--pictures", "320"]
    assert main(["train", *asked_for]) == 0
    (folder,) = door.config.checkpoints.iterdir()
    link = parse_qs(urlsplit(lab_link(f"{folder.name}@1")).query, strict_parsing=True)
    at = visit(**{name: value for name, (value,) in link.items()}, source="gallery", pictures="gallery:digit-3")
    fine(at)
    experiment = asked(door, press_run(at))
    assert (experiment.model.fields["network"], experiment.checkpoint) == (text, f"{folder.name}@1")
