"""A run from queue to answer in real worker processes: what it leaves behind, and how it stops."""

import io
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import torch
from home_processes import LONG, QUICK, Place, alive, another, loaded, until
from PIL import Image
from store_rows import python
from store_rows import run as row

from leakage.runs.event_log import MAX_FRAMES
from leakage.runs.notes import DEVICE, SPEEDS
from leakage.runs.store import Run, Store
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers.dispatcher import KILL_AFTER, LOST, POLITE, SILENCE
from leakage.workers.heartbeat import STUCK
from leakage.workers.worker import chores


def upload() -> tuple[Experiment, dict[str, bytes]]:
    """An experiment on a red square of somebody's own."""
    file = io.BytesIO()
    Image.new("RGB", (40, 40), (200, 30, 30)).save(file, "PNG")
    red = Picture(source="upload", id="red", label=6)
    return QUICK.model_copy(update={"pictures": (red,)}), {"red": file.getvalue()}


def kept_the_best(place: Place, run: Run) -> None:
    """The answer is the kept frame of lowest loss, scored once more."""
    *frames, answer = place.frames(run.id)
    best = min(frames, key=lambda frame: frame["loss"])
    assert run.result is not None
    assert answer["seq"] == run.result["answer"]
    assert (answer["step"], answer["loss"]) == (best["step"], pytest.approx(best["loss"], rel=1e-6))
    assert answer["verdict"] == run.result["verdict"]
    if best["picture"]:
        assert place.store.frame(run.id, answer["seq"]) == place.store.frame(run.id, best["seq"])


@pytest.mark.processes
def test_a_run_goes_from_queued_over_running_to_done(dispatcher: Place) -> None:
    run = dispatcher.finished(dispatcher.submit(QUICK))
    assert (run.status, run.message) == ("done", "")
    assert run.started is not None
    assert run.finished is not None
    assert run.created <= run.started <= run.finished
    events = dispatcher.store.events([run.id], 0)
    assert [event["status"] for event in events if event["kind"] == "state"] == ["queued", "running", "done"]
    kinds = [event["kind"] for event in events if event["kind"] != "frame"]
    assert kinds == ["state", "state", "meta", "end", "state"]
    assert run.result is not None
    end = next(event for event in events if event["kind"] == "end")
    assert {name: end[name] for name in run.result} == run.result


@pytest.mark.processes
def test_a_run_says_what_it_is_about_before_its_first_frame(dispatcher: Place) -> None:
    two = QUICK.model_copy(update={"pictures": (Picture(id="astronaut"), Picture(id="chelsea"))})
    run = dispatcher.finished(dispatcher.submit(two))
    meta = next(event for event in dispatcher.store.events([run.id], 0) if event["kind"] in ("meta", "frame"))
    assert meta["kind"] == "meta"
    assert (meta["batch"], meta["size"], meta["channels"], meta["steps"]) == (2, 32, 3, 60)
    assert [picture["class_name"] for picture in meta["pictures"]] == ["person", "cat"]
    assert meta["baselines"]["grey"]["psnr"] > 5
    assert meta["private"] == f"/api/runs/{run.id}/private.png"
    with Image.open(io.BytesIO(dispatcher.store.files(run.id)["private.png"])) as sheet:
        assert sheet.size == (64, 32)


@pytest.mark.processes
def test_a_worker_leaves_the_cores_to_the_pages_first(dispatcher: Place) -> None:
    run = dispatcher.submit(LONG)
    assert os.getpriority(os.PRIO_PROCESS, dispatcher.worker(run)) >= os.getpriority(os.PRIO_PROCESS, 0) + POLITE
    dispatcher.service.cancel(run, "me")


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_of_ray_is_loaded_where_it_is_not_asked_for(dispatcher: Place) -> None:
    run = dispatcher.submit(another(LONG, 8))
    worker = dispatcher.worker(run)
    dispatcher.service.cancel(run, "me")
    assert "libtorch" in loaded(worker)
    assert "_raylet" not in loaded(worker) + loaded(dispatcher.dispatcher())


@pytest.mark.processes
def test_a_worker_process_records_the_device_of_this_machine(dispatcher: Place) -> None:
    kind = "mps" if torch.backends.mps.is_available() else "cpu"  # the fixture hides CUDA
    until(lambda: dispatcher.store.note(DEVICE) == kind, what=f"a worker records that it computes on {kind}")


@pytest.mark.processes
def test_frames_are_contact_sheets_with_scores(dispatcher: Place) -> None:
    run = dispatcher.finished(dispatcher.submit(QUICK))
    frames = dispatcher.frames(run.id)
    assert 2 <= len(frames) <= MAX_FRAMES
    assert [frame["step"] for frame in frames] == sorted(frame["step"] for frame in frames)
    assert all(frame["picture"] for frame in frames)
    for frame in (frames[0], frames[-1]):
        with Image.open(io.BytesIO(dispatcher.store.frame(run.id, frame["seq"]) or b"")) as sheet:
            assert (sheet.format, sheet.size) == ("PNG", (32, 32))
        assert frame["scores"]["psnr"] > 0
    assert frames[-1]["loss"] < frames[0]["loss"]
    assert frames[-1]["scores"]["psnr"] > frames[0]["scores"]["psnr"]


