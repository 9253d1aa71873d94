"""R-GAP through folded BatchNorm, mean pooling and skips: five random networks, and every mechanism by itself."""

import math
import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from small_problems import precision, smooth, trained_norms
from torch import nn

from leakage.attacks._logit import LastLayer
from leakage.attacks._recursion import Recursion, RecursionStep, keep_consistent
from leakage.attacks.r_gap import RGap
from leakage.engine.chain import chain
from leakage.engine.chain_layer import ChainLayer
from leakage.engine.core import Observation, Params, Snapshot, generator
from leakage.engine.equations import ConvolutionEquations, Sums, solve_together
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.jacobian_rank import spectrum
from leakage.engine.observe import observe, ready
from leakage.engine.segment import Search, Segment, solve_segment
from leakage.engine.with_result import WithResult
from leakage.networks.grammar import NetworkError, parse, unroll
from leakage.networks.rank import analyse
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import federation, network

SEED = 201007733  # the number of the paper
WANTED = ("norm", "block", "mean", "mean", "block")  # what each network must hold at least
DRAWN = [  # side of the picture, activations, network: as they came, before anything was tried on them
    (10, "sigmoid", "conv 5@14 norm - conv 3@9 p1 norm"),
    (8, "tanh", "conv 5@10 p2 norm - block 8 /2 norm"),
    (12, "leaky_relu", "conv 4@20 - mean 2 - block 19 /2 norm"),
    (10, "tanh", "conv 5@10 p2 norm - block 15 /2 - mean 2"),
    (10, "sigmoid", "conv 3@10 /2 - conv 3@18 p1 norm - block 10 - mean 2"),
]


def drawn() -> list[tuple[int, str, str]]:
    """Five networks of two to four steps; those that do not fit their picture, or lack what is wanted, are drawn again."""
    rng, found = random.Random(SEED), list[tuple[int, str, str]]()

    def step() -> str:
        kind = rng.choice(("conv", "conv", "conv", "block", "block", "mean"))
        if kind == "mean":
            return "mean 2"
        filters, stride, norm = rng.randint(6, 24), rng.choice(("", "", " /2")), rng.choice(("", " norm"))
        if kind == "block":
            return f"block {filters}{stride}{norm}"
        size = rng.choice((3, 4, 5))
        return f"conv {size}@{filters}{stride}{rng.choice(('', f' p{size // 2}'))}{norm}"

    while len(found) < len(WANTED):
        side, activation = rng.choice((8, 10, 12)), rng.choice(("leaky_relu", "relu", "tanh", "sigmoid"))
        text = " - ".join(step() for _ in range(rng.randint(2, 4)))
        try:
            unroll(parse(text), (3, side, side), 10)
        except NetworkError:
            continue
        if WANTED[len(found)] in text:
            found.append((side, activation, text))
    return found


def seen_by(side: int, activation: str, text: str, *, seed: int = 1, bias: bool = False) -> tuple[Observation, torch.Tensor]:
    """What the server holds of one smooth picture of class 7, and the picture. BatchNorm has the statistics of a trained network."""
    model = Part(id="custom", fields={"network": text, "activation": activation, "bias": bias})
    asked, x = Experiment(model=model, seed=seed), smooth(channels=3, side=side)
    net = ready(network(asked, (3, side, side)), federation(asked), x, batch_norm=asked.batch_norm)
    trained_norms(net)
    return observe(net, x, torch.tensor([7]), federation(asked), num_classes=10), x


def solved_by(seen: Observation, system: str = "together") -> list[Snapshot]:
    """Its snapshots, those of a search under way left out."""
    return [moment for moment in RGap(system=system).run(seen, generator(1, "attack")) if "missed" not in moment.note]


def error(guess: torch.Tensor, truth: torch.Tensor) -> float:
    return float((guess - truth).square().mean())


def below(seen: Observation, x: torch.Tensor) -> tuple[Segment, Params, Params]:
    """All layers below the last one as one segment, with what is true of its output."""
    weights = {name: value.detach() for name, value in seen.received.weights.items()}
    *layers, last = chain(seen.model, seen.batch.image_shape).layers
    out = x[0]
    for layer in layers:
        z = layer.map(weights, out)
        out = layer.activate(z).view(layer.z)
    k = seen.model(x).softmax(1)[0].detach() - nn.functional.one_hot(torch.tensor(7), 10)
    upper = layers[-1]
    k = last.input_gradient(weights, k).view(upper.z) * upper.derivative(z)
    return Segment(tuple(layers), z, upper.known(z), k), weights, seen.as_gradient()


# ---------------------------------------------------------------- five networks


