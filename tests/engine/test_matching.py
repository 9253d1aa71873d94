"""The parts of gradient matching, compared with computations by hand: distances, weights, starts, priors, schedules, signs."""

import math

import pytest
import torch
from scipy.ndimage import median_filter as scipy_median
from small_problems import TINY, by_hand, moments, observed, short, smooth
from torch import nn

from leakage.attacks._adam import Descent
from leakage.engine.core import generator
from leakage.engine.matching import (
    Smoothness,
    distance,
    importance,
    isotropic_variation,
    median_filter,
    nonsmooth_layer,
    start,
    total_variation,
)
from leakage.engine.whole_distance import WholeDistance, join_distances
from leakage.spec.experiment import Part

TARGET = {"a": torch.tensor([3.0, 4.0]), "b": torch.tensor([[0.0], [12.0]])}  # of length 13
TWO = {"a": torch.tensor([[3.0, 4.0], [0.0, 0.0]]), "b": torch.tensor([[[0.0], [12.0]], [[5.0], [12.0]]])}  # the target, and another guess


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("cosine", 1 - 144 / (13 * 13)),
        ("squared", 9 + 16 + 25),
        ("absolute", 3 + 4 + 5),
        ("largest", 4 + 5),
        ("cosine per layer", (1 + 1 - 12 / 13) / 2),  # nothing is left of layer a
    ],
)
def test_distances_of_two_guesses_are_those_of_a_pocket_calculator(kind: str, other: float) -> None:
    found = distance(kind, TARGET)(TWO)
    assert found.tolist() == pytest.approx([0, other], abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("cosine", 1 - 0.25 * 144 / (math.sqrt(25 + 36) * math.sqrt(0.25 * 169))),
        ("squared", 25 + 0.25 * 25),
        ("absolute", 7 + 0.25 * 5),
        ("largest", 4 + 0.25 * 5),
        ("cosine per layer", (1 + 0.25 * (1 - 12 / 13)) / 2),
    ],
)
def test_weights_of_layers_enter_every_distance(kind: str, other: float) -> None:
    found = distance(kind, TARGET, {"a": 1.0, "b": 0.25})(TWO)
    assert found.tolist() == pytest.approx([0, other], abs=1e-6)


def test_a_layer_that_is_left_out_does_not_count() -> None:
    assert distance("squared", TARGET, {"b": 1.0})(TWO).tolist() == [0, 25]


def test_layers_are_chosen_by_place_or_by_size_and_weighed_as_published() -> None:
    target = {name: torch.full((2,), float(size)) for name, size in zip("abcdefghijkl", range(12), strict=True)}
    assert list(importance(target, "first half", "equal")) == list("abcdef")
    assert list(importance(target, "last half", "equal")) == list("ghijkl")
    assert list(importance(target, "largest 10", "equal")) == list("cdefghijkl")
    assert list(importance(target, "largest 50", "equal")) == list("abcdefghijkl")
    three = {name: target[name] for name in "abc"}
    assert list(importance(three, "all", "linear").values()) == pytest.approx([1, 2 / 3, 1 / 3])
    soft = torch.tensor([3.0, 2.0, 1.0]).softmax(0)
    assert list(importance(three, "all", "exponential").values()) == pytest.approx((soft / soft[0]).tolist())


def test_variations_of_a_ramp_and_of_a_step() -> None:
    ramp = torch.arange(4.0).repeat(1, 1, 1, 4, 1)  # one guess, one picture, one colour: 4 x 4, rising by 1 to the right
    both = torch.cat([ramp, torch.full_like(ramp, 7.0)])
    assert total_variation(both).tolist() == [1, 0]
    assert isotropic_variation(both + both.transpose(3, 4)).tolist() == pytest.approx([math.sqrt(2), 0], abs=1e-3)


def test_the_median_filter_is_that_of_scipy() -> None:
    x = torch.rand((2, 3, 1, 6, 5), generator=generator(1, "x"))
    expected = torch.from_numpy(scipy_median(x.numpy(), size=(1, 1, 1, 3, 3), mode="mirror"))
    assert torch.equal(median_filter(x), expected)


def test_starts_are_what_they_are_called() -> None:
    seen = observed(smooth(3, side=16))
    normal, uniform, grey, tiles = (start(kind, seen, generator(1, "a")) for kind in ("normal", "uniform", "grey", "tiles"))
    assert {x.shape for x in (normal, uniform, grey, tiles)} == {(3, 1, 16, 16)}
    assert float(normal.std()) == pytest.approx(1, abs=0.1)  # 768 numbers: 2.6 % standard error
    assert (float(uniform.min()), float(uniform.max())) == (pytest.approx(-1, abs=0.02), pytest.approx(1, abs=0.02))
    assert float(grey.abs().max()) == 0
    assert torch.equal(tiles[..., :12, :], tiles[..., 4:, :])
    assert torch.equal(tiles[..., :12], tiles[..., 4:])
    assert float(tiles[..., :4, :4].std()) > 0.5


