"""The bias attack: exact where the mathematics says so, as noisy as predicted under noise, and a message where it cannot work."""

import re

import pytest
import torch
from small_problems import GRANTED, LABELS, altered, moments, observed, precision, smooth
from torch import nn

from leakage.attacks._dense import roots
from leakage.attacks._rows import ESTIMATES, estimate, rank_one, separate
from leakage.engine.client import gradient_client, weights_of
from leakage.engine.core import Observation, Snapshot
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.evaluation.pairing import pair
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import observe, predicted_labels

ATTACK = Part(id="linear_layer")
MLP, FCN3, LENET = Part(id="mlp", fields={"width": 64}), Part(id="fcn3"), Part(id="lenet")
ACTIVATIONS = ["relu", "leaky_relu", "sigmoid", "tanh"]


def using(kind: str) -> Part:
    return Part(id="linear_layer", fields={"estimate": kind})


def answer(seen: Observation, attack: Part = ATTACK) -> Snapshot:
    """The one snapshot of the attack."""
    (moment,) = moments(attack, seen)
    return moment


def served(model: nn.Module, x: torch.Tensor, y: torch.Tensor, **changes: object) -> Observation:
    """What the server of any model holds, labels granted."""
    client, weights = gradient_client(model.eval()), weights_of(model)
    known = {"model": model, "weights": weights, "update": client(weights, x, y, {})[0], "labels": y, "to_gradient": lambda update: update}
    size = {"size": len(x), "image_shape": tuple(x.shape[1:])}
    return altered(observed(x[:1]), single=lambda x, y: client(weights, x, y, {})[0], **known, **size, **changes)


def error(seen: Observation, x: torch.Tensor, attack: Part = ATTACK) -> float:
    """The largest error of any pixel."""
    return float((answer(seen, attack).x - x).abs().max())


# ---------------------------------------------------------------- one picture, a biased first layer