@pytest.mark.processes
def test_an_attack_that_answers_at_once_is_a_run_like_any_other(dispatcher: Place) -> None:
    run = dispatcher.finished(dispatcher.submit(Experiment(model=Part(id="mlp"), attack=Part(id="linear_layer"))))
    meta = next(event for event in dispatcher.store.events([run.id], 0) if event["kind"] == "meta")
    assert (run.status, meta["steps"]) == ("done", None)
    assert run.result is not None
    assert run.result["steps"] == 1
    assert run.result["scores"]["psnr"] > 60  # the rows of its first layer are the picture
    assert [frame["step"] for frame in dispatcher.frames(run.id)] == [1, 1]  # the guess, and as the answer


@pytest.mark.processes
def test_a_layer_without_a_unique_solution_comes_as_json_that_a_browser_can_read(dispatcher: Place) -> None:
    small = Part(id="custom", fields={"network": "conv 4@1"})  # 16 + 625 equations, one of which follows from the others
    picture = Picture(source="gallery", id="digit-3")
    experiment = Experiment(pictures=(picture,), model=small, attack=Part(id="r_gap"), task="flipped", size=28, channels=1)
    run = dispatcher.finished(dispatcher.submit(experiment))
    layers = [frame for frame in dispatcher.frames(run.id) if frame["note"].get("layer") == "conv1"]
    assert [(layer["note"]["rank"], layer["note"]["unknowns"], layer["note"]["condition"]) for layer in layers] == [(640, 784, None)]
    assert all(view.startswith("data:image/png;base64,") for layer in layers for view in layer["views"].values())
    json.dumps([dispatcher.store.events([run.id], 0), run.result], allow_nan=False)


@pytest.mark.processes
def test_the_same_experiment_is_answered_by_the_same_run(dispatcher: Place) -> None:
    run = dispatcher.submit(another(QUICK, 2))
    assert dispatcher.submit(another(QUICK, 2), "somebody else") == run
    assert dispatcher.submit(another(QUICK, 3), "somebody else") != run


# ---------------------------------------------------------------- stopping


@pytest.mark.processes
def test_cancel_keeps_the_best_so_far_at_once(dispatcher: Place) -> None:
    run = dispatcher.submit(another(LONG, 10))
    pid = dispatcher.worker(run)
    dispatcher.service.cancel(run, "somebody else")
    assert not dispatcher.look(run).cancelled, "a stranger cancelled it"
    dispatcher.service.cancel(run, "me")
    ended = dispatcher.finished(run)
    assert (ended.status, ended.message) == ("cancelled", "Cancelled; the best so far is shown.")
    kept_the_best(dispatcher, ended)
    assert alive(pid), "a worker that obeys goes on to the next run"


@pytest.mark.processes
def test_a_waiting_run_is_cancelled_without_a_worker(dispatcher: Place) -> None:
    busy = [dispatcher.submit(another(LONG, seed)) for seed in (20, 21)]
    for run in busy:
        dispatcher.worker(run)
    waiting = dispatcher.submit(another(LONG, 22))
    assert dispatcher.service.place(waiting).position == 1
    dispatcher.service.cancel(waiting, "me")
    assert dispatcher.status(waiting) == "cancelled"
    for run in busy:
        dispatcher.service.delete(run, "me")
    after = dispatcher.finished(dispatcher.submit(another(QUICK, 23)))
    assert after.status == "done"
    assert dispatcher.look(waiting).started is None


@pytest.mark.processes
def test_the_time_limit_of_a_run_keeps_the_best_so_far(dispatcher: Place) -> None:
    run = dispatcher.submit(another(LONG, 30).model_copy(update={"max_seconds": 15}))
    ended = dispatcher.finished(run)
    assert ended.status == "done"
    assert ended.message == "Stopped after 15 s, the limit for one run; the best so far is shown."
    assert ended.started is not None
    assert ended.finished is not None
    assert 14.9 < ended.finished - ended.started < 120
    kept_the_best(dispatcher, ended)


@pytest.mark.processes
def test_a_worker_that_ignores_cancel_is_killed(dispatcher: Place) -> None:
    run = dispatcher.submit(another(LONG, 40))
    pid = dispatcher.worker(run)
    frames = len(dispatcher.frames(run))
    os.kill(pid, signal.SIGSTOP)  # it cannot even notice a TERM
    dispatcher.service.cancel(run, "me")
    ended = dispatcher.finished(run, within=KILL_AFTER + 60)
    assert ended.cancelled is not None
    assert time.time() - ended.cancelled > KILL_AFTER - 1, "it was not given the time to obey"
    assert (ended.status, ended.message) == ("cancelled", "Cancelled; what there was until then is kept.")
    assert len(dispatcher.frames(run)) >= frames
    assert not alive(pid)


