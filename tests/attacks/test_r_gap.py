"""R-GAP: exact pictures from one gradient, both roots of the logit, and messages where the equations do not suffice."""

import math

import pytest
import torch
from small_problems import altered, moments, observed, precision, smooth
from torch.nn import functional as F

from leakage.engine.core import Observation, Params, Snapshot, generator
from leakage.engine.equations import ConvolutionEquations, gradient_rows, least_squares, solve_as_published, solve_together, weight_rows
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.whole_distance import flatten
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.workers.adapter import observe, plugin, predicted_labels

NET_A = Part(id="rgap_net")
STAR = Part(id="lenet", fields={"activation": "leaky_relu", "bias": False, "initialisation": "default"})


def experiment(model: Part, task: str, **settings: object) -> Experiment:
    return Experiment(model=model, task=task, attack=Part(id="r_gap"), **settings)


def seen_by(asked: Experiment, x: torch.Tensor) -> tuple[Observation, torch.Tensor]:
    y = predicted_labels(asked, x) if asked.task != "classes" else torch.tensor([7])
    return observe(asked, x, y), y


def solved_by(seen: Observation, **fields: str) -> list[Snapshot]:
    return list(plugin("attack", Part(id="r_gap", fields=fields)).run(seen, generator(1, "attack")))


def error(guess: torch.Tensor, truth: torch.Tensor) -> float:
    return float((guess - truth).square().mean())


# ---------------------------------------------------------------- the picture


@pytest.mark.parametrize(
    ("model", "side"),
    [
        (NET_A, 12),
        (STAR, 12),
        (Part(id="cnn6"), 16),
        (Part(id="fcn3"), 8),
        (Part(id="cnn6", fields={"activation": "relu"}), 16),
        (Part(id="lenet", fields={"activation": "relu", "initialisation": "default"}), 12),
        (Part(id="lenet"), 12),  # sigmoid, with biases
        (Part(id="lenet", fields={"activation": "tanh", "initialisation": "default"}), 12),
        (Part(id="rgap_net", fields={"normalise": "cifar10"}), 12),
    ],
    ids=["A", "LeNet*", "CNN6", "FCN3", "CNN6 ReLU", "LeNet ReLU", "LeNet", "LeNet tanh", "A normalised"],
)
@pytest.mark.parametrize("task", ["flipped", "classes"])
def test_the_picture_is_exact_where_the_equations_suffice(model: Part, side: int, task: str) -> None:
    with precision(torch.float64):
        x = smooth(channels=3, side=side)
        seen, y = seen_by(experiment(model, task), x)
        last = solved_by(seen)[-1]
    assert error(last.x, x) < 1e-18
    assert last.y.tolist() == y.tolist()
    assert float(last.loss) < 1e-9


def test_a_float32_gradient_gives_the_picture_as_exactly_as_it_is_itself() -> None:
    x = smooth(channels=3, side=12)
    seen, _ = seen_by(experiment(STAR, "flipped"), x)
    assert error(solved_by(seen)[-1].x, x) < 1e-8


def test_every_layer_of_the_recursion_is_shown_with_its_equations() -> None:
    with precision(torch.float64):
        x = smooth(channels=3, side=12)
        seen, _ = seen_by(experiment(STAR, "flipped"), x)
        shown = solved_by(seen)
    assert [moment.note["layer"] for moment in shown[:-1]] == ["linear", "conv3", "conv2", "conv1"]
    first = shown[3].note
    assert first["unknowns"] == first["rank"] == 3 * 12 * 12
    assert first["equations"] == 900 + 12 * 6 * 6
    assert first["residual"] < 1e-12
    (view,) = shown[2].views.values()
    truth = seen.model.act1(seen.model.conv1(x))
    assert torch.allclose(view, truth[0])  # what enters conv2


def test_with_too_few_equations_it_says_so_and_the_rank_is_that_of_the_system() -> None:
    with precision(torch.float64):
        x = smooth(channels=3, side=12)
        asked = experiment(Part(id="rgap_net", fields={"net": "B"}), "flipped")
        seen, _ = seen_by(asked, x)
        shown = solved_by(seen)
        weight = seen.received.weights["conv1.weight"].detach()
        k = torch.randn(3, 9, 9)
        system = torch.cat([torch.block_diag(*[gradient_rows(k, 4, 1, 0, (12, 12))] * 3), weight_rows(weight, 1, 0, (12, 12))])
        rank = int(torch.linalg.matrix_rank(system))
    assert shown[-2].note["rank"] == rank < 432
    assert f"{rank:,} of 432 unknowns" in shown[-2].note["event"]
    assert error(shown[-1].x, x) > 1e-3