def test_the_five_networks_are_those_that_the_seed_draws() -> None:
    assert drawn() == DRAWN


@pytest.mark.parametrize("which", [0, 1, 3])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_picture_is_exact_where_the_equations_suffice(which: int, seed: int) -> None:
    side, _, text = DRAWN[which]
    with precision(torch.float64):
        seen, x = seen_by(*DRAWN[which], seed=seed)
        last = solved_by(seen)[-1]
        found = spectrum(seen.model, x, torch.tensor([7]))
    counted = analyse(unroll(parse(text), (3, side, side), 10))
    assert counted.index is not None
    assert counted.index < 0
    assert found.rank == found.unknowns == 3 * side**2
    assert error(last.x, x) < 1e-12
    assert last.y.tolist() == [7]
    assert "event" not in last.note


def test_where_the_index_is_above_0_the_whole_gradient_is_short_too_and_the_answer_says_so() -> None:
    side, _, text = DRAWN[2]
    counted = analyse(unroll(parse(text), (3, side, side), 10))
    assert counted.index == 1620 - 320 - (1620 - 432)  # the mean: its own 320 outputs, and 1188 equations handed on by conv1
    with precision(torch.float64):
        seen, x = seen_by(*DRAWN[2])
        *_, first, last = solved_by(seen)
        found = spectrum(seen.model, x, torch.tensor([7]))
    assert found.rank < found.unknowns == 432
    assert "From layer mean2 on all layers together" in first.note["event"]
    assert error(last.x, x) > 1e-3


def test_pixels_that_no_filter_meets_stay_unknown_and_all_others_are_exact() -> None:
    with precision(torch.float64):
        seen, x = seen_by(*DRAWN[4])
        *_, first, last = solved_by(seen)
        found = spectrum(seen.model, x, torch.tensor([7]))
    assert found.rank == first.note["rank"] == 3 * 9 * 9  # filters of 3 at a stride of 2 end at the ninth of ten pixels
    assert "430 equations determine 243 of 300 unknowns" in first.note["event"]
    assert error(last.x[..., :9, :9], x[..., :9, :9]) < 1e-12


# ---------------------------------------------------------------- one mechanism at a time


@pytest.mark.parametrize(
    ("side", "activation", "text"),
    [
        (8, "tanh", "conv 3@8 p1 norm - conv 3@9 /2 p1 norm"),
        (8, "relu", "conv 3@16 p1 norm - conv 3@16 p1 norm"),
        (8, "leaky_relu", "conv 3@16 p1 - block 16"),  # x_2 from the gradient of W_2 alone: 144 rows for 64 places
        (8, "relu", "conv 3@16 p1 norm - block 24 /2 norm"),  # a skip of convolutions; zeros hide a half of f
        (8, "tanh", "conv 3@8 p1 - deep 16 norm"),
        (8, "leaky_relu", "block 8 cut norm"),
        (6, "tanh", "conv 3@36 p1 - deep 9"),  # W_1 says 9 x 36 + 9 x 36 of x_1, which has 36 x 36 numbers: the rest comes by the skip
    ],
)
@pytest.mark.parametrize("bias", [False, True])
def test_norms_and_skips_are_undone_exactly_layer_by_layer(side: int, activation: str, text: str, bias: bool) -> None:
    with precision(torch.float64):
        seen, x = seen_by(side, activation, text, bias=bias)
        shown = solved_by(seen, "balanced")
    assert error(shown[-1].x, x) < 1e-18
    assert all(moment.note["rank"] == moment.note["unknowns"] for moment in shown[1:-1])


@pytest.mark.parametrize(
    ("activation", "text"),
    [
        ("tanh", "conv 3@24 p1 norm - mean 2"),
        ("tanh", "conv 3@32 p1 - mean 2 - conv 3@16 p1 - mean"),
        ("sigmoid", "conv 3@4 - conv 3@4"),  # R-GAP's net D: conv2 alone is short
        ("relu", "conv 3@24 p1 norm - mean 2"),
    ],
)
def test_a_layer_that_is_short_is_solved_with_those_below_it(activation: str, text: str) -> None:
    with precision(torch.float64):
        seen, x = seen_by(12 if "@4 " in text else 8, activation, text)
        alone, together = (solved_by(seen, system)[-1] for system in ("balanced", "together"))
    assert error(alone.x, x) > 1e-5
    assert error(together.x, x) < 1e-12


def test_a_block_whose_last_gradient_is_too_short_is_solved_as_a_whole() -> None:
    with precision(torch.float64):
        seen, x = seen_by(8, "leaky_relu", "conv 3@6 p1 - block 6 norm")  # 54 rows for 64 places
        shown = solved_by(seen, "balanced")
    block = next(moment.note for moment in shown if moment.note.get("layer") == "block2")
    assert block["equations"] == 6 * 8**2 + 2 * (6 * 6 * 9 + 6 + 6)  # outputs; weights, gamma and beta of two convolutions
    assert error(shown[-1].x, x) < 1e-18