@pytest.mark.processes
def test_a_run_that_is_deleted_stops(dispatcher: Place) -> None:
    run = dispatcher.submit(another(LONG, 50))
    pid = dispatcher.worker(run)
    dispatcher.service.delete(run, "me")
    assert dispatcher.store.get(run) is None
    others = [dispatcher.submit(another(LONG, seed)) for seed in (51, 52)]  # both slots are free again
    until(lambda: [dispatcher.status(other) for other in others] == ["running"] * 2, what="the worker takes another run")
    assert alive(pid)
    assert dispatcher.store.events([run], 0) == []
    assert dispatcher.store.files(run) == {}
    assert dispatcher.service.delete_all("me") >= 2
    assert dispatcher.service.mine("me") == []


STUCK_WORKER = """
    from leakage.workers import heartbeat
    heartbeat.PATIENCE = 0.5
    run = store.claim("0:1")
    beat = heartbeat.Heartbeat(store, run)
    beat.deadline = time.monotonic() + float(sys.argv[2])
    beat.start()
    time.sleep(60)  # one step
"""


@pytest.mark.processes
@pytest.mark.parametrize("why", ["deleted", "cancelled", "over time"])
def test_a_step_that_takes_for_ever_gives_its_slot_back(tmp_path: Path, why: str) -> None:
    """A run can stop by itself only between two steps."""
    store = Store(tmp_path / "store.db")
    store.add(row("a"), {})
    process = python(STUCK_WORKER, store.path, 0.5 if why == "over time" else 600)
    until(lambda: not store.queue(), what="the run has begun")
    if why == "deleted":
        store.drop("a", "me")
    elif why == "cancelled":
        store.cancel("a")
    process.communicate(timeout=120)
    assert process.returncode == 1
    found = store.get("a")
    assert (found and (found.status, found.message)) == (None if why == "deleted" else ("cancelled", STUCK))
    store.close()


# ---------------------------------------------------------------- a worker that dies, or does not


def test_a_worker_survives_a_machine_that_cannot_be_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken plug-in would else kill an idle worker again and again."""

    def broken(_device: torch.device) -> None:
        raise SyntaxError("a plug-in")

    monkeypatch.setattr("leakage.workers.worker.measure", broken)
    store = Store(tmp_path / "store.db")
    assert len(list(chores(store, "0", torch.device("cpu")))) == 1
    assert store.note(SPEEDS) is None
    store.close()


def test_a_machine_is_measured_in_pieces_so_that_a_run_waits_for_one_model_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = {"a": (0.1, 0.2), "b": (0.3, 0.4)}
    monkeypatch.setattr("leakage.workers.worker.measure", lambda _device: iter(speeds.items()))
    store = Store(tmp_path / "store.db")
    pieces = chores(store, "0", torch.device("cpu"))
    for _ in ("one step played", "a", "b"):
        next(pieces)
        assert store.note(SPEEDS) is None
    with pytest.raises(SystemExit):
        next(pieces)
    assert store.note(SPEEDS) == {"a": [0.1, 0.2], "b": [0.3, 0.4]}
    store.close()


@pytest.mark.processes
def test_a_killed_worker_costs_its_own_run_and_no_other(dispatcher: Place) -> None:
    short = another(LONG, 71).model_copy(update={"max_seconds": 30})  # the other one's limit; the one that is lost would go on
    runs = [dispatcher.submit(another(LONG, 70)), dispatcher.submit(short)]
    pids = [dispatcher.worker(run) for run in runs]
    assert pids[0] != pids[1]
    frames = len(dispatcher.frames(runs[0]))
    os.kill(pids[0], signal.SIGKILL)
    lost = dispatcher.finished(runs[0])
    assert lost.heartbeat is not None
    assert lost.finished is not None
    assert lost.finished - lost.heartbeat < SILENCE  # by silence alone it would be lost later
    assert (lost.status, lost.message) == ("failed", LOST)
    assert len(dispatcher.frames(runs[0])) >= frames
    assert all(dispatcher.store.frame(runs[0], frame["seq"]) for frame in dispatcher.frames(runs[0]))
    assert dispatcher.finished(dispatcher.submit(another(QUICK, 72))).status == "done"
    other = dispatcher.finished(runs[1])
    assert other.status == "done"
    assert other.worker is not None
    assert other.worker.endswith(f":{pids[1]}")
    kept_the_best(dispatcher, other)


# ---------------------------------------------------------------- uploads


@pytest.mark.processes
def test_uploads_are_never_shared_and_gone_after_delete(dispatcher: Place) -> None:
    experiment, files = upload()
    first = dispatcher.finished(dispatcher.submit(experiment, uploads=files))
    second = dispatcher.finished(dispatcher.submit(experiment, uploads=files))
    assert (first.status, second.status) == ("done", "done")
    assert first.id != second.id
    assert not first.shareable
    assert dispatcher.store.files(first.id, "upload:") == {"upload:red": files["red"]}
    dispatcher.service.delete(first.id, "me")
    assert dispatcher.store.files(first.id) == {}
    assert set(dispatcher.store.files(second.id)) == {"upload:red", "private.png"}
    dispatcher.service.delete(second.id, "somebody else")
    assert dispatcher.store.get(second.id) is not None
    dispatcher.service.delete(second.id, "me")
    assert dispatcher.store.files(second.id) == {}
