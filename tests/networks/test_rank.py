"""Rank analysis: the printed indices by hand, the exact rank by singular values, and changes that protect."""

import random

import pytest
from layer_ranks import maps, numerical_rank

from leakage.networks.exact_rank import _shared_more, gradient_rank, predicted_rank
from leakage.networks.grammar import Map, NetworkError, parse, unroll
from leakage.networks.rank import CONVENTIONS, Analysis, advice, analyse
from leakage.networks.templates import TEMPLATES


def analysed(text: str, **settings: object) -> Analysis:
    return analyse(maps(text), **settings)


# ---------------------------------------------------------------- the index, by hand


@pytest.mark.parametrize(
    ("name", "index", "critical"),
    [  # Zhu and Blaschko 2021, figure 2 and section 4
        ("R-GAP's net A", 3072 - 192 - 3364, "conv1"),  # -484; the linear layer after it would be -293 with one output
        ("R-GAP's net B", 3072 - 144 - 2523, "conv1"),  # 405
        ("R-GAP's net C", 405, "conv1"),
        ("R-GAP's net D", 3600 - 144 - 3136 - (3600 - 3072), "conv2"),  # -208
        ("R-GAP's net E", 3136 - 256 - 2500 - (3136 - 3072), "conv2"),  # 316
        ("CNN6", 3072 - 576 - 3468, "conv1"),  # -972
        ("CNN6-d", 3468 - 2160 - 1620 - (3468 - 3072), "conv2"),  # -708
        ("LeNet (Zhu)", 3072 - 900 - 3072, "conv1"),  # -900
    ],
)
def test_the_index_of_a_chain(name: str, index: int, critical: str) -> None:
    found = analyse(maps(name, outputs=1))
    assert found.index == index
    assert found.critical is not None
    assert found.critical.name == critical
    assert found.short == (index > 0)


def test_every_layer_of_cnn6_and_of_lenet() -> None:
    found = [row.index for row in analysed("CNN6").rows if row.kind == "conv"]
    assert found == [-972, 3468 - 3888 - 2916 - 396, -12060, -12060, -19816, -75724]
    assert [row.index for row in analysed("CNN6-d").rows][2] == 1620 - 6480 - 2916 - 396
    assert [row.local for row in analysed("LeNet (Zhu)").rows if row.counted] == [-900, 3072 - 3600 - 768, 768 - 3600 - 768]


@pytest.mark.parametrize(
    ("name", "unit", "with_shortcut"),
    [  # printed for ResNet18: -1.0e4, -7.8e3, -1.0e4; for ResNet101 -1.4e4 three times (Zhu and Blaschko 2021, figure 4)
        ("ResNet18, width 16", 1920 - 13312, 16384 - 8192 - (4608 + 512) - 13312),  # -11392, -10240
        ("ResNet18, width 16, skip 3 cut", 1920 - 9728, 1920 - 9728),  # -7808
        ("ResNet18, width 16, skip 8 cut", -11392, -10240),
        ("ResNet101, width 16", 3072 - 432 - 16384, -13744),
        ("ResNet101, width 16, skip 3 cut", -13744, -13744),
        ("ResNet101, width 16, skip 1 cut", 16384 - 256 - 16384 - 13312, -13568),
    ],
)
def test_the_index_of_a_residual_network_in_both_conventions(name: str, unit: int, with_shortcut: int) -> None:
    assert analysed(name).index == unit
    assert analysed(name, convention="w1_plus_shortcut").index == with_shortcut


def test_a_cut_block_spends_what_the_layers_before_it_handed_on() -> None:
    rows = {row.name: row for row in analysed("ResNet18, width 16, skip 3 cut").rows}
    assert rows["conv1"].index == -13744
    assert [rows[name].index for name in ("block2", "block3")] == [16384 - 2304 - 16384 - 13312] * 2
    assert (rows["block4.conv1"].local, rows["block4.conv1"].index) == (16384 - 4608 - 8192, 3584 - 13312)
    assert rows["block4.conv2"].v == 13312 - 3584
    assert rows["block4.conv2"].index == 8192 - 9216 - 8192 - 9728
    assert (rows["mean10"].x, rows["mean10"].w, rows["mean10"].z, rows["mean10"].index) == (2048, 0, 128, -7808)
    assert (rows["linear"].index, rows["linear"].counted) == (128 - 1280 - 10 - (9728 - 1920), False)  # -8970
    deep = {row.name: row for row in analysed("ResNet101, width 16, skip 3 cut").rows}["block4.conv1"]
    assert (deep.local, deep.v) == (65536 - 1024 - 16384, 62464)