# ---------------------------------------------------------------- Adam's settings


def test_step_sizes_fall_as_their_schedule_says() -> None:
    steps = Descent(steps=4800, step_size=0.1)
    assert [steps._step_size_fraction(step) for step in (1, 1799, 1800, 3001, 4300)] == pytest.approx(
        [1, 1, 0.1, 0.01, 0.001]
    )  # after 3/8, 5/8, 7/8
    cosine = Descent(steps=1000, step_size=0.1, schedule="cosine")
    assert [cosine._step_size_fraction(step) for step in (25, 501, 1000)] == pytest.approx(
        [0.5, 0.5, 0], abs=1e-3
    )  # 25 of 50 steps of warm-up
    assert Descent(steps=10, step_size=0.1, schedule="constant")._step_size_fraction(10) == 1


def test_gradients_are_used_as_they_are_by_sign_or_by_a_sign_that_softens() -> None:
    gradient, rng = torch.tensor([-2.0, 0.0, 0.1]), generator(1, "a")
    assert torch.equal(Descent(steps=10, step_size=1, signed=False)._search_direction(gradient, 1, rng), gradient)
    assert Descent(steps=10, step_size=1)._search_direction(gradient, 1, rng).tolist() == [-1, 0, 1]
    soft = Descent(steps=10, step_size=1, soft=True)
    assert torch.allclose(soft._search_direction(gradient, 1, rng), gradient.tanh())
    assert torch.allclose(soft._search_direction(gradient, 6, rng), (0.5 * gradient).tanh() / 0.5)
    pushed = Descent(steps=10, step_size=2, signed=False, jitter=0.5, schedule="constant")._search_direction(torch.zeros(10_000), 1, rng)
    assert float(pushed.std()) == pytest.approx(1, abs=0.03)  # 0.5 of a step of 2; standard error 0.7 %


def test_gradients_reach_adam_in_the_memory_order_of_the_picture() -> None:
    """Convolutions answer in channels-last order; Adam's fused kernel would give the gradient of one pixel to another."""
    gradient = torch.randn((1, 2, 3, 4, 5), generator=generator(1, "a"))
    other = gradient[0].to(memory_format=torch.channels_last)[None]
    assert other.stride() != gradient.stride()
    for settings in ({"signed": True}, {"signed": False}, {"soft": True}, {"signed": False, "jitter": 1e-9}):
        turned = Descent(steps=10, step_size=1, **settings)._search_direction(other, 1, generator(1, "b"))
        assert turned.is_contiguous()
        torch.testing.assert_close(turned, Descent(steps=10, step_size=1, **settings)._search_direction(gradient, 1, generator(1, "b")))


@pytest.mark.parametrize("setting", [{"soft": True, "schedule": "cosine"}, {"distance": "squared"}, {"start": "tiles"}, {"median": True}])
@pytest.mark.long
def test_every_way_of_inverting_gradients_finds_the_picture(setting: dict[str, object]) -> None:
    x = smooth()
    run = moments(short("inverting_gradients", steps=300, **setting), observed(x))
    assert float((run[-1].x - x).square().mean()) < 0.1 * float((run[0].x - x).square().mean())


def test_the_best_picture_on_the_way_is_kept_when_asked() -> None:
    """(x - 0.5)^2 with steps of 0.3 that never shrink: the search jumps about, and its last picture is not its best."""
    seen = by_hand(lambda x: x - 0.5, torch.zeros(1, 1, 1, 1))
    fields = {"schedule": "constant", "step_size": 0.3, "distance": "squared", "tv_weight": 0.0, "starts": 1, "steps": 40}
    last, best = (moments(short("inverting_gradients", keep_best=keep, **fields), seen) for keep in (False, True))
    lowest = min(float(moment.loss) for moment in best[:-1])
    assert float(best[-1].loss) == pytest.approx(lowest, abs=1e-9)
    assert float(last[-1].loss) > lowest


@pytest.mark.parametrize("how", ["mean", "median"])
def test_starts_are_joined_pixel_by_pixel(how: str) -> None:
    seen, rng = observed(smooth()), generator(1, "attack")
    fields = {"steps": 1, "starts": 3, "step_size": 0.0001, "clamped": False}
    answer = moments(short("inverting_gradients", combine=how, **fields), seen)[-1]
    starts = torch.stack([start("normal", seen, rng) for _ in range(3)])
    joined = starts.mean(0) if how == "mean" else starts.median(0).values
    torch.testing.assert_close(answer.x, joined, atol=1e-3, rtol=0)  # one step of 0.0001 away
    assert answer.note["start"] == f"{how} of 3"


