"""Every attack keeps the contract of `Attack` on tiny problems; attacks that ship find the picture, and say when they do not."""

from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest
import torch
from small_problems import CATALOG, GRANTED, IDS, LABELS, TINY, altered, applied, by_hand, moments, observed, short, smooth

from leakage.engine.core import DoesNotApplyError, Observation, Snapshot
from leakage.evaluation import metrics
from leakage.evaluation.pairing import pair
from leakage.spec.experiment import Assumptions, Part

# without attacks that fit no model of the catalog: they have tests of their own
NAMES = [name for name in IDS["attack"] if CATALOG.attacks.get(name).fits.get("model") != ()]
EVERY = pytest.mark.parametrize("name", NAMES)
SEARCHING = pytest.mark.parametrize("name", ["dlg", "idlg", "inverting_gradients"])  # from random starts, step by step


def classes(moment: Snapshot) -> torch.Tensor:
    return moment.y.argmax(1) if moment.y.dim() == 2 else moment.y


@cache
def whole(name: str, batch: int) -> tuple[Snapshot, ...]:
    """All snapshots of an attack on grey pictures: several tests look at the same ones."""
    return tuple(applied(name, smooth(batch)))


# ---------------------------------------------------------------- the contract


@EVERY
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.long
def test_every_snapshot_is_a_finite_detached_guess_of_the_right_shape(name: str, batch: int) -> None:
    run = applied(name, smooth(batch, channels=3))
    assert run
    for moment in run:
        assert (moment.x.shape, moment.x.dtype) == ((batch, 3, 8, 8), torch.float32)
        assert torch.isfinite(moment.x).all()
        if moment.y.dim() == 2:
            assert (moment.y.shape, moment.y.dtype) == ((batch, 10), torch.float32)
            torch.testing.assert_close(moment.y.sum(1), torch.ones(batch), atol=1e-5, rtol=0)  # float32 sums of ten probabilities
        else:
            assert (moment.y.shape, moment.y.dtype) == ((batch,), torch.int64)
        assert (moment.loss.shape, bool(torch.isfinite(moment.loss))) == ((), True)
        assert not any(part.requires_grad for part in (moment.x, moment.y, moment.loss))
    steps = [moment.step for moment in run]
    assert steps == sorted(steps)


@EVERY
def test_an_attack_depends_on_its_generator_alone(name: str) -> None:
    first = applied(name, smooth(), steps=5)
    torch.rand(17)  # moves the global generator, which must not matter
    again = applied(name, smooth(), steps=5)
    assert [m.step for m in first] == [m.step for m in again]
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.y, other.y)
        assert torch.equal(one.loss, other.loss)


@EVERY
@pytest.mark.long
def test_an_attack_leaves_the_observation_and_the_global_generator_as_they_were(name: str) -> None:
    model = Part(id="convnet", fields={"width": 4})  # BatchNorm has buffers that training mode would move
    seen = observed(smooth(side=28), model=model)
    held = {**seen.model.state_dict(keep_vars=True), **{f"weights {n}": v for n, v in seen.received.weights.items()}}
    held |= {f"update {n}": v for n, v in seen.received.update.items()}
    torch.rand(3)  # a state that no seeding leaves behind
    before, state = {n: v.detach().clone() for n, v in held.items()}, torch.get_rng_state()
    with suppress(DoesNotApplyError):  # what a closed form reads to find that out is left as it was, too
        moments(short(name, steps=2, restarts=1), seen)
    assert torch.equal(torch.get_rng_state(), state)
    for n, value in held.items():
        assert torch.equal(value, before[n]), n
        assert value.grad is None, n
    assert not seen.model.training


@EVERY
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.long
def test_the_answer_is_no_further_from_the_update_than_the_first_guess(name: str, batch: int) -> None:
    run = whole(name, batch)
    assert float(run[-1].loss) <= float(run[0].loss)


@EVERY
def test_granted_labels_are_used_as_they_are(name: str) -> None:
    run = applied(name, smooth(3), assume=GRANTED, steps=5)
    assert all(torch.equal(classes(moment), LABELS) for moment in run)