@pytest.mark.pairwise
@pytest.mark.parametrize("kind", ESTIMATES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("normalise", ["none", "cifar10"])
def test_a_picture_is_read_off_the_first_layer_exactly(kind: str, activation: str, normalise: str) -> None:
    model = Part(id="mlp", fields={"width": 64, "activation": activation, "normalise": normalise})
    x = smooth(channels=3, side=16, seed=3)
    found = answer(observed(x, model=model), using(kind))
    assert float((found.x - x).abs().max()) < 1e-5  # single precision: 1.2e-7 times a few operations
    assert float(found.loss) < 1e-10
    assert "event" not in found.note
    with precision(torch.float64):
        x = smooth(channels=3, side=16, seed=3)
        assert error(observed(x, model=model), x, using(kind)) < 1e-10


def test_a_black_picture_is_a_picture_too() -> None:
    x = torch.zeros(1, 1, 8, 8)
    assert torch.equal(answer(observed(x, model=MLP)).x, x)


@pytest.mark.parametrize("protocol", ["fedavg", "fedprox", "fedadmm"])
def test_local_steps_on_one_picture_hide_nothing(protocol: str) -> None:
    """Every step's rows are copies of the same picture, so their sum is."""
    x = smooth()
    found = answer(observed(x, model=MLP, protocol=Part(id=protocol, fields={"epochs": 5, "rate": 0.1})))
    assert float((found.x - x).abs().max()) < 1e-4  # the update is a difference of weights: it loses two digits
    assert float(found.loss) < 1e-8


# ---------------------------------------------------------------- one picture, back through layers


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_without_any_bias_the_loss_gives_the_last_derivative_and_the_layers_are_undone(activation: str) -> None:
    with precision(torch.float64):
        x = smooth(channels=3, side=16)
        found = answer(observed(x, model=Part(id="fcn3", fields={"activation": activation, "normalise": "cifar10"})))
        assert float((found.x - x).abs().max()) < 1e-8
        assert found.note["read from"] == "linear3 and the loss, 2 layers back"


@pytest.mark.parametrize("label", range(10))
def test_without_any_bias_every_label_is_possible(label: int) -> None:
    with precision(torch.float64):
        model, x = nn.Sequential(nn.Flatten(), nn.Linear(64, 32, bias=False), nn.ReLU(), nn.Linear(32, 10, bias=False)), smooth()
        for layer, scale in ((model[1], 0.3), (model[3], 1.0)):  # so large that the model is sure of some class
            layer.weight.data = scale * torch.randn(layer.weight.shape, generator=torch.Generator().manual_seed(3))
        assert error(served(model, x, torch.tensor([label])), x) < 1e-8


@pytest.mark.parametrize("activation", [nn.ReLU, nn.LeakyReLU, nn.Sigmoid, nn.Tanh, nn.Identity])
def test_a_bias_further_back_is_as_good(activation: type[nn.Module]) -> None:
    with precision(torch.float64), torch.random.fork_rng():
        torch.manual_seed(0)
        before = [nn.Flatten(), nn.Linear(64, 50, bias=False), activation(), nn.Linear(50, 40, bias=False), activation()]
        model, x = nn.Sequential(*before, nn.Linear(40, 30), nn.ReLU(), nn.Linear(30, 10, bias=False)), smooth()
        found = answer(served(model, x, LABELS[:1]))
    assert float((found.x - x).abs().max()) < 1e-8
    assert str(found.note["read from"]).endswith("rows of 5, 2 layers back")


def test_the_nearest_matrix_of_rank_one_is_that_of_the_singular_value_decomposition() -> None:
    for shape in ((5, 9), (9, 5)):
        matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        matrix[:, 2] = 0
        left, size, right = rank_one(matrix)
        u, s, v = torch.linalg.svd(matrix)
        torch.testing.assert_close(size * left.outer(right), s[0] * u[:, 0].outer(v[0]))
        assert right[2] == 0


def test_roots_are_where_the_sign_changes_and_otherwise_the_nearest_place() -> None:
    grid = torch.logspace(-3, 3, 301, dtype=torch.float64)
    found = roots(lambda t: (t - 0.7) * (t - 90), grid)
    torch.testing.assert_close(torch.stack(found), torch.tensor([0.7, 90.0], dtype=torch.float64), rtol=1e-12, atol=0)
    assert roots(lambda t: 1 + (t - 1) ** 2, grid) == [1.0]


# ---------------------------------------------------------------- noise


@pytest.mark.parametrize("scale", [1e-5, 1e-4, 1e-3])
def test_under_noise_least_squares_beat_the_mean_of_all_rows(scale: float) -> None:
    """Sigmoid: every row has a gradient, many a small one. Labels are granted: no estimate uses them, and to read them takes longest."""
    model = Part(id="mlp", fields={"width": 64, "activation": "sigmoid", "depth": 1})
    x, errors = smooth(), {kind: [] for kind in ESTIMATES}
    for seed in range(20):
        noise = Part(id="gaussian_noise", fields={"scale": scale})
        seen = observed(x, model=model, defenses=(noise,), seed=seed, assume=GRANTED)
        for kind in ESTIMATES:
            errors[kind].append((answer(seen, using(kind)).x - x).square().mean())
    median = {kind: float(torch.stack(values).median()) for kind, values in errors.items()}
    assert median["least squares"] < median["single row"]  # 64 rows are averaged instead of one taken
    assert 10 * median["least squares"] < median["mean"]
    assert 10 * median["total least squares"] < median["mean"]


def test_the_error_of_least_squares_is_what_the_formula_says() -> None:
    """Std s sqrt(1 + x^2) / ||d||, for noise of std s on every entry."""
    rng = torch.Generator().manual_seed(5)
    d, x = torch.randn(64, generator=rng, dtype=torch.float64), torch.rand(50, generator=rng, dtype=torch.float64)
    s = 0.01 * float(d.norm())
    draws = torch.stack(
        [
            estimate(
                "least squares",
                d.outer(x) + s * torch.randn(64, 50, generator=rng, dtype=torch.float64),
                d + s * torch.randn(64, generator=rng, dtype=torch.float64),
            )
            for _ in range(1000)
        ]
    )
    ratio = draws.std(0) / (0.01 * (1 + x.square()).sqrt())
    assert ratio.min() > 0.8
    assert ratio.max() < 1.2


def test_total_least_squares_are_not_pulled_towards_zero() -> None:
    """Noise of std s in d shrinks least squares by ||d||^2 / (||d||^2 + m s^2), here 1 / (1 + 0.25); total ones not."""
    rng = torch.Generator().manual_seed(6)
    d, x = torch.ones(4000, dtype=torch.float64), torch.full((20,), 0.8, dtype=torch.float64)
    gradients = d.outer(x) + 0.5 * torch.randn(4000, 20, generator=rng, dtype=torch.float64)
    noisy = d + 0.5 * torch.randn(4000, generator=rng, dtype=torch.float64)
    assert float(estimate("least squares", gradients, noisy).mean()) == pytest.approx(0.8 / 1.25, abs=0.02)
    assert float(estimate("total least squares", gradients, noisy).mean()) == pytest.approx(0.8, abs=0.02)


def test_rows_by_hand() -> None:
    gradients, d = torch.tensor([[1.0], [6.0]]), torch.tensor([1.0, 2.0])  # the rows say 1 and 3
    assert [float(estimate(kind, gradients, d)) for kind in ESTIMATES[:3]] == pytest.approx([3.0, 2.0, (1 + 12) / 5])


def test_an_answer_that_is_no_exact_copy_says_so() -> None:
    seen = observed(smooth(), model=MLP, defenses=(Part(id="gaussian_noise", fields={"scale": 0.01}),))
    found = answer(seen)
    assert str(found.note["event"]).startswith(
        f"The pictures that were read off have a gradient that differs by {float(found.loss) ** 0.5:.0%} "
    )


def test_rows_below_the_threshold_are_left_out() -> None:
    seen = observed(smooth(), model=MLP)
    d = seen.received.update["linear1.bias"].abs()
    for threshold in (0.5, 1.0):
        found = answer(seen, Part(id="linear_layer", fields={"threshold": threshold}))
        assert found.note["read from"] == f"{int((d >= threshold * d.max()).sum())} rows of linear1"


# ---------------------------------------------------------------- a batch


def own_rows(x: torch.Tensor) -> nn.Module:
    """An MLP with ReLU: three rows of its first layer are active for one picture only, for every picture; other rows are random."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 60), nn.ReLU(), nn.Linear(60, 10))
    flat = x.flatten(1)
    towards = flat - flat.mean(0)  # (B, n)
    seen = towards @ flat.T  # (B rows, B pictures)
    others = seen - torch.diag(torch.full((len(x),), torch.inf))
    with torch.no_grad():
        for number in range(3):
            places = slice(number * len(x), (number + 1) * len(x))
            model[1].weight[places] = towards
            model[1].bias[places] = -(seen.diagonal() + (1 + number) * others.amax(1)) / (2 + number)
    active = model[1](flat)[:, : 3 * len(x)] > 0
    assert torch.equal(active, torch.eye(len(x), dtype=torch.bool).repeat(1, 3))
    return model


@pytest.mark.parametrize("y", [[7, 2, 4, 0], [3, 3, 3, 3], [5, 1, 5, 1]])
def test_pictures_of_a_batch_with_rows_of_their_own_come_back_exactly_and_in_the_order_of_their_labels(y: list[int]) -> None:
    x, labels = smooth(4, seed=2), torch.tensor(y)
    found = answer(served(own_rows(x), x, labels))
    places = pair(found.x, x)
    assert float((found.x[places] - x).abs().max()) < 1e-5
    assert torch.equal(found.y, labels)
    assert torch.equal(labels[places], labels)  # a picture may only change places with one of its own class
    assert float(found.loss) < 1e-10
    assert "event" not in found.note


def test_a_wide_untrained_mlp_gives_a_batch_of_four_away() -> None:
    x = smooth(4, channels=3, side=16)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(768, 1024), nn.ReLU(), nn.Linear(1024, 10))
    found = answer(served(model, x, torch.tensor([7, 2, 4, 1])))
    torch.testing.assert_close(found.x, x, atol=1e-5, rtol=0)


def test_granted_labels_keep_their_order_and_pictures_follow() -> None:
    x = smooth(3)
    found = answer(observed(x, model=Part(id="mlp", fields={"width": 512}), assume=GRANTED))
    assert torch.equal(found.y, LABELS)
    torch.testing.assert_close(found.x, x, atol=1e-5, rtol=0)


def test_a_batch_without_rows_of_one_picture_is_said_to_be_mixed() -> None:
    found = answer(observed(smooth(3), model=Part(id="mlp", fields={"width": 64, "activation": "sigmoid"})))
    assert found.note["event"] == "Several rows agree on 0 of the 3 pictures; the others shown may be mixtures of several."


def test_rows_are_grouped_by_agreement_and_what_is_no_picture_is_left_out() -> None:
    a, b, c = (torch.full((9,), value, dtype=torch.float64) for value in (0.2, 0.6, 1.0))
    rows = torch.stack([(a + b) / 2, a, b, 2 * c, b, a, -a, a, c])
    found, sizes = separate(rows, torch.ones(9, dtype=torch.float64), 3)
    torch.testing.assert_close(found, torch.stack([a, b, c]))  # c stands alone, but further off than the mixture
    assert sizes == [3, 2, 1]


def test_rows_that_agree_are_averaged_by_the_square_of_their_derivative() -> None:
    rows = torch.tensor([[0.5], [0.5 + 3e-7]], dtype=torch.float64)
    found, sizes = separate(rows, torch.tensor([1.0, 2.0], dtype=torch.float64), 2)
    assert float(found) == pytest.approx(0.5 + 0.8 * 3e-7, abs=1e-12)
    assert sizes == [2]


# ---------------------------------------------------------------- where nothing can be read off


def dead() -> nn.Module:
    """An MLP with a first layer that is never active."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 10))
    nn.init.constant_(model[1].bias, -1e3)
    return model


def stuck(activation: nn.Module, **last: bool) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8, bias=False), activation, nn.Linear(8, 10, **last))


