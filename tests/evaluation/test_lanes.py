"""Runs of one model and one attack share one loop: the same answers as separately, stopped and failed separately."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from small_problems import CATALOG

from leakage.data.images import find
from leakage.engine.lanes import join_gradients
from leakage.evaluation.play import Frame, PreparedAttack, play_together
from leakage.runs.service import Service
from leakage.runs.store import Run, Store
from leakage.settings import Settings
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.workers import attack_job, plugin_catalog
from leakage.workers.adapter import batchable, play, prepare
from leakage.workers.heartbeat import Heartbeat
from leakage.workers.job import Job
from leakage.workers.worker import perform

NAIVE = Assumptions(adaptive=False)
SIGNS = Assumptions(strategy="signs alone")
PLAIN = Experiment(precision="float64", attack=Part(id="inverting_gradients", fields={"steps": 12}))
NOISE = Part(id="gaussian_noise", fields={"scale": 0.01})
PRUNING = Part(id="pruning", fields={"fraction": 0.9})
STAND_IN = Part(id="ada_defense", fields={"variant": "as in the code"})


def behind(*defenses: Part, assume: Assumptions | None = None, base: Experiment = PLAIN) -> Experiment:
    """The experiment behind these protections."""
    return base.model_copy(update={"defenses": defenses, "assume": assume or Assumptions()}).resolve(CATALOG)


ARMS = [behind(), behind(NOISE), behind(PRUNING, assume=NAIVE), behind(PRUNING), behind(STAND_IN, assume=SIGNS), behind(NOISE, STAND_IN)]


def never() -> bool:
    return False


def last_of(frames: Iterator[tuple[int, Frame]], count: int) -> list[Frame]:
    """The final frame of each."""
    found = {place: frame for place, frame in frames if frame.final}
    return [found[place] for place in range(count)]


# ---------------------------------------------------------------- one loop


@pytest.mark.long
def test_together_every_arm_ends_where_it_ends_alone() -> None:
    scenes = [prepare(arm) for arm in ARMS]
    assert all(batchable(arm) and arm.same_model_and_attack(ARMS[0]) for arm in ARMS)
    ends = last_of(play_together(scenes, [never] * len(ARMS)), len(ARMS))
    for arm, prepared, end in zip(ARMS, scenes, ends, strict=True):
        *_, single = play(arm, prepared=prepared)
        assert (end.step, end.labels, end.note) == (single.step, single.labels, single.note)
        assert end.loss == pytest.approx(single.loss, rel=1e-9)
        torch.testing.assert_close(end.x, single.x)  # a pixel moves by the sign of its gradient, so this holds or fails by far
    assert len({round(end.loss, 6) for end in ends}) == len(ARMS)  # ... though no two see the same


@pytest.mark.long
def test_each_goes_on_by_itself_where_the_loop_has_ended() -> None:
    polished = Part(id="inverting_gradients", fields={"steps": 6, "polish": 3})
    arms = [behind(*defenses, base=PLAIN.model_copy(update={"attack": polished})) for defenses in ((), (NOISE,))]
    scenes = [prepare(arm) for arm in arms]
    for arm, prepared, end in zip(arms, scenes, last_of(play_together(scenes, [never] * 2), 2), strict=True):
        *_, single = play(arm, prepared=prepared)
        assert end.step == single.step > 6
        assert end.loss == pytest.approx(single.loss, rel=1e-6)


@pytest.mark.long
def test_one_that_is_stopped_leaves_the_others_alone() -> None:
    scenes = [prepare(arm) for arm in ARMS[:3]]
    asked = 0

    def after_four() -> bool:
        nonlocal asked
        asked += 1
        return asked >= 4

    stopped, *others = last_of(play_together(scenes, [after_four, never, never], per_second=1e9), 3)
    assert asked == 4
    assert stopped.step <= 4  # the best of those that it was shown
    assert [end.step for end in others] == [12, 12]


@pytest.mark.parametrize(
    ("experiment", "why"),
    [
        (behind(Part(id="clipping")), "whose imitation needs more than a gradient"),
        (behind(Part(id="precode")), "another model"),
        (behind(base=PLAIN.model_copy(update={"protocol": Part(id="fedavg", fields={"epochs": 2})})), "imitates several steps"),
        (behind(NOISE, base=PLAIN.model_copy(update={"rounds": 2, "attacked_round": 2})), "has weights of its own by then"),
        (behind(base=PLAIN.model_copy(update={"attack": Part(id="inverting_gradients", fields={"starts": 2})})), "has lanes of its own"),
        (behind(base=PLAIN.model_copy(update={"attack": Part(id="idlg")})), "L-BFGS is not element-wise"),
    ],
)
def test_what_cannot_share_a_loop_plays_alone(experiment: Experiment, why: str) -> None:
    assert not batchable(experiment), why


def test_pictures_protection_and_knowledge_may_differ() -> None:
    assert ARMS[0].same_model_and_attack(ARMS[2])
    assert ARMS[0].same_model_and_attack(ARMS[2].model_copy(update={"pictures": (Picture(id="chelsea"),)}))
    two, coarse = (Picture(id="chelsea"), Picture(id="coffee")), (Picture(source="cifar100", id="1"),)  # of 100 classes
    for change in ({"seed": 2}, {"pictures": two}, {"pictures": coarse}, {"assume": Assumptions(labels=True)}):
        assert not ARMS[0].same_model_and_attack(ARMS[0].model_copy(update=change))


def test_other_weights_are_refused() -> None:
    scenes = [prepare(ARMS[0]), prepare(ARMS[0].model_copy(update={"seed": 2}))]
    with pytest.raises(ValueError, match="only if the model and its weights are the same"):
        join_gradients([prepared.seen for prepared in scenes], torch.zeros(1, 2, dtype=torch.long))


# ---------------------------------------------------------------- the worker


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, Callable[..., list[str]]]]:
    """A store for one slot, and a way to queue experiments there."""
    monkeypatch.setenv("LEAKAGE_SLOTS", "1")
    monkeypatch.setattr(attack_job, "lanes_cost", lambda *_: 1.0)  # a noisy machine may say otherwise; see test_timing
    store = Store(tmp_path / "store.db")
    plugin_catalog.write(tmp_path / "catalog.json")
    service = Service(store, Settings(home=tmp_path, slots=1, store_mb=4096, memory_mb=0))
    yield store, lambda arms, owner="me": service.submit_all(arms, owner)
    store.close()


def work(store: Store) -> list[list[str]]:
    """Play what waits; the runs that were played at once, in turn."""
    turns, done = [], set[str]()
    while claimed := store.claim("0:1"):
        perform(store, claimed, torch.device("cpu"))
        assert not store.running()
        now = {event["run"] for event in store.events(None, 0) if event["kind"] == "state" and event["status"] == "running"}
        turns.append(sorted(now - done))
        done |= now
    return turns


def look(store: Store, run: str) -> Run:
    found = store.get(run)
    assert found
    return found


@pytest.mark.long
def test_runs_that_wait_are_played_with_the_first_that_fits(desk: tuple[Store, Callable[..., list[str]]]) -> None:
    store, queue = desk
    mine = queue([*ARMS[:3], behind(Part(id="clipping")), behind(base=PLAIN.model_copy(update={"seed": 2}))])
    other = queue([ARMS[4]], owner="other")
    first, *alone = work(store)
    assert first == sorted([*mine[:3], *other])
    assert alone == [[mine[3]], [mine[4]]]
    for run in [*mine[:3], *other]:
        meta = store.meta(run)
        assert meta
        assert meta.environment.device.endswith("in one loop with 3 other runs")
        assert [look(store, run).status, look(store, run).message] == ["done", ""]
    assert all(look(store, run).status == "done" for run in (*mine, *other))


@pytest.mark.long
def test_a_class_shares_a_loop_and_each_has_a_run_of_its_own(desk: tuple[Store, Callable[..., list[str]]]) -> None:
    """Four owners with a picture each, of whom one stops before it begins: the others end as they end alone."""
    store, queue = desk
    names = ("astronaut", "chelsea", "coffee", "rocket")
    asked = [behind().model_copy(update={"pictures": (Picture(id=name),)}) for name in names]
    runs = [queue([one], owner=name)[0] for name, one in zip(names, asked, strict=True)]
    store.cancel(runs[2])
    assert work(store) == [sorted(run for run in runs if run != runs[2])]
    for one, name, run in zip(asked, names, runs, strict=True):
        if run == runs[2]:
            continue
        found, (*_, single) = look(store, run), play(one)
        assert found.result
        assert (found.owner, found.status) == (name, "done")
        assert found.result["scores"]["psnr"] == pytest.approx(single.scores["psnr"], abs=1e-6)
        meta = store.meta(run)
        assert meta
        assert [picture.title for picture in meta.truth.pictures] == [find("gallery", name).title]


@pytest.mark.long
def test_one_that_fails_takes_no_other_with_it(desk: tuple[Store, Callable[..., list[str]]], monkeypatch: pytest.MonkeyPatch) -> None:
    store, queue = desk
    runs = queue(ARMS[:3])
    whole = attack_job.prepare_case

    def broken(job: Job, device: torch.device) -> attack_job.Case:
        if job.run.id == runs[1]:
            raise ValueError("This one has no picture.")
        return whole(job, device)

    monkeypatch.setattr(attack_job, "prepare_case", broken)
    assert work(store) == [sorted(runs)]
    assert [look(store, run).status for run in runs] == ["done", "failed", "done"]
    assert look(store, runs[1]).message == "This one has no picture."


@pytest.mark.long
def test_a_loop_has_one_limit_that_of_one_run_times_what_its_steps_cost(
    desk: tuple[Store, Callable[..., list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step for three costs as much as 1.6 steps of one: in 1440 s each has as many as it would have alone in 900 s."""
    store, queue = desk
    monkeypatch.setattr(attack_job, "lanes_cost", lambda *_: 1.6)
    queue(ARMS[:3])
    left = list[float]()

    def look_at(scenes: list[PreparedAttack], heartbeats: list[Heartbeat]) -> Iterator[tuple[int, Frame]]:
        left.extend(one.deadline - time.monotonic() for one in heartbeats)
        return play_together(scenes, heartbeats)

    monkeypatch.setattr(attack_job, "play_together", look_at)
    work(store)
    assert len(left) == 3
    assert max(left) - min(left) < 0.1, "it has begun at the claim of the first for all"
    assert all(1440 - 60 < seconds < 1440 for seconds in left)