def test_to_a_network_that_is_no_chain_it_does_not_apply() -> None:
    with pytest.raises(DoesNotApplyError, match="This network has block1-1"):
        solved_by(observed(smooth(channels=3, side=32), model=Part(id="he_resnet")))


@pytest.mark.parametrize(("filling", "where"), [(0.0, "The last layer's gradient is zero"), (math.nan, "numbers that are not finite")])
def test_to_a_gradient_of_nothing_it_does_not_apply(filling: float, where: str) -> None:
    seen = observed(smooth(side=8), model=Part(id="fcn3"))
    with pytest.raises(DoesNotApplyError, match=where):
        solved_by(altered(seen, update={name: torch.full_like(value, filling) for name, value in seen.received.update.items()}))


def test_a_gradient_that_leads_nowhere_gets_a_sentence_and_grey() -> None:
    seen = observed(smooth(side=8), model=Part(id="fcn3", fields={"activation": "relu"}))
    with torch.no_grad():  # dead units below the last two layers
        seen.model.linear2.weight.zero_()
    ones = {name: torch.ones_like(value) for name, value in seen.received.update.items()}
    last = solved_by(altered(seen, update=ones, labels=torch.tensor([7])))[-1]  # of outputs that are all 0 no label can be read
    assert "linear1" in last.note["event"]
    assert bool((last.x == 0.5).all())


def test_of_a_batch_it_finds_one_mixture_in_the_span_of_the_pictures() -> None:
    with precision(torch.float64):
        x = smooth(2, channels=1, side=8)
        shown = solved_by(observed(x, model=Part(id="fcn3", fields={"activation": "leaky_relu"})))
        mixture = shown[-1].x[0].flatten()
        weights = torch.linalg.lstsq(x.flatten(1).T, mixture[:, None]).solution
        off = (x.flatten(1).T @ weights)[:, 0] - mixture
    assert "mixture" in shown[0].note["event"]
    assert torch.equal(shown[-1].x[0], shown[-1].x[1])
    assert float(off.norm() / mixture.norm()) < 1e-6


# ---------------------------------------------------------------- the logit


def test_a_true_label_leaves_two_pictures_of_one_gradient_and_pixels_decide_between_them() -> None:
    with precision(torch.float64):
        x = smooth(channels=3, side=12)
        seen, _ = seen_by(experiment(NET_A, "two"), x)
        last = solved_by(seen)[-1]
        (one, two) = last.views.values()
        ratio = float((one / two).mean())
        gradients: list[Params] = [seen.gradient(picture, last.y) for picture in (one, two)]
        apart = (flatten(gradients[0]) - flatten(gradients[1])).norm() / flatten(gradients[0]).norm()
    assert last.note["explanations"] == 2
    assert torch.allclose(one, ratio * two)
    assert float(apart) < 1e-12
    assert error(last.x, x) < 1e-18  # the other one leaves [0, 1]
    assert "event" not in last.note


def test_where_both_pictures_are_pictures_none_is_called_the_answer() -> None:
    with precision(torch.float64):
        x = 0.5 * smooth(channels=3, side=12)
        seen, y = seen_by(experiment(NET_A, "two"), x)
        with torch.no_grad():  # mu = 1.2: the twin, at the root 1.36, is 1.14 times as bright
            seen.model.linear.weight.mul_(1.2 / seen.model(x)[0, 1].abs())
        seen = altered(seen, update={name: value.detach() for name, value in seen.replay.single(x, y).items()})
        last = solved_by(seen)[-1]
        errors = sorted(error(picture, x) for picture in last.views.values())
    assert "2 pictures explain this gradient" in last.note["event"]
    assert errors[0] < 1e-18 < 1e-4 < errors[1]


def test_a_label_that_is_not_certain_is_found_by_its_equations() -> None:
    with precision(torch.float64):
        x = smooth(channels=3, side=12)
        for seed in range(1, 7):
            seen, y = seen_by(experiment(STAR, "flipped", seed=seed), x)
            assert solved_by(seen)[-1].y.tolist() == y.tolist()


def test_a_granted_label_is_used() -> None:
    with precision(torch.float64):
        x = smooth(channels=3, side=12)
        seen, y = seen_by(experiment(STAR, "flipped", assume=Assumptions(labels=True)), x)
        last = solved_by(seen)[-1]
    assert last.note["label rule"] == "granted"
    assert last.y.tolist() == y.tolist()


# ---------------------------------------------------------------- equations