def negative(model: nn.Module) -> nn.Module:
    nn.init.constant_(model[1].weight, -1.0)
    return model


def one(model: nn.Module) -> Observation:
    return served(model, smooth(), LABELS[:1])


FAILURES = {
    "a convolution first": (
        lambda: observed(smooth(), model=LENET),
        "first layer is fully connected, as the MLP's; here it is a convolution.",
    ),
    "another kind first": (lambda: one(nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 10))), "of kind AvgPool2d."),
    "no linear layer at all": (lambda: one(nn.Sequential(nn.Conv2d(1, 10, 8), nn.Flatten())), "here it is a convolution."),
    "a batch without a bias": (lambda: observed(smooth(3), model=FCN3), "Without a bias in the first layer a batch cannot be told apart"),
    "dead units": (lambda: one(dead()), "The bias of 1 receives no gradient (dead units"),
    "dead units of a batch": (lambda: served(dead(), smooth(3), LABELS), "The bias of 1 receives no gradient (dead units"),
    "dead units below a bias": (lambda: one(negative(stuck(nn.ReLU()))), "No gradient passes through 1: its units are dead"),
    "dead units without a bias": (lambda: one(negative(stuck(nn.ReLU(), bias=False))), "3 receives no gradient (dead units"),
    "no way back": (lambda: one(stuck(nn.GELU(), bias=False)), "there is no way back through GELU."),
}


@pytest.mark.parametrize("name", FAILURES)
def test_where_nothing_can_be_read_off_it_does_not_apply_and_says_why(name: str) -> None:
    make, sentence = FAILURES[name]
    with pytest.raises(DoesNotApplyError, match=re.escape(sentence)):
        answer(make())


def test_numbers_that_are_not_finite_are_said() -> None:
    seen = observed(smooth(), model=MLP, assume=GRANTED)
    seen.received.update["linear1.weight"][0, 0] = torch.nan
    with pytest.raises(DoesNotApplyError, match=r"^The gradient of linear1\.weight holds numbers that are not finite"):
        answer(seen)


@pytest.mark.parametrize("task", ["flipped", "two"])
def test_a_single_output_without_any_bias_is_undone_from_its_logit(task: str) -> None:
    with precision(torch.float64):
        x = smooth(channels=1, side=8)
        asked = Experiment(model=Part(id="fcn3"), task=task)
        seen = observe(asked, x, predicted_labels(asked, x))
        last = moments(Part(id="linear_layer"), seen)[-1]
    assert float((last.x - x).abs().max()) < 1e-9