@pytest.mark.long
def test_a_loop_that_is_over_says_how_long_it_could_take(
    desk: tuple[Store, Callable[..., list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, queue = desk
    monkeypatch.setattr(attack_job, "lanes_cost", lambda *_: 1.6)
    long = PLAIN.model_copy(update={"max_seconds": 10, "attack": PLAIN.attack.model_copy(update={"fields": {"steps": 24000}})})
    ids = queue([long, behind(NOISE, base=long)])
    work(store)
    runs = [look(store, run) for run in ids]
    for run in runs:
        assert (run.status, run.message) == ("done", "Stopped after 16 s, the limit for 2 runs in one loop; the best so far is shown.")
        assert run.result
        assert run.result["ending"]["how"] == "limit"
    assert max(run.finished or 0 for run in runs) - min(run.started or 0 for run in runs) < 120


@pytest.mark.long
def test_what_breaks_the_loop_is_said_of_all(desk: tuple[Store, Callable[..., list[str]]], monkeypatch: pytest.MonkeyPatch) -> None:
    store, queue = desk
    runs = queue(ARMS[:3])

    def broken(*_: object) -> Iterator[tuple[int, Frame]]:
        raise MemoryError
        yield

    monkeypatch.setattr(attack_job, "play_together", broken)
    work(store)
    assert {look(store, run).status for run in runs} == {"failed"}
    assert all("more memory" in look(store, run).message for run in runs)


@pytest.mark.long
def test_two_slots_share_what_waits(desk: tuple[Store, Callable[..., list[str]]], monkeypatch: pytest.MonkeyPatch) -> None:
    store, queue = desk
    monkeypatch.setenv("LEAKAGE_SLOTS", "2")
    runs = queue(ARMS[:5])
    assert store.claim("1:2")  # the other slot was as quick
    claimed = store.claim("0:1")
    assert claimed
    perform(store, claimed, torch.device("cpu"))
    assert [look(store, run).status for run in runs] == ["running", "done", "done", "done", "queued"]


def test_what_another_has_claimed_meanwhile_is_passed_over(desk: tuple[Store, Callable[..., list[str]]]) -> None:
    store, queue = desk
    runs = queue(ARMS[:5])
    assert store.claim("0:1")
    assert [run.id for run in store.claim_also(runs[1:3], 2, "0:1")] == runs[1:3]
    assert [run.id for run in store.claim_also(runs[1:], 1, "1:2")] == runs[3:4]  # it had seen all four waiting
    assert [run.id for run in store.queue()] == runs[4:]
