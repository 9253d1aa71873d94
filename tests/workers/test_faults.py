"""Faults around a run: the dispatcher dies or finds unexpected data, the disk is full, the memory too small."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from home_processes import LONG, QUICK, Place, alive, another, damaged, noisy, place, until
from store_rows import python
from store_rows import run as row

from leakage.runs.connections import FULL, PAGE
from leakage.runs.notes import RECORDINGS
from leakage.runs.store import Store
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.workers.dispatcher import LOST
from leakage.workers.job import MEMORY

pytestmark = pytest.mark.processes

# Big sheets of noise, often: some megabytes in a few seconds.
HUNGRY = Experiment(
    pictures=noisy(6),
    size=64,
    model=Part(id="mlp", fields={"width": 8, "depth": 1}),
    attack=Part(id="inverting_gradients", fields={"steps": 24000, "starts": 16, "tv_weight": 0.0}),
    assume=Assumptions(labels=True),
)
# More than 300 MB: 64 pictures of 64 pixels through the widest network.
LARGE = Experiment(
    pictures=noisy(64),
    size=64,
    model=Part(id="convnet", fields={"width": 128}),
    attack=Part(id="inverting_gradients", fields={"steps": 10}),
    assume=Assumptions(labels=True),
)


# ---------------------------------------------------------------- dispatchers


def test_a_second_dispatcher_on_the_same_home_leaves_at_once(dispatcher: Place) -> None:
    first = until(dispatcher.dispatcher, what="the first dispatcher is at work")
    second = dispatcher.dispatch()
    assert second.wait(240) == 0
    assert dispatcher.dispatcher() == first
    assert dispatcher.finished(dispatcher.submit(QUICK)).status == "done"


def test_a_stale_process_id_in_the_store_is_not_shot(dispatcher: Place) -> None:
    """After a restart of the machine the process id of a lost worker may belong to anybody."""
    innocent = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        run = stuck(dispatcher, another(QUICK, 2), worker=f"0:{innocent.pid}", heartbeat=time.time() - 3600)
        ended = dispatcher.finished(run)
        assert (ended.status, ended.message) == ("failed", LOST)
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_a_recorded_run_that_is_being_restored_is_left_alone(dispatcher: Place) -> None:
    run = stuck(dispatcher, another(QUICK, 3), worker=None, heartbeat=None)
    process = dispatcher.started[0]
    time.sleep(1)  # some looks of the dispatcher
    assert process.poll() is None
    assert dispatcher.status(run) == "running"
    dispatcher.store.finish(run, "done")


def stuck(place: Place, experiment: Experiment, *, worker: str | None, heartbeat: float | None) -> str:
    """A run that the store holds for running though no worker of ours plays it."""
    with place.store.database.write() as db:  # one transaction, so that no worker claims it before
        waiting = place.service
        run = "stuck-" + str(experiment.seed)
        db.execute(
            "INSERT INTO runs (id, owner, kind, digest, version, experiment, shareable, status, created, started, heartbeat, worker)"
            " VALUES (?, 'me', 'attack', ?, '1', ?, 1, 'running', 1, 1, ?, ?)",
            (run, experiment.digest(), experiment.resolve(waiting.catalog()).model_dump_json(), heartbeat, worker),
        )
        db.execute("INSERT INTO holders (run, owner, since) VALUES (?, 'me', 1)", (run,))
    return run


def test_workers_go_when_their_dispatcher_is_killed_even_while_they_warm_up(home: Path) -> None:
    with place(home, LEAKAGE_SLOTS="2") as made:
        process = made.dispatch()
        workers = until(lambda: children(process.pid) if len(children(process.pid)) == 2 else None, what="the workers are started")
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        process.kill()
        process.wait()
        assert all(alive(worker) for worker in workers), "the dispatcher was killed too late: nothing was tested"
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
        until(lambda: not any(alive(worker) for worker in workers), what="the workers leave")


def children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=,ppid=", "-A"], capture_output=True, text=True, check=True).stdout.split()
    return [int(child) for child, parent in zip(listed[::2], listed[1::2], strict=True) if int(parent) == pid]


def test_a_dispatcher_that_is_asked_to_leave_lets_its_runs_finish(home: Path) -> None:
    with place(home) as made:
        process = made.dispatch()
        run = made.submit(LONG.model_copy(update={"max_seconds": 40}))
        waiting = made.submit(another(QUICK, 2))
        worker = made.worker(run)
        process.terminate()
        assert process.wait(240) == 0  # a cold one first writes its catalog, on a busy machine for longer than 10 seconds
        assert made.finished(run).status == "done"
        until(lambda: not alive(worker), what="the worker leaves after its run")
        assert made.status(waiting) == "queued"


# ---------------------------------------------------------------- a full disk


def runs_full(made: Place, seed: int, fill: Callable[[], None] = lambda: None) -> None:
    """A run fails with the sentence, its frames can be seen, it can be deleted, and the next one works: all by the same worker."""
    run = made.submit(another(HUNGRY, seed))
    worker = made.worker(run)
    fill()
    full = made.finished(run, within=180)
    assert (full.status, full.message) == ("failed", FULL)
    frames = made.frames(run)
    assert len(frames) >= 2
    assert made.store.frame(run, frames[-1]["seq"]) is not None
    assert damaged(made.store) == []
    made.service.delete(run, "me")
    assert made.store.get(run) is None
    after = made.finished(made.submit(another(QUICK, seed)))
    assert (after.status, after.message) == ("done", "")
    assert after.worker == f"0:{worker}", "the worker died of the full disk"
    assert made.started[0].poll() is None, "the dispatcher died of the full disk"


def test_a_full_disk_ends_the_run_with_a_sentence_and_nothing_else(small_disk: Path, written: Path) -> None:
    (small_disk / "catalog.json").write_bytes(written.read_bytes())
    with place(small_disk) as made:
        made.dispatch()
        until(made.dispatcher, what="the dispatcher is at work")
        (small_disk / "ballast").write_bytes(b"x" * 2_700_000)  # so that half a megabyte of frames is too much
        runs_full(made, 1)
        runs_full(made, 2)

        def somebody_else_takes_the_rest() -> None:
            with contextlib.suppress(OSError), (small_disk / "rest").open("wb", buffering=0) as rest:
                while True:
                    rest.write(b"x" * 1024)

        until(made.store.database.reserve.exists, what="bytes for last words are set aside again")  # within a minute
        runs_full(made, 3, somebody_else_takes_the_rest)


def test_a_store_at_its_limit_ends_the_run_with_a_sentence_and_nothing_else(home: Path) -> None:
    with place(home, LEAKAGE_STORE_MB="3") as made:
        made.dispatch()
        keepsake = made.finished(made.submit(QUICK))
        made.store.put_note(RECORDINGS, {keepsake.id: ""})  # so that it makes no room
        free = int(made.store.housekeeping.free() * made.store.database.pages * PAGE)
        made.store.put_file(keepsake.id, "ballast", b"x" * (free - 300_000))  # four pictures: a running run keeps 16 in any case
        runs_full(made, 1)
        runs_full(made, 2)
        assert made.store.get(keepsake.id) == keepsake
        made.store.close()
        assert made.config.store.stat().st_size < 3.2 * 2**20


# ---------------------------------------------------------------- too little memory


def test_a_run_that_met_the_memory_limit_does_not_poison_the_runs_of_others(home: Path) -> None:
    """It left modules half imported and libraries without memory: up to four of six later runs failed in the same worker."""
    with place(home, LEAKAGE_MEMORY_MB="300") as made:
        made.dispatch()
        large = made.finished(made.submit(LARGE))
        assert (large.status, large.message) == ("failed", MEMORY)
        models = ("convnet", "lenet", "resnet", "convnet", "lenet", "resnet")
        short = Part(id="inverting_gradients", fields={"steps": 3})
        asked = [Experiment(model=Part(id=id), attack=short, seed=seed) for seed, id in enumerate(models, 10)]
        after = [made.finished(made.submit(one, f"owner {one.seed}")) for one in asked]
        assert [(one.status, one.message) for one in after] == [("done", "")] * 6
        assert len({one.worker for one in after}) == 1, "one fresh worker is enough"
        assert large.worker not in {one.worker for one in after}


def test_no_memory_left_for_the_signs_of_life_fails_the_run_with_a_sentence(tmp_path: Path) -> None:
    """It stayed under way without signs of life, until the dispatcher ended the worker as lost."""
    store = Store(tmp_path / "store.db")
    store.add(row("a"), {})
    process = python(NO_ROOM_FOR_A_THREAD, store.path)
    assert process.communicate(timeout=240)[0].split() == ["fit:", "False"]
    found = store.get("a")
    assert found
    assert (found.status, found.message) == ("failed", MEMORY)
    store.close()


NO_ROOM_FOR_A_THREAD = """
    import threading, torch
    from leakage.workers import memory_limit, worker
    run = store.claim("0:1")
    memory_limit.limit_memory(1)  # MB: the stack of a thread takes eight
    print("fit:", worker.perform(store, run, torch.device("cpu")))
"""