def test_a_block_with_a_skip_counts_the_weights_of_its_last_convolution_and_its_output() -> None:
    row = next(row for row in analysed("ResNet18, width 16").rows if row.name == "block4")
    assert (row.kind, row.step, row.x, row.w, row.z, row.local) == ("block", 3, 16384, 9216, 8192, -1024)
    early = next(row for row in analysed("ResNet18, width 16", convention="w1_plus_shortcut").rows if row.name == "block4")
    assert (early.w, early.z, early.index) == (4608 + 512, 8192, -10240)


def test_of_the_largest_pixels_only_those_are_known() -> None:
    found = analysed("conv 3@4 p1 - max 2")
    assert [(row.kind, row.local, row.v) for row in found.rows][:2] == [("conv", 3072 - 108 - 4096, 0), ("max", 4096 - 1024, 1024)]
    assert (found.index, found.short, found.solvable) == (2048, True, False)


def test_only_linear_layers_give_the_picture_always() -> None:
    found = analyse(maps("FCN3", (1, 28, 28), 1))
    assert (found.critical, found.index, found.short, found.solvable) == (None, None, False, True)
    assert found.rows[1].v == 1000 - 784


def test_r_gap_cannot_use_what_is_handed_on() -> None:
    found = analysed("R-GAP's net D")
    assert found.rows[1].local == 3600 - 144 - 3136  # 320
    assert (found.short, found.solvable) == (False, False)
    assert analysed("R-GAP's net A").solvable


def test_a_batch_multiplies_unknowns_and_outputs_but_not_the_gradient() -> None:
    assert analysed("R-GAP's net A", batch=4).rows[0].local == 4 * 3072 - 192 - 4 * 3364
    assert analysed("R-GAP's net B", batch=4).index == 4 * 3072 - 144 - 4 * 2523
    rows = analysed("R-GAP's net A", batch=11).rows
    assert rows[-1].counted  # the gradient of 10 outputs cannot tell 11 pictures apart
    assert not analysed("R-GAP's net A", batch=10).rows[-1].counted
    assert [row.rank for row in rows] == [None, None]


def test_a_measured_share_of_a_relu_keeps_that_many_equations() -> None:
    row = analysed("R-GAP's net A", kept={"conv1": 0.5}).rows[0]
    assert (row.outputs, row.z, row.local) == (3364, 1682, 3072 - 192 - 1682)
    assert row.rank is None
    block = analysed("ResNet18, width 16", kept={"block2.conv2": 0.25}).rows[1]
    assert (block.outputs, block.z) == (16384, 4096)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"batch": 0}, "at least one picture, got 0"),
        ({"convention": "both"}, "one of unit, w1_plus_shortcut; got 'both'"),
        ({"kept": {"conv9": 0.5}}, "'conv9' is no map of this network. It has conv1, linear"),
        ({"kept": {"conv1": 50}}, "between 0 and 1, got 50"),
    ],
)
def test_what_cannot_be_analysed_is_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        analysed("R-GAP's net A", **settings)


# ---------------------------------------------------------------- the exact rank


@pytest.mark.parametrize(
    ("name", "layer", "rank"),
    [
        pytest.param("CNN6-d", 1, 12 * (20 + 40 + 40 + 64) + 1620 - 20**2, marks=pytest.mark.slow, id="CNN6-d"),  # 3188 of 3468
        pytest.param("R-GAP's net D", 1, 144 + 3136 - 4**2, marks=pytest.mark.slow, id="D"),  # 3264 of 3600
        pytest.param("R-GAP's net B", 0, 144 + 2523 - 3**2, marks=pytest.mark.slow, id="B"),  # 2658 of 3072
    ],
)
def test_the_rank_of_a_published_layer_is_that_of_its_singular_values(name: str, layer: int, rank: int) -> None:
    assert predicted_rank(maps(name)[layer]) == rank
    assert numerical_rank(maps(name)[layer], seed=0) == rank