def test_of_two_starts_one_may_diverge_and_the_other_is_shown() -> None:
    seen = by_hand(lambda x: x.log(), torch.zeros(1, 1, 1, 1))  # a start below 0 has no logarithm
    fields = {"starts": 4, "steps": 5, "clamped": False, "distance": "squared", "tv_weight": 0.0}
    run = moments(short("inverting_gradients", **fields), seen)
    events = [str(moment.note["event"]) for moment in run if "event" in moment.note]
    assert 1 <= len(events) <= 3
    assert all("failed (diverged): another is shown." in event for event in events)
    assert float(run[-1].x) > 0


# ---------------------------------------------------------------- activations


def test_layers_made_of_straight_pieces_are_named() -> None:
    assert nonsmooth_layer(nn.Sequential(nn.Linear(2, 2), nn.Sigmoid())) == ""
    assert nonsmooth_layer(nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))) == "ReLU"
    assert nonsmooth_layer(nn.Sequential(nn.MaxPool2d(2))) == "MaxPool2d"


@pytest.mark.parametrize("name", ["dlg", "idlg", "dlg_admm", "idlg_admm"])
@pytest.mark.parametrize(("activation", "warned"), [("sigmoid", False), ("relu", True)])
def test_a_search_that_needs_second_derivatives_warns_where_there_are_none(name: str, activation: str, warned: bool) -> None:
    model = Part(id="mlp", fields={**TINY.fields, "activation": activation})
    run = moments(short(name, steps=1, restarts=1), observed(smooth(), model=model))
    told = [str(moment.note.get("event", "")) for moment in run]
    assert [words.startswith("This model has ReLU layers") for words in told[:2]] == [warned, False]


# ---------------------------------------------------------------- derivatives by formula


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["cosine", "squared", "absolute"])
def test_a_distance_has_the_derivative_of_autograd(kind: str, weighted: bool) -> None:
    """Of two guesses; weighted: one tensor is left out, one counts twice, and single entries have weights of their own."""
    rng = generator(1, "derivative")
    shapes = {"a": (3, 2), "b": (4,), "c": (2,)}
    target = {name: torch.randn(shape, generator=rng).double() for name, shape in shapes.items()}
    update = {name: torch.randn((2, *shape), generator=rng).double().requires_grad_() for name, shape in shapes.items()}
    entry_weights = {"a": torch.rand(shapes["a"], generator=rng).double()} if weighted else None
    measure = distance(kind, target, {"a": 2.0, "b": 1.0} if weighted else None, entry_weights)
    assert isinstance(measure, WholeDistance)
    distances, derivatives = measure.derivative({name: value.detach() for name, value in update.items()})
    expected = measure(update)
    followed = torch.autograd.grad(expected.sum(), list(update.values()), materialize_grads=True)
    torch.testing.assert_close(distances, expected.detach(), rtol=1e-12, atol=0)
    for found, wanted in zip(derivatives.values(), followed, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-14)


def test_smoothness_has_the_derivative_of_autograd() -> None:
    x = torch.randn((2, 3, 1, 5, 4), generator=generator(1, "derivative")).double().requires_grad_()
    (expected,) = torch.autograd.grad(Smoothness(0.3)(x).sum(), x)
    torch.testing.assert_close(Smoothness(0.3).derivative(x.detach()), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", ["cosine", "squared", "absolute"])
def test_joined_distances_give_each_gradient_what_its_own_distance_gives(kind: str) -> None:
    rng = generator(1, "joined")
    targets = [{"a": torch.randn((3, 2), generator=rng).double()} for _ in range(2)]
    update = {"a": torch.randn((2, 3, 2), generator=rng).double()}
    each = [distance(kind, target) for target in targets]
    joined = join_distances(each)
    assert joined is not None
    distances, derivatives = joined.derivative(update)
    torch.testing.assert_close(joined(update), distances, rtol=1e-12, atol=0)
    for lane, one in enumerate(each):
        assert isinstance(one, WholeDistance)
        found, derivative = one.derivative({"a": update["a"][lane : lane + 1]})
        torch.testing.assert_close(distances[lane : lane + 1], found, rtol=1e-12, atol=0)
        torch.testing.assert_close(derivatives["a"][lane : lane + 1], derivative["a"], rtol=1e-12, atol=1e-14)
    assert join_distances([each[0], distance("largest", targets[1])]) is None