@EVERY
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.long
def test_labels_that_are_not_granted_are_found(name: str, batch: int) -> None:
    run = whole(name, batch)
    assert sorted(classes(run[-1]).tolist()) == sorted(LABELS[:batch].tolist())


EXACT = {  # attacks that read pictures from the very numbers of the update, of which none may be left out: why
    "bins": "it divides entries of a layer that the server has added",
    "linear_layer": "it divides entries of the first layer",
    "r_gap": "it solves equations, layer by layer",
    "h_gap": "it also tries the equations of R-GAP",
    "r_gap_dlg": "its search starts from the solution of R-GAP",
    "spear": "it factors the gradient of the first layer",
    "twin_data": "it starts from the second picture of R-GAP",
}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in EXACT])
def test_entries_of_weight_0_may_be_any_numbers_for_an_attack_that_compares_gradients(name: str) -> None:
    seen = observed(smooth(2), assume=GRANTED)
    rng = torch.Generator().manual_seed(0)
    weights = {layer: torch.randint(0, 2, g.shape, generator=rng).to(g) for layer, g in seen.received.update.items()}
    runs = []
    for disturbance in (0.0, 7.0):
        update = {layer: g + disturbance * (1 - weights[layer]) for layer, g in seen.received.update.items()}
        simulator = replace(seen.replay.simulator, update=update)
        runs.append(moments(short(name, steps=3, restarts=1), altered(seen, update=update, entry_weights=weights, simulator=simulator)))
    assert len(runs[0]) == len(runs[1])
    for plain, disturbed in zip(*runs, strict=True):
        assert torch.equal(plain.x, disturbed.x)
        assert torch.equal(plain.loss, disturbed.loss)


# ---------------------------------------------------------------- the shipped attacks find the picture


@SEARCHING
def test_a_search_starts_from_its_generators_noise_and_falls_a_hundredfold(name: str) -> None:
    seen = observed(smooth())
    run, other = moments(short(name), seen), moments(short(name, steps=1), seen, seed=2)
    assert float(run[-1].loss) < 0.01 * float(run[0].loss)
    assert float(torch.corrcoef(torch.stack([run[0].x.flatten(), other[0].x.flatten()]))[0, 1]) < 0.5  # of 64 pixels: 1 / 8 at random


@SEARCHING
def test_the_page_is_told_how_the_labels_were_found(name: str) -> None:
    for assume, rule in (
        (GRANTED, "granted"),
        (Assumptions(), {"dlg": "searched together with the picture"}.get(name, "iDLG: the most negative row")),
    ):
        run = moments(short(name, steps=2, restarts=1), observed(smooth(), assume=assume))
        assert {moment.note["label rule"] for moment in run} == {rule}


@SEARCHING
def test_a_picture_of_8_by_8_comes_back_at_30_decibels_or_better(name: str) -> None:
    x = smooth()
    answer = moments(short(name, steps=300), observed(x))[-1]
    assert float(metrics.psnr(answer.x, x)) >= 30


def test_a_batch_of_three_comes_back_picture_by_picture() -> None:
    x = smooth(3)
    answer = moments(short("idlg", steps=300), observed(x))[-1]
    assert float(metrics.psnr(answer.x[pair(answer.x, x)], x).min()) >= 30
    assert answer.y[pair(answer.x, x)].tolist() == LABELS.tolist()


@pytest.mark.long
def test_idlg_brings_back_a_picture_of_28_pixels_from_lenet() -> None:
    x = smooth(side=28)
    answer = moments(short("idlg", steps=100), observed(x, model=Part(id="lenet")))[-1]
    assert float(metrics.psnr(answer.x, x)) >= 30


@pytest.mark.parametrize("normalise", ["none", "cifar10"])
def test_inverting_gradients_stays_between_black_and_white_unless_told_otherwise(normalise: str) -> None:
    model = Part(id=TINY.id, fields={**TINY.fields, "normalise": normalise})
    seen = observed(smooth(channels=3), model=model)
    clamped = torch.stack([moment.x for moment in moments(short("inverting_gradients"), seen) if moment.step % 60 != 1])
    assert clamped.min() >= -1e-6  # the two maps between pixels and the model's space round (float32)
    assert clamped.max() <= 1 + 1e-6
    free = torch.stack([moment.x for moment in moments(short("inverting_gradients", clamped=False), seen) if moment.step % 60 != 1])
    assert free.min() < -0.1  # from N(0, 1) many pixels begin beyond black