@pytest.mark.parametrize(
    ("channels", "sides", "filters", "size", "stride", "padding"),
    [(3, (9, 8), 4, 3, 2, 1), (2, (7, 7), 5, 4, 1, 0), (3, (10, 10), 4, 4, 2, 2)],
)
def test_the_rows_are_those_of_the_convolution_and_of_its_gradient(
    channels: int, sides: tuple[int, int], filters: int, size: int, stride: int, padding: int
) -> None:
    with precision(torch.float64):
        x, w = torch.rand(channels, *sides), torch.rand(filters, channels, size, size).requires_grad_()
        z = F.conv2d(x[None], w, stride=stride, padding=padding)[0]
        k = torch.randn_like(z)
        (g,) = torch.autograd.grad((z * k).sum(), w)
        assert torch.allclose(weight_rows(w.detach(), stride, padding, sides) @ x.flatten(), z.detach().flatten())
        assert torch.allclose(gradient_rows(k, size, stride, padding, sides) @ x.flatten(1).T, g.permute(0, 2, 3, 1).flatten(0, 2))


def test_both_ways_of_solving_agree_where_the_rank_is_full_and_where_it_is_not() -> None:
    with precision(torch.float64):
        for filters in (8, 3):
            x, w = torch.rand(3, 8, 8), torch.rand(filters, 3, 3, 3).requires_grad_()
            z = F.conv2d(x[None], w, padding=1, stride=2)[0]
            k = torch.randn_like(z)
            (g,) = torch.autograd.grad((z * k).sum(), w)
            given = (k, g, w.detach(), z.detach(), torch.ones_like(z, dtype=torch.bool))
            ours = solve_together([ConvolutionEquations(w.detach(), z.detach(), given[-1], k, g, stride=2, padding=1)], (8, 8))
            theirs = solve_as_published(*given, stride=2, padding=1, sides=(8, 8))
            assert ours.rank == theirs.rank
            assert (ours.equations, ours.unknowns) == (theirs.equations, theirs.unknowns) == (27 * filters + 16 * filters, 192)
            assert torch.allclose(ours.x, theirs.x, atol=1e-4)  # float32 goes into theirs
            assert bool(torch.allclose(ours.x, x)) == (ours.rank == 192) == (filters == 8)


def test_faint_gradient_rows_are_used_and_unknown_outputs_are_not() -> None:
    with precision(torch.float64):
        x, w = torch.rand(3, 8, 8), torch.rand(8, 3, 3, 3).requires_grad_()
        z = F.conv2d(x[None], w, padding=1, stride=2)[0]
        k = torch.randn_like(z)
        k[1:] *= 1e-5  # far below STRONG: one filter and the weight rows alone would not suffice
        (g,) = torch.autograd.grad((z * k).sum(), w)
        found = solve_together(
            [ConvolutionEquations(w.detach(), z.detach(), torch.ones_like(z, dtype=torch.bool), k, g, stride=2, padding=1)], (8, 8)
        )
        assert torch.allclose(found.x, x, atol=1e-6)
        known = torch.rand(z.shape) < 0.9
        junk = torch.where(known, z.detach(), 99.0)
        masked = solve_together([ConvolutionEquations(w.detach(), junk, known, k, g, stride=2, padding=1)], (8, 8))
        assert masked.equations == found.equations - int((~known).sum())
        assert torch.allclose(masked.x, x, atol=1e-6)


def test_least_squares_is_the_shortest_solution_with_its_rank() -> None:
    with precision(torch.float64):
        tall = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
        x, rank, condition = least_squares(tall, torch.tensor([3.0, 4.0, 5.0]))
        assert (x.tolist(), rank, condition) == (pytest.approx([3.0, 2.0]), 2, pytest.approx(2.0))
        x, rank, condition = least_squares(torch.tensor([[1.0, 1.0]]), torch.tensor([4.0]))
        assert (x.tolist(), rank, condition) == (pytest.approx([2.0, 2.0]), 1, math.inf)
        x, rank, condition = least_squares(torch.tensor([[1.0, 1.0], [2.0, 2.0]]), torch.tensor([4.0, 8.0]))
        assert (x.tolist(), rank, condition) == (pytest.approx([2.0, 2.0]), 1, math.inf)


@pytest.mark.parametrize("seed", [1, 3, 13])
def test_what_leads_beyond_all_numbers_is_answered_with_grey(seed: int) -> None:
    settings = {"model": Part(id="lenet"), "seed": seed, "precision": "float64", "assume": {"adaptive": False}}
    seen = observed(smooth(1, 3, 32), **settings, defenses=(Part(id="minmax_sampling", fields={"ratio": 0.05}),))
    answer = moments(Part(id="r_gap"), seen)[-1]
    assert "R-GAP can go no further" in str(answer.note["event"])
    assert float(answer.x.std()) == 0