def test_norms_that_take_the_batchs_statistics_have_no_place_in_a_chain() -> None:
    asked, x = Experiment(model=Part(id="custom", fields={"network": "conv 3@4 norm"}), batch_norm="batch"), smooth(channels=3, side=8)
    net = ready(network(asked, (3, 8, 8)), federation(asked), x, batch_norm="batch")
    with pytest.raises(ValueError, match=r"conv1 \(ConvNorm\)"):
        chain(net, (3, 8, 8))


def test_a_norm_of_its_own_is_folded_into_the_convolution_before_it() -> None:
    with precision(torch.float64):
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Tanh(), nn.Flatten(), nn.Linear(288, 10)).eval()
        trained_norms(net)
        layer, _ = chain(net, (3, 8, 8)).layers
        x = smooth(channels=3, side=8)
        assert layer.norm is not None
        assert torch.allclose(layer.map(dict(net.named_parameters()), x[0]), net[1](net[0](x))[0])


def test_gammas_gradient_holds_of_the_true_picture_and_adds_no_rank_to_that_of_the_weights() -> None:
    with precision(torch.float64):
        x, w = torch.rand(3, 8, 8), torch.rand(2, 3, 3, 3).requires_grad_()
        gamma, mean, deviation = torch.tensor([0.7, 1.4]).requires_grad_(), torch.tensor([0.2, -0.3]), torch.tensor([1.1, 0.6])
        y = nn.functional.conv2d(x[None], w)[0]
        z = (y - mean.view(-1, 1, 1)) / deviation.view(-1, 1, 1) * gamma.view(-1, 1, 1)
        k = torch.randn_like(z)
        g, gamma_gradient = torch.autograd.grad((z * k).sum(), (w, gamma))
        scale, factors = (gamma / deviation).detach().view(-1, 1, 1), k / deviation.view(-1, 1, 1)
        sums = Sums(w.detach(), factors, gamma_gradient + mean * factors.sum((1, 2)))
        assert torch.allclose((factors * y).sum((1, 2)), sums.total)
        out = (y * scale).detach()
        system = ConvolutionEquations(w.detach() * scale[..., None], out, torch.ones_like(out, dtype=torch.bool), k * scale, g)
        without, with_it = (solve_together([one], (8, 8)) for one in (system, replace(system, sums=sums)))
        assert without.rank == with_it.rank < 192
        assert with_it.equations == without.equations + 2
        assert with_it.residual < 1e-12
        wrong = replace(system, sums=replace(sums, total=2 * sums.total))
        assert solve_together([wrong], (8, 8)).residual > 1e-3


def test_betas_gradient_shows_a_wrong_derivative() -> None:
    with precision(torch.float64):
        seen, x = seen_by(8, "tanh", "conv 3@8 p1 norm")
        segment, weights, gradient = below(seen, x)
        (layer,), last = segment.layers, chain(seen.model, seen.batch.image_shape).layers[-1]
        out = layer.activate(segment.z)
        solution = LastLayer(7, seen.model(x).softmax(1)[0].detach() - nn.functional.one_hot(torch.tensor(7), 10), out.flatten())
        step = RecursionStep(solution, last, out, last.input_gradient(weights, solution.k))
        off = [
            end(Recursion(weights, sent, "balanced").next_step(step, layer)).residual for sent in (gradient, doubled(gradient, "norm.bias"))
        ]
    assert off[0] < 1e-12
    assert off[1] == pytest.approx(0.5)  # ||k - 2 k|| / ||2 k||, k summed over all places


def test_an_explanation_whose_layers_were_short_proves_nothing_against_others() -> None:
    with precision(torch.float64):
        seen, x = seen_by(8, "tanh", "conv 3@8 p1 norm")
        segment, weights, gradient = below(seen, x)
        (layer,), last = segment.layers, chain(seen.model, seen.batch.image_shape).layers[-1]
        out = layer.activate(segment.z)
        solution = LastLayer(7, seen.model(x).softmax(1)[0].detach() - nn.functional.one_hot(torch.tensor(7), 10), out.flatten())
        tested = RecursionStep(solution, last, out, last.input_gradient(weights, solution.k))
        recursion, short = Recursion(weights, gradient, "balanced"), replace(tested, short="mean2")
        assert len(end(recursion.next_steps([tested, tested], layer))) == 1
        assert len(end(recursion.next_steps([short, tested], layer))) == 2
    unheld = replace(tested, open=segment)
    assert keep_consistent([short, unheld]) == [short, unheld]
    assert keep_consistent([tested, unheld]) == [tested]


