"""H-GAP, R-GAP followed by DLG, and twin data: which picture they choose, and that they say so."""

import pytest
import torch
from small_problems import altered, moments, precision, smooth
from torch.nn import functional as F

from leakage.attacks import twin_data
from leakage.attacks.h_gap import salt_and_pepper
from leakage.engine.core import DoesNotApplyError, Observation
from leakage.engine.whole_distance import flatten
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import observe, predicted_labels

NET_A = Part(id="rgap_net")
NET_B = Part(id="rgap_net", fields={"net": "B"})
STAR = Part(id="lenet", fields={"activation": "leaky_relu", "bias": False, "initialisation": "default"})


def seen_by(x: torch.Tensor, model: Part, task: str = "flipped") -> Observation:
    experiment = Experiment(model=model, task=task)
    return observe(experiment, x, predicted_labels(experiment, x))


def apart(seen: Observation, one: torch.Tensor, two: torch.Tensor, y: torch.Tensor) -> float:
    first, second = flatten(seen.gradient(one, y)), flatten(seen.gradient(two, y))
    return float((first - second).norm() / first.norm())


def test_isolated_noise_scores_more_than_the_smooth_picture_it_lies_on() -> None:
    flat = torch.full((1, 1, 5, 5), 0.3)
    dot = flat.clone()
    dot[0, 0, 2, 2] = 1.2  # 0.9 above; the mean there rises by 0.1, and by 0.1 at its 8 neighbours
    assert salt_and_pepper(flat) == pytest.approx(0, abs=1e-6)
    assert salt_and_pepper(dot) == pytest.approx((0.8**2 + 8 * 0.1**2) ** 0.5, abs=1e-6)
    assert salt_and_pepper(flat * torch.nan) == float("inf")


def test_h_gap_shows_both_ways_and_keeps_the_one_with_less_isolated_noise() -> None:
    with precision(torch.float64):
        x = smooth(channels=3, side=12)
        for model in (STAR, NET_B):
            shown = moments(Part(id="h_gap", fields={"steps": 6, "restarts": 1}), seen_by(x, model))
            last = shown[-1]
            scores = {name: salt_and_pepper(picture) for name, picture in last.views.items()}
            assert last.note["way"] == min(scores, key=lambda name: scores[name])
            assert torch.equal(last.x, last.views[str(last.note["way"])])
            assert {moment.note["way"] for moment in shown} == {"R-GAP", "DLG"}
            assert [last.note[f"noise of {name}"] for name in scores] == pytest.approx(list(scores.values()))
    assert scores["R-GAP"] > 0


def test_dlg_starts_at_r_gaps_picture_and_its_answer_is_never_further_from_the_gradient() -> None:
    x = smooth(channels=3, side=12)
    seen = seen_by(x, Part(id="lenet"), "two")  # float32: the equations leave something to polish
    solved = moments(Part(id="r_gap"), seen)[-1]
    shown = moments(Part(id="r_gap_dlg", fields={"steps": 8}), seen)
    searched = [moment for moment in shown[:-1] if moment.note["way"] == "DLG"]
    assert torch.equal(searched[0].x, solved.x)
    assert float(shown[-1].loss) == min(float(moment.loss) for moment in shown[-len(searched) - 2 :])
    assert set(shown[-1].views) == {"R-GAP", "DLG"}


def twins(x: torch.Tensor) -> Observation:
    """Net A with mu = 1.2 for x: the other root is 1.36."""
    seen = seen_by(x, NET_A, "two")
    with torch.no_grad():
        z = seen.model(x)[0, 1]
        seen.model.linear.weight.mul_(1.2 / z.abs())
    y = (z > 0).long().view(1)
    return altered(seen, update={name: value.detach() for name, value in seen.replay.single(x, y).items()})


