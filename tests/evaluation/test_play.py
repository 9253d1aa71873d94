"""The Referee: which frames it keeps, in which order it shows a batch, its answer, and its statements on the update."""

from functools import cache
from types import SimpleNamespace

import pytest
import torch
from small_problems import GRANTED, LABELS, TINY, baselines_of, by_hand, moments, short, smooth

from leakage.engine.core import DoesNotApplyError, Observation, Snapshot, generator
from leakage.evaluation import metrics
from leakage.evaluation.play import Frame, FrameLimiter, PreparedAttack
from leakage.evaluation.received import describe, strip
from leakage.evaluation.referee import Referee
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import federation, observe, play, plugin


def scene_of(experiment: Experiment, x: torch.Tensor, *, seen: Observation | None = None) -> PreparedAttack:
    """The experiment with these pictures and the first of LABELS, ready to be played."""
    y = LABELS[: len(x)]
    return PreparedAttack(
        attack=plugin("attack", experiment.attack),
        federation=federation(experiment),
        x=x,
        y=y,
        seen=seen or observe(experiment, x, y),
        compute_baselines=cache(lambda: baselines_of(experiment, x, y)),
    )


@pytest.mark.long
def test_a_finished_run_answers_with_the_attacks_last_snapshot() -> None:
    experiment = Experiment(model=TINY, attack=short("idlg"))
    prepared = scene_of(experiment, smooth())
    frames = list(play(experiment, prepared=prepared))
    answer = moments(experiment.attack, prepared.seen)[-1]
    assert [frame.final for frame in frames] == [False] * (len(frames) - 1) + [True]
    assert torch.equal(frames[-1].x, answer.x.clamp(0, 1))
    assert frames[-1].scores["psnr"] == pytest.approx(float(metrics.psnr(answer.x, prepared.x)))
    assert frames[-1].verdict
    assert frames[-1].verdict["word"] == "recognizable"


def test_the_answer_is_also_scored_in_the_models_units_and_without_clamping() -> None:
    """A guess two of MNIST's standard deviations (0.3081078) beyond white, of a white picture, is clamped to an exact copy."""
    experiment = Experiment(model=Part(id="lenet", fields={"normalise": "mnist"}))
    white = torch.ones(1, 3, 32, 32)
    prepared = scene_of(experiment, white)
    referee = Referee(prepared.x, prepared.y, prepared.seen, prepared.compute_baselines)
    guess = Snapshot(step=1, x=white + 2 * 0.3081078, y=LABELS[:1], loss=torch.zeros(()))
    scores = referee.score(guess, ending="answer").scores
    assert scores["mse"] == 0.0
    assert scores["mse_norm"] == pytest.approx(4.0, rel=1e-5)


def test_a_cancelled_run_answers_with_the_lowest_loss_and_not_with_the_best_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    # ||(x^2 - 1, 0.1)||^2 is never 0: the first start sticks, and the run is stopped at the first step of the second.
    experiment = Experiment(attack=Part(id="idlg", fields={"steps": 20, "restarts": 3}))
    seen = by_hand(lambda x: torch.cat([x**2 - 1, 0 * x + 0.1], 3), torch.zeros(1, 1, 8, 16), side=8)
    first = next(iter(plugin("attack", experiment.attack).run(seen, generator(experiment.seed, "attack")))).x.clamp(0, 1)
    # A referee that takes the first guess for the truth finds the first frame best.
    prepared = scene_of(experiment, first, seen=seen)
    monkeypatch.setattr("leakage.evaluation.play.FRACTION", 1e9)  # every frame is kept, however long that takes
    kept: list[Frame] = []
    for frame in play(experiment, prepared=prepared, should_stop=lambda: kept[-1].note["start"] == 2, per_second=1e9):
        kept.append(frame)
    *frames, answer = kept
    lowest = min(frames, key=lambda frame: frame.loss)
    assert answer.final
    assert (answer.loss, answer.step) == (lowest.loss, lowest.step)
    assert torch.equal(answer.x, lowest.x)
    assert frames[-1].loss > 2 * lowest.loss  # so it is not simply the last one kept
    assert max(frames, key=lambda frame: frame.scores["psnr"]) is frames[0]
    assert answer.scores["psnr"] < frames[0].scores["psnr"] - 10


