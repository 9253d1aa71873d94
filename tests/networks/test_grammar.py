"""A network as text and as plain data: read, written, refused, and equal to the torch models in shapes and weights."""

import pytest
import torch
from torch import nn

from leakage.engine.chain_layer import GlobalMean
from leakage.networks.grammar import Block, Conv, Linear, NetworkError, Pool, parse, unroll, write
from leakage.networks.templates import TEMPLATES
from leakage.spec.experiment import Part
from leakage.workers.adapter import plugin


def test_a_text_is_read_into_steps() -> None:
    assert parse("conv 5@12 /2 p2 - block 32 /2 cut - deep 16 - mean 2 - max 3 - mean - linear 500") == (
        Conv(5, 12, stride=2, padding=2),
        Block(32, stride=2, skip=False),
        Block(16, deep=True),
        Pool("mean", 2),
        Pool("max", 3),
        Pool("mean"),
        Linear(500),
    )
    assert parse("conv 3@4 p1 norm - deep 8 norm cut") == (Conv(3, 4, padding=1, norm=True), Block(8, skip=False, deep=True, norm=True))
    assert write(parse("deep 8 norm cut - conv 3@4 norm /2")) == "deep 8 cut norm - conv 3@4 /2 norm"
    assert parse(" conv 3@4\nLINEAR 5 ") == (Conv(3, 4), Linear(5))
    assert parse("") == ()


@pytest.mark.parametrize("text", TEMPLATES.values(), ids=TEMPLATES)
def test_a_template_is_what_its_steps_write(text: str) -> None:
    assert write(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("conv 3x4", "Step 1: 'conv 3x4' is not a step. Allowed are steps such as: conv 3@16"),
        ("linear 5 - block 4 p1", "Step 2: 'block 4 p1' is not a step"),
        ("conv 3@4 cut", "is not a step"),
        ("mean 2 /2", "is not a step"),
        ("mean 2 norm", "is not a step"),
        ("max", "is not a step"),
        ("conv 3@0", r"Step 1 \(conv 3@0\): filters must lie between 1 and 512; given was 0"),
        ("conv 3@4 /5", "stride must lie between 1 and 4"),
        (" - ".join(["mean 1"] * 61), "at most 60 steps; this one has 61"),
    ],
)
def test_a_text_that_is_no_network_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(NetworkError, match=sentence):
        parse(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("linear 5 - conv 3@4", r"Step 2 \(conv 3@4\) needs a picture"),
        ("mean 4 - conv 3@4", r"Step 2 \(conv 3@4\) needs at least 3 pixels a side, and 2 x 2 reach it"),
        ("mean 9", "needs at least 9 pixels a side, and 8 x 8 reach it"),
    ],
)
def test_a_step_that_does_not_fit_what_reaches_it_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(NetworkError, match=sentence):
        unroll(parse(text), (3, 8, 8), 10)


def test_a_block_is_its_convolutions_and_its_last_one_carries_the_weights_of_the_skip() -> None:
    first, second = unroll(parse("block 8 /2"), (4, 10, 10), 2)[:2]
    assert (first.x, first.z, first.weights, first.last, first.shortcut) == ((4, 10, 10), (8, 5, 5), 4 * 8 * 9, False, 0)
    assert (second.x, second.z, second.weights, second.last, second.shortcut) == ((8, 5, 5), (8, 5, 5), 8 * 8 * 9, True, 4 * 8)
    assert (second.inputs, second.outputs) == (200, 200)
    assert unroll(parse("block 4"), (4, 10, 10), 2)[1].shortcut == 0
    assert [(one.z, one.shortcut) for one in unroll(parse("deep 2"), (4, 6, 6), 2)[:3]] == [((2, 6, 6), 0), ((2, 6, 6), 0), ((8, 6, 6), 32)]


Size = tuple[int, int, int]  # numbers in, numbers out, weights


def computed(model: str, shape: tuple[int, int, int], **fields: object) -> tuple[list[Size], list[int]]:
    """What every layer of our torch model reads, writes and holds, in the order of computing; and the weights of its skips."""
    net = plugin("model", Part(id=model, fields=fields)).build(shape, 10).eval()
    layers, skips = list[Size](), list[int]()

    def note(layer: nn.Module, read: tuple[torch.Tensor], written: torch.Tensor) -> None:
        layers.append((read[0].numel(), written.numel(), layer.weight.numel() if hasattr(layer, "weight") else 0))

    for name, layer in net.named_modules():
        if name.endswith(".skip") and not isinstance(layer, nn.Identity):
            skips.append(layer.weight.numel())
        elif isinstance(layer, nn.Conv2d | nn.Linear | GlobalMean):
            layer.register_forward_hook(note)
    with torch.no_grad():
        net(torch.zeros(1, *shape))
    return layers, skips


@pytest.mark.parametrize(
    ("name", "model", "fields"),
    [
        *((f"R-GAP's net {net}", "rgap_net", {"net": net}) for net in "ABCDE"),
        ("LeNet (Zhu)", "lenet", {}),
        ("CNN6", "cnn6", {}),
        ("CNN6-d", "cnn6", {"second": 20}),
        ("FCN3", "fcn3", {}),
        *((f"ResNet18, width 16{word}", "resnet", {"cut": cut}) for cut, word in ((0, ""), (3, ", skip 3 cut"), (8, ", skip 8 cut"))),
        *(
            (f"ResNet101, width 16{word}", "resnet", {"kind": "resnet101", "cut": cut})
            for cut, word in ((0, ""), (3, ", skip 3 cut"), (1, ", skip 1 cut"))
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value in TEMPLATES else "",
)
@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28)], ids=str)
@pytest.mark.long
def test_a_template_has_the_shapes_and_weights_of_our_model(
    name: str, model: str, fields: dict[str, object], shape: tuple[int, int, int]
) -> None:
    maps = unroll(parse(TEMPLATES[name]), shape, 10)
    layers, skips = computed(model, shape, **fields)
    assert [(one.inputs, one.outputs, one.weights) for one in maps] == layers
    assert [one.shortcut for one in maps if one.shortcut] == skips