def test_the_rank_shows_a_deficiency_that_the_count_hides() -> None:
    row = analysed("CNN6-d").rows[1]
    assert (row.local, row.rank, row.deficiency) == (-312, 3188, 280)
    assert [analysed(f"R-GAP's net {net}").rows[layer].deficiency for net, layer in (("A", 0), ("B", 0), ("D", 1))] == [0, 414, 336]


def drawn(count: int, seed: int = 0) -> list[Map]:
    """Random small convolutions: a third have all equations, a third share Co^2 directions between gradient and weights, a third more."""
    rng, found = random.Random(seed), {kind: list[Map]() for kind in ("full", "short", "more")}
    most = -(-count // len(found))
    while any(len(layers) < most for layers in found.values()):
        size, stride = rng.randint(1, 6), rng.randint(1, 3)
        padding = rng.choice([max(size - stride, 0), rng.randint(0, 3)])
        shape = (rng.randint(2, 5), rng.randint(5, 10), rng.randint(5, 10))
        try:
            layer = maps(f"conv {size}@{rng.randint(1, 16)} /{stride} p{padding}", shape)[0]
        except NetworkError:
            continue
        rank = predicted_rank(layer)
        if rank is not None:
            decides = rank == gradient_rank(layer) + layer.outputs - layer.z[0] ** 2 - _shared_more(layer)
            kind = "more" if decides and _shared_more(layer) else "full" if rank == layer.inputs else "short"
            found[kind] += [layer] if len(found[kind]) < most else []
    return [layer for layers in found.values() for layer in layers][:count]


def name_of(layer: Map) -> str:
    return f"{layer.x}-{layer.z}-{layer.size}-{layer.stride}-{layer.padding}"


@pytest.mark.parametrize("layer", drawn(42), ids=name_of)
def test_the_rank_of_a_random_small_convolution_is_that_of_its_singular_values(layer: Map) -> None:
    assert predicted_rank(layer) == numerical_rank(layer, seed=1)


@pytest.mark.slow
def test_the_rank_of_400_random_small_convolutions_is_that_of_their_singular_values() -> None:
    wrong = [name_of(layer) for layer in drawn(400, seed=1) if predicted_rank(layer) != numerical_rank(layer, seed=1)]
    assert wrong == []


@pytest.mark.parametrize(
    ("shape", "text", "rank"),
    [  # what K and W share beyond Co^2: worked out from the classes of pixels in the comment
        ((4, 8, 8), "conv 4@3 /2 p2", 192 + 75 - 9 - 18),  # 4 alike, each open by 4: they ask 12 * 4 of 3 (25 - 3)
        ((5, 8, 8), "conv 4@3 /2 p2", 240 + 75 - 9 - 18),  # a fifth channel asks nothing new
        ((6, 8, 13), "conv 4@5 /2 p2", 480 + 175 - 25 - 22),  # two open by 8, two by 4 within them: 12 * 8 + (20 - 12) * 4 of 5 (35 - 5)
        ((4, 13, 13), "conv 3@15 /3 p1", 540 + 375 - 225 - 18),  # open by 10, 5 (four), 1 (four): 4 * 10 + 4 * 4 * 5 + 4 * 3 * 1 of 150
        ((4, 10, 16), "conv 3@14 /3 p1", 504 + 336 - 196 - 12),
    ],
)
def test_windows_at_the_border_share_what_they_see(shape: tuple[int, int, int], text: str, rank: int) -> None:
    assert predicted_rank(maps(text, shape)[0]) == rank == numerical_rank(maps(text, shape)[0], seed=2)


@pytest.mark.parametrize(
    ("shape", "text", "rank"),
    [  # a class of pixels with fewer pixels than equations
        ((4, 7, 7), "conv 3@5 /2 p1", 136 + 80 - 25 - 3),  # the counts leave 3 shared directions more
        ((5, 9, 7), "conv 3@7 /2 p1", 235 + 140 - 49 - 14),
        ((5, 8, 8), "conv 3@7 /2 p1", 255 + 112 - 49 - 2),
    ],
)
def test_more_directions_are_shared_where_a_class_has_fewer_pixels_than_equations(
    shape: tuple[int, int, int], text: str, rank: int
) -> None:
    assert predicted_rank(maps(text, shape)[0]) == rank == numerical_rank(maps(text, shape)[0], seed=2)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((3, 8, 8), "conv 3@4 /2"),  # the last row and column are not met
        ((3, 5, 5), "conv 3@4"),  # an output of 3 x 3 is no larger than the kernel
        ((1, 9, 9), "conv 3@4"),  # one channel
        ((2, 16, 16), "conv 2@9"),  # more filters than numbers in a kernel
        ((3, 16, 16), "conv 3@16 p1"),  # a corner meets 12 pixels: 16 equations depend on each other
        ((3, 9, 9), "conv 2@4 p1"),  # a corner meets one pixel
    ],
)
def test_no_rank_is_promised_where_the_formula_may_err(shape: tuple[int, int, int], text: str) -> None:
    assert predicted_rank(maps(text, shape)[0]) is None


