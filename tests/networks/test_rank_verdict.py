"""The verdict of rank analysis on a network, and the names of its layers and its template."""

from leakage.networks.grammar import parse, unroll
from leakage.networks.rank import Analysis, analyse
from leakage.networks.rank_verdict import layer_label, verdict
from leakage.networks.templates import TEMPLATES, template_of

SHAPE = (3, 32, 32)


RESNET18 = "ResNet18, width 16"


def counted(text: str, outputs: int = 10, **settings: object) -> Analysis:
    return analyse(unroll(parse(TEMPLATES.get(text, text)), SHAPE, outputs), **settings)


def headline(text: str, batch: int = 1) -> str:
    steps = parse(TEMPLATES.get(text, text))
    return verdict(counted(text, batch=batch), steps, batch).headline


def test_the_verdict_goes_by_the_exact_rank_where_the_count_is_too_hopeful() -> None:
    assert headline("CNN6-d") == "Layer by layer, enough equations in all, but not in layer conv2 alone: 3,188 of 3,468 unknowns determined"
    assert headline("R-GAP's net E").startswith("Layer by layer, not enough equations in layer conv2: 2,740 of 3,136")
    assert headline("R-GAP's net B", batch=8).endswith("at most 20,328 of 24,576 unknowns determined")  # by counting
    assert headline("FCN3") == "Layer by layer, the gradient holds the picture"
    assert headline("LeNet (Zhu)") == "Layer by layer, the equations suffice"


def test_r_gap_needs_one_picture_a_chain_and_enough_equations_in_every_layer() -> None:
    said = [verdict(counted(name, batch=batch), parse(TEMPLATES[name]), batch).recursion for name, batch in (("CNN6", 1), ("CNN6", 2))]
    assert said == ["yes", "no, it is made for one picture"]
    assert verdict(counted("CNN6-d"), parse(TEMPLATES["CNN6-d"]), 1).recursion == (
        "only in part, it has to guess in layer conv2, unless it is small enough to be solved together with the layers before it"
    )
    assert (
        verdict(counted("R-GAP's net B"), parse(TEMPLATES["R-GAP's net B"]), 1).recursion == "only in part, it has to guess in layer conv1"
    )
    assert "it has to guess in layer mean, unless" in verdict(counted(RESNET18), parse(TEMPLATES[RESNET18]), 1).recursion
    largest = parse("conv 3@4 - max 2")
    assert "the largest" in verdict(analyse(unroll(largest, (3, 32, 32), 10)), largest, 1).recursion


def test_blocks_are_counted_among_blocks() -> None:
    name = "ResNet18, width 16, skip 3 cut"
    names = [layer_label(row, parse(TEMPLATES[name])) for row in counted(name).rows]
    assert names[:5] == ["conv1", "block 1", "block 2", "block 3 conv1", "block 3 conv2"]
    assert names[-2:] == ["mean", "linear"]


def test_a_template_is_known_however_it_is_written() -> None:
    assert template_of("CONV 4@4") == "R-GAP's net A"
    assert template_of("conv 4@") is None