# ---------------------------------------------------------------- what went wrong is said


@pytest.mark.parametrize("name", ["dlg", "idlg"])
def test_a_snapshot_of_dlg_carries_the_distance_of_its_own_picture(name: str) -> None:
    seen = observed(smooth())
    for moment in moments(short(name, steps=10), seen):
        replayed = seen.replay.single(moment.x, moment.y)
        distance = sum(float((replayed[layer] - seen.received.update[layer]).square().sum()) for layer in seen.received.update)
        assert float(moment.loss) == pytest.approx(distance, rel=1e-3, abs=1e-9)  # float32, and squares of small differences


# ||(x^2 - 1, 0.6 (x - 1), 0.1)||^2 has two valleys: 0.01 at x = 1, and about 1.3 near x = -0.9. It is never 0: no start can succeed.
@pytest.fixture
def two_valleys() -> Observation:
    return by_hand(lambda x: torch.cat([x**2 - 1, 0.6 * (x - 1), 0 * x + 0.1], 3), torch.zeros(1, 1, 1, 3))


@pytest.mark.parametrize("name", ["dlg", "idlg"])
@pytest.mark.parametrize(("seed", "ends"), [(3, ["1.3", "0.01"]), (9, ["0.01", "1.3"])])
def test_a_start_that_sticks_is_said_and_the_answer_is_the_lowest_of_all(
    name: str, seed: int, ends: list[str], two_valleys: Observation
) -> None:
    run = moments(short(name, restarts=2), two_valleys, seed=seed)
    assert [moment.note["event"] for moment in run if "event" in moment.note] == [
        f"First try failed (got stuck at a gradient distance of {ends[0]}), trying again.",
        f"Try 2 of 2 failed (got stuck at a gradient distance of {ends[1]}), the best of all is shown.",
    ]
    assert float(run[-1].x) == pytest.approx(1, abs=1e-3)
    assert float(run[-1].loss) == pytest.approx(0.01, abs=1e-5)
    assert "event" not in run[-1].note


@pytest.mark.parametrize("name", ["dlg", "idlg"])
def test_two_starts_that_end_at_one_distance_are_enough(name: str, two_valleys: Observation) -> None:
    run = moments(short(name, restarts=4), two_valleys, seed=3)
    events = [str(moment.note["event"]) for moment in run if "event" in moment.note]
    assert len(events) == 3  # 1.3, 0.01, 0.01
    assert events[-1].startswith("Try 3 of 4 failed (got stuck at a gradient distance of 0.01), an earlier one ended there too")


@SEARCHING
def test_a_start_that_diverges_is_said(name: str) -> None:
    seen = by_hand(lambda x: x.log(), torch.zeros(1, 1, 4, 4), side=4)  # a normal start has pixels below 0, where log is not a number
    settings = {"clamped": False} if name == "inverting_gradients" else {}
    run = moments(short(name, steps=3, **settings), seen)
    events = [str(moment.note["event"]) for moment in run if "event" in moment.note]
    assert events
    assert all("diverged" in event for event in events)


def test_of_several_starts_inverting_gradients_answers_with_the_closest() -> None:
    seen = observed(smooth(), model=Part(id="lenet"))
    best = [moments(short("inverting_gradients", steps=10, starts=n), seen, seed=11)[-1] for n in (1, 2, 3, 4)]
    losses = [float(one.loss) for one in best]
    assert losses[0] > losses[1] > losses[2]  # of these four starts the third is best: not the first, not the last
    torch.testing.assert_close(best[2].x, best[3].x, atol=1e-3, rtol=0)  # three and four at once round differently (float32)
    assert [one.note["start"] for one in best] == [1, 2, 3, 3]
    assert [one.step for one in best] == [10, 10, 10, 10]  # all starts at once
    distances = [metrics.gradient_distances(seen.replay.single(one.x, one.y), seen.received.update)["cosine"] for one in best]
    assert losses == pytest.approx(distances, rel=1e-2)  # 1 - cosine loses digits in float32