def test_pooling_leaves_open_what_it_drops() -> None:
    rows = analysed("conv 3@4 p1 - mean 2 - max 2", batch=3).rows
    assert [(row.rank, row.deficiency) for row in rows[1:3]] == [(3 * 1024, 3 * 3072), (3 * 256, 3 * 768)]
    assert analysed("conv 3@4 p1 - mean 2", batch=3).rows[-1].deficiency == 0


# ---------------------------------------------------------------- advice


def test_the_skip_whose_cut_helps_most_comes_first() -> None:
    steps = parse(TEMPLATES["ResNet18, width 16"])
    for convention, before in zip(CONVENTIONS, (-11392, -10240), strict=True):
        cuts = advice(steps, (3, 32, 32), 10, convention=convention).cuts
        assert len(cuts) == 8
        assert (cuts[0].step, cuts[0].block, cuts[0].index, cuts[0].rise) == (3, 3, -7808, -7808 - before)
        assert [cut.rise for cut in cuts] == sorted((cut.rise for cut in cuts), reverse=True)
    again = advice(parse(TEMPLATES["ResNet18, width 16, skip 3 cut"]), (3, 32, 32), 10).cuts
    assert sorted(cut.block for cut in again) == [1, 2, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", ["R-GAP's net A", "R-GAP's net D", "CNN6", "LeNet (Zhu)"])
def test_one_filter_fewer_than_is_too_many_makes_the_layer_impossible(name: str, batch: int) -> None:
    for found in advice(parse(TEMPLATES[name]), (3, 32, 32), 1, batch=batch).filters:
        for filters in range(1, 41):
            steps = list(parse(TEMPLATES[name]))
            steps[found.step] = parse(str(steps[found.step]).replace(f"@{found.now}", f"@{filters}"))[0]
            row = analyse(unroll(tuple(steps), (3, 32, 32), 1), batch=batch).rows[found.step]
            assert (row.index > 0) == (found.most is not None and filters <= found.most)


def test_net_a_is_protected_by_three_filters_and_no_number_helps_where_too_much_is_handed_on() -> None:
    assert advice(parse("conv 4@4"), (3, 32, 32), 1).filters[0].most == 3  # 3072 - 3 (48 + 841) = 405
    late = advice(parse("conv 3@16 p1 - conv 1@16 /4"), (3, 32, 32), 1).filters[1]
    assert late.most == (16384 - 13312 - 1) // (16 + 64)
    rich = advice(parse(TEMPLATES["CNN6-d"]), (3, 32, 32), 1).filters[5]
    assert (rich.now, rich.most) == (128, None)  # 1600 unknowns, and 1692 equations are handed on


def test_a_network_without_convolutions_needs_no_advice() -> None:
    assert advice(parse("linear 100"), (1, 28, 28), 10).cuts == ()
    assert advice(parse("linear 100"), (1, 28, 28), 10).filters == ()