def doubled(gradient: Params, ending: str) -> Params:
    """The same with every entry of such tensors twice as large."""
    return {name: 2 * value if name.endswith(ending) else value for name, value in gradient.items()}


def end(search: Search[Any]) -> Any:
    """What a search comes to."""
    values = WithResult(search)
    for _ in values:
        pass
    return values.result


def test_gradient_rows_alone_count_no_rounding_as_equations() -> None:
    with precision(torch.float64):
        x, k = torch.rand(2, 6, 6), torch.zeros(9, 6, 6)
        k[:, 1:3, 1:3] = torch.randn(9, 2, 2)  # of 36 places a kernel of 3 meets 4 x 4 from there
        w = torch.rand(9, 2, 3, 3).requires_grad_()
        (g,) = torch.autograd.grad((nn.functional.conv2d(x[None], w, padding=1)[0] * k).sum(), w)
        nothing = torch.zeros(9, 6, 6, dtype=torch.bool)
        found = solve_together([ConvolutionEquations(w.detach(), torch.zeros(9, 6, 6), nothing, k, g, padding=1)], (6, 6))
        assert found.rank == 2 * 16
        assert torch.allclose(found.x[:, :4, :4], x[:, :4, :4])
        assert found.x[:, 4:].abs().max() < 1e-9  # of several solutions the shortest


def test_the_equations_of_a_segment_hold_of_the_truth_and_are_as_many_as_were_sent() -> None:
    with precision(torch.float64):
        seen, x = seen_by(8, "relu", "conv 3@6 p1 norm - block 8 /2 norm - mean 2")
        segment, weights, gradient = below(seen, x)
        sent = sum(value.numel() for name, value in gradient.items() if name != "linear.weight")
        assert segment.equations(gradient) == 8 * 2 * 2 + sent
        assert segment.off(weights, gradient, x[0]) < 1e-12
        assert segment.off(weights, gradient, x[0] + 0.01) > 1e-3


def test_a_search_yields_after_every_step_so_that_it_can_be_stopped() -> None:
    with precision(torch.float64):
        seen, x = seen_by(8, "tanh", "conv 3@24 p1 norm - mean 2")
        segment, weights, gradient = below(seen, x)
        missed = list(solve_segment(segment, weights, gradient, torch.full_like(x[0], 0.5)))
    assert 2 <= len(missed) <= 40
    assert all(after < before for before, after in pairwise(missed))


def test_a_rounded_kink_comes_back_to_the_kink() -> None:
    layer = ChainLayer("conv", nn.Conv2d(1, 1, 1), (1, 1, 2), (1, 1, 2), nn.LeakyReLU(0.2))
    z = torch.tensor([[[-3.0, 3.0]]])
    assert torch.allclose(layer.activate(z, 1e-3), layer.activate(z))
    assert torch.allclose(layer.activate(z, 1.0) - layer.activate(z), torch.full((1, 1, 2), 0.8 * 3 * math.log(1 + math.exp(-1))))


def test_a_short_layer_that_is_too_large_to_be_solved_with_those_below_it_is_said_to_be_guessed() -> None:
    # 40 x 12^2 outputs, 40 x 3 x 5^2 weights, 2 x 40 of the norm: 8,840 equations in 1,728 unknowns, beyond ten seconds for a step
    seen, _ = seen_by(24, "tanh", "conv 5@40 p2 norm - mean 2")
    told = [str(moment.note["event"]) for moment in solved_by(seen) if "event" in moment.note]
    assert len(told) == 1
    assert told[0].startswith("Layer mean2 has too few equations, and is too large to be solved together")


def test_means_that_are_not_of_squares_side_by_side_have_no_place_in_a_chain() -> None:
    for pooling, left in ((nn.AvgPool2d(2, ceil_mode=True), 9), (nn.AvgPool2d(2, divisor_override=3), 4), (nn.AvgPool2d(3, 2), 4)):
        with pytest.raises(ValueError, match="AvgPool2d"):
            chain(nn.Sequential(pooling, nn.Flatten(), nn.Linear(left, 2)), (1, 5, 5))


def test_to_a_layer_too_large_for_memory_it_does_not_apply() -> None:
    seen, _ = seen_by(64, "leaky_relu", "conv 3@8 p1")  # 3 (64^2 - 72) unknowns that 32,768 weight rows must determine
    with pytest.raises(DoesNotApplyError, match="The equations of conv1 do not fit into memory"):
        solved_by(seen)