def test_a_twin_has_the_same_gradient_and_a_search_started_near_it_ends_at_it() -> None:
    with precision(torch.float64):
        x = smooth(channels=3, side=12)
        seen = twins(x)
        shown = moments(Part(id="twin_data", fields={"noise": 0.02}), seen)
        last, solved = shown[-1], next(moment for moment in shown if moment.views and "layer" not in moment.note)
        private, twin = sorted(solved.views.values(), key=lambda picture: float(F.mse_loss(picture, x)))
        assert float(F.mse_loss(private, x)) < 1e-18
        assert torch.allclose(twin, x * (1.3610 / 1.2), atol=1e-3)
        assert apart(seen, private, twin, last.y) < 1e-12
        assert max(float(last.note["distance of the picture"]), float(last.note["distance of the twin"])) < 1e-12
        *_, found = last.views.values()
        far = float((found - x).norm() / x.norm())  # of the dimmed ones
        assert far < 1e-8
        assert far == pytest.approx(last.note["end from the twin"], rel=0.01)
        assert float(last.note["start from the twin"]) == pytest.approx(0.02 * float(twin.std() * x.numel() ** 0.5 / twin.norm()), rel=0.1)
        assert list(last.views) == ["the picture", "its twin, 1.13 times as bright, shown dimmed", "where the search ended"]
        assert all(float(F.mse_loss(view, private)) < 1e-18 for view in list(last.views.values())[:2])
        assert torch.equal(last.x, solved.x)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.long
def test_it_ends_at_a_twin_that_is_many_times_as_bright(seed: int) -> None:
    with precision(torch.float64):
        seen = seen_by(smooth(channels=3, side=12), NET_A, "two")
        last = moments(Part(id="twin_data", fields={"noise": 0.05}), seen, seed=seed)[-1]
    assert float(list(last.views)[1].split()[2]) > 10  # times as bright
    assert float(last.note["start from the twin"]) > 0.01
    assert float(last.note["end from the twin"]) < 1e-8


def test_in_float32_it_comes_as_near_as_the_digits_allow() -> None:
    last = moments(Part(id="twin_data"), seen_by(smooth(channels=3, side=12), NET_A, "two"))[-1]
    assert float(last.note["end from the twin"]) < 1e-4 < 1e-3 < float(last.note["start from the twin"])
    assert "Two pictures, one gradient" in last.note["event"]


def test_of_a_noisy_gradient_two_pictures_are_not_said_to_share_it() -> None:
    with precision(torch.float64):
        seen, rng = twins(smooth(channels=3, side=12)), torch.Generator().manual_seed(0)
        sizes = {name: 0.1 * value.square().mean().sqrt() for name, value in seen.received.update.items()}
        noisy = {name: value + sizes[name] * torch.randn(value.shape, generator=rng) for name, value in seen.received.update.items()}
        last = moments(Part(id="twin_data", fields={"steps": 2}), altered(seen, update=noisy))[-1]
    assert str(last.note["event"]).startswith("No twin is shown: replayed, the gradients of the two pictures are ")


def test_dlgs_own_search_comes_nearer_to_the_twin_and_sticks() -> None:
    with precision(torch.float64):
        seen = twins(smooth(channels=3, side=12))
        last = moments(Part(id="twin_data", fields={"search": "L-BFGS", "steps": 60, "noise": 0.02}), seen)[-1]
    assert 1e-4 < float(last.note["end from the twin"]) < 0.5 * float(last.note["start from the twin"])


def test_a_long_gradient_is_searched_by_l_bfgs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin_data, "LARGEST", 100)
    with precision(torch.float64):
        shown = moments(Part(id="twin_data", fields={"steps": 2}), twins(smooth(channels=3, side=12)))
    assert sum("L-BFGS searches instead" in str(moment.note.get("event", "")) for moment in shown) == 1


def test_of_a_batch_there_is_no_twin() -> None:
    seen = seen_by(smooth(2, channels=3, side=12), NET_A, "two")
    with pytest.raises(DoesNotApplyError, match="Choose a batch of 1"):
        moments(Part(id="twin_data", fields={"steps": 1}), seen)


@pytest.mark.parametrize(
    ("model", "task", "lacking"),
    [(NET_A, "classes", "several outputs"), (Part(id="fcn3", fields={"activation": "tanh"}), "two", "a curve")],
)
def test_to_a_network_without_second_explanations_it_does_not_apply(model: Part, task: str, lacking: str) -> None:
    with pytest.raises(DoesNotApplyError, match=lacking):
        moments(Part(id="twin_data"), seen_by(smooth(channels=3, side=12), model, task))


def test_without_a_second_explanation_it_says_that_there_is_no_twin() -> None:
    with precision(torch.float64):
        last = moments(Part(id="twin_data"), seen_by(smooth(channels=3, side=12), NET_A, "flipped"))[-1]
    assert "no twin" in last.note["event"]
    assert "distance of the twin" not in last.note