@pytest.mark.long
def test_guesses_of_a_batch_are_shown_beside_the_pictures_they_belong_to() -> None:
    experiment = Experiment(model=TINY, attack=short("idlg"))
    prepared = scene_of(experiment, smooth(3))
    *_, answer = play(experiment, prepared=prepared)
    assert answer.labels == LABELS.tolist() == [7, 2, 4]  # the attack itself found them sorted
    assert min(answer.scores["psnr_each"]) > 30
    assert answer.scores["psnr_each"] == metrics.psnr(answer.x, prepared.x).tolist()
    assert answer.scores["label_accuracy"] == 1
    assert answer.scores["relative_l2"] < 1e-3  # the update is replayed with each picture's own label


@pytest.mark.long
def test_frames_are_kept_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leakage.evaluation.play.FRACTION", 1e9)  # however long scoring takes
    experiment = Experiment(model=TINY, attack=Part(id="inverting_gradients", fields={"steps": 1000}))
    frames = list(play(experiment, prepared=scene_of(experiment, smooth()), per_second=50))
    seconds = [frame.seconds for frame in frames[:-1]]
    assert 3 < len(seconds) < 500
    assert seconds[-1] - seconds[0] > 0.01 * (len(seconds) - 1)  # 0.02 s apart on average; a pause of the process moves single ones


def test_what_the_caller_computes_with_a_frame_counts_as_spent_on_it_and_its_waiting_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(seconds=0.0, computed=0.0)
    fake = SimpleNamespace(perf_counter=lambda: clock.seconds, thread_time=lambda: clock.computed)
    monkeypatch.setattr("leakage.evaluation.play.time", fake)
    prepared = scene_of(Experiment(model=TINY), smooth())
    limiter = FrameLimiter(prepared.referee(), per_second=10, fraction=0.02)
    snapshot = Snapshot(step=1, x=prepared.x, y=prepared.y, loss=torch.zeros(()))
    kept = []
    for seconds in (0.0, 1.0, 1.49, 1.51):
        clock.seconds = seconds
        for _ in limiter.frames(snapshot):
            kept.append(seconds)
            clock.seconds += 0.3  # the caller waits for the store
            clock.computed += 0.01  # and computes for 0.01 s, which may be 2 %: the next frame is due 0.5 s after this one
    assert kept == [0.0, 1.0, 1.51]


def test_a_frame_with_an_event_is_kept_whatever_the_clock_says() -> None:
    # ||x^2 + 1||^2 is never 0: the first two starts are said to be stuck, and agree.
    experiment = Experiment(attack=Part(id="idlg", fields={"steps": 30, "restarts": 4}))
    seen = by_hand(lambda x: x**2 + 1, torch.zeros(1, 1, 1, 1))
    frames = list(play(experiment, prepared=scene_of(experiment, smooth(side=1), seen=seen), per_second=0.001))
    assert ["event" in frame.note for frame in frames] == [False, True, True, False]  # the first, two events, the answer


def test_what_was_said_on_the_way_is_not_said_of_the_answer_of_a_stopped_run() -> None:
    experiment = Experiment(attack=Part(id="idlg", fields={"steps": 30, "restarts": 4}))
    seen = by_hand(lambda x: x**2 + 1, torch.zeros(1, 1, 1, 1))  # never 0: a start is said to be stuck
    kept: list[Frame] = []
    for frame in play(experiment, prepared=scene_of(experiment, smooth(side=1), seen=seen), should_stop=lambda: "event" in kept[-1].note):
        kept.append(frame)
    assert ["event" in frame.note for frame in kept] == [*[False] * (len(kept) - 2), True, False]
    assert kept[-1].note["label rule"]


