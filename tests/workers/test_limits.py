"""The time of a run begins when it is claimed and covers its preparation; a GPU's memory is shared by the slots."""

import time
from pathlib import Path

import pytest
import torch
from home_processes import QUICK, Place, alive, another, noisy, until
from store_rows import python
from store_rows import run as row

from leakage.runs.endings import UNBEGUN
from leakage.runs.store import Run, Store
from leakage.settings import memory_fraction
from leakage.spec.experiment import Experiment, Part
from leakage.workers.job import Job
from leakage.workers.worker import limit_gpu

# What the phone computes before it sends: 20 rounds of 100 epochs on 16 pictures, minutes on any machine.
SLOW_CLIENT = Experiment(
    pictures=noisy(16),
    model=Part(id="convnet"),
    protocol=Part(id="fedavg", fields={"epochs": 100}),
    rounds=20,
    attack=Part(id="inverting_gradients", fields={"steps": 10}),
    max_seconds=2,
)


def pid_of(run: Run) -> int:
    assert run.worker is not None
    return int(run.worker.split(":")[1])


@pytest.mark.processes
def test_the_time_limit_covers_the_preparation(dispatcher: Place) -> None:
    run = dispatcher.finished(dispatcher.submit(SLOW_CLIENT))
    assert (run.status, run.message, run.result) == ("cancelled", UNBEGUN.format(2), None)
    assert run.started is not None
    assert run.finished is not None
    assert 1.9 < run.finished - run.started < 60  # one local step more
    assert alive(pid_of(run)), "a worker that obeys goes on to the next run"
    after = [dispatcher.finished(dispatcher.submit(another(QUICK, seed))) for seed in (901, 902)]
    assert [one.status for one in after] == ["done", "done"]


@pytest.mark.processes
def test_a_run_can_be_stopped_while_it_is_prepared(dispatcher: Place) -> None:
    run = dispatcher.submit(another(SLOW_CLIENT, 903).model_copy(update={"max_seconds": 600}))
    until(lambda: dispatcher.status(run) == "running", what="it is being prepared")
    time.sleep(0.5)
    dispatcher.service.cancel(run, "me")
    ended = dispatcher.finished(run)
    assert (ended.status, ended.message) == ("cancelled", "Cancelled before it began.")
    assert alive(pid_of(ended))


STUCK_BEFORE_IT_BEGAN = """
    import torch
    from leakage.workers import attack_job, heartbeat, job
    heartbeat.PATIENCE = 0.5
    attack_job.prepare = lambda *_, **__: time.sleep(60)  # one step
    with job.Job(store, store.claim("0:1"), so_far="") as mine:
        attack_job.perform(mine, torch.device("cpu"))
"""


@pytest.mark.processes
def test_a_single_step_of_the_preparation_cannot_go_beyond_the_limit_for_ever(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.db")
    asked = QUICK.model_copy(update={"max_seconds": 1}).model_dump_json()
    store.add(row("a", experiment=asked), {})
    process = python(STUCK_BEFORE_IT_BEGAN, store.path)
    process.communicate(timeout=240)
    assert process.returncode == 1
    found = store.get("a")
    assert found
    assert (found.status, found.message) == ("cancelled", UNBEGUN.format(1))
    store.close()


def test_a_limit_begins_at_the_claim(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.db")
    store.add(row("a"), {})
    run = store.claim("0:1")
    assert run
    job = Job(store, run, so_far="")
    time.sleep(0.3)
    job.limit_time(1000)
    assert 900 < job.heartbeat.deadline - time.monotonic() <= 999.7
    job.limit_time(1000, since=time.time() - 400)  # the claim of the first in its loop
    assert 500 < job.heartbeat.deadline - time.monotonic() <= 600.0
    store.close()


# ---------------------------------------------------------------- the GPU


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_worker_fills_no_more_of_the_gpu_than_its_share() -> None:
    device, slots = torch.device("cuda"), 4
    limit_gpu(device, memory_fraction(slots))
    try:
        most = int(torch.cuda.get_device_properties(0).total_memory * memory_fraction(slots))
        with pytest.raises(RuntimeError, match="out of memory"):
            torch.empty(most + 2**28, dtype=torch.uint8, device=device)
        assert len(torch.empty(most // 2, dtype=torch.uint8, device=device)) == most // 2
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