def test_what_an_attack_says_of_its_answer_stays_with_the_answer() -> None:
    noise = Part(id="gaussian_noise", fields={"scale": 0.1})
    experiment = Experiment(model=TINY, attack=Part(id="linear_layer"), defenses=(noise,), assume=GRANTED)
    first, answer = play(experiment, prepared=scene_of(experiment, smooth()))
    assert str(answer.note["event"]).startswith("The pictures that were read off have a gradient that differs by ")
    assert answer.note == first.note
    assert torch.equal(answer.x, first.x)


def test_an_attack_that_does_not_apply_leaves_no_frame() -> None:
    experiment = Experiment(attack=Part(id="linear_layer"))  # LeNet begins with a convolution
    with pytest.raises(DoesNotApplyError, match=r"^This attack needs a network whose first layer is fully connected"):
        next(play(experiment, prepared=scene_of(experiment, smooth(side=28))))


def test_a_guess_that_is_no_number_is_scored_as_grey() -> None:
    experiment = Experiment(attack=short("idlg", steps=2), assume=GRANTED)
    x, seen = smooth(), by_hand(lambda x: x.log() * x.sum(), torch.zeros(1, 1, 8, 8), side=8)
    *_, answer = play(experiment, prepared=scene_of(experiment, x, seen=seen))
    assert answer.x[answer.x == 0.5].numel() == 64
    assert answer.scores["psnr"] == pytest.approx(float(metrics.psnr(torch.full_like(x, 0.5), x)))
    assert answer.loss != answer.loss


# ---------------------------------------------------------------- the update made visible


def test_a_strip_shades_magnitudes_over_three_decades() -> None:
    assert strip(torch.tensor([1.0, -0.1, 0.001, 0.0])) == [255, 170, 0, 0]  # 255 (1 + log10(m / max) / 3), black below 0.001
    assert strip(torch.zeros(3)) == [0, 0, 0]
    pairs = torch.tensor([1.0, 1.0] + [0.2, 0.0] * 63)  # 128 entries in 64 cells of two
    assert strip(pairs) == [255] + [170] * 63


def test_the_update_is_described_by_size_and_norm_and_by_the_strips_of_single_pictures() -> None:
    update = {"w": torch.tensor([[3.0, 1.0], [1.0, 1.0]]), "b": torch.tensor([2.0])}
    gradient = {"w": torch.tensor([[3.0, 4.0], [0.0, 0.0]]), "b": torch.tensor([0.0])}
    found = describe(update, gradient, [update, update])
    assert (found["entries"], found["bytes"], found["norm"]) == (5, 20, 5.0)  # the norm is that of what the attacker matches
    assert [(layer["name"], layer["shape"], layer["norm"]) for layer in found["layers"]] == [
        ("w", [2, 2], pytest.approx(12**0.5)),
        ("b", [1], 2.0),
    ]
    assert [len(picture) for picture in found["singles"]] == [5, 5]


def test_a_pruned_update_counts_as_its_survivors_with_their_places() -> None:
    sparse = {"w": torch.tensor([0.0, 0.0, 0.0, 2.0, 0.0])}
    found = describe(sparse, sparse, [])
    assert (found["entries"], found["bytes"]) == (1, 8)


def test_an_update_in_double_precision_takes_eight_bytes_an_entry() -> None:
    dense = {"w": torch.ones(5, dtype=torch.float64)}
    assert [describe(dense, dense, [])[name] for name in ("entries", "bytes")] == [5, 40]
    mixed = {**dense, "b": torch.ones(3)}
    assert [describe(mixed, mixed, [])[name] for name in ("entries", "bytes")] == [8, 52]


def test_places_are_sent_where_that_takes_fewer_bytes() -> None:
    """A place takes 4 bytes whatever the entry: of doubles more may survive before all are sent."""
    three = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0])
    single, double = {"w": three}, {"w": three.double()}
    assert [describe(single, single, [])[name] for name in ("entries", "bytes")] == [5, 20]  # not 3 x 8
    assert [describe(double, double, [])[name] for name in ("entries", "bytes")] == [3, 36]  # not 5 x 8
