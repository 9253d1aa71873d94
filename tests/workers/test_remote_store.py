"""The remote store: each call is done once, whichever process is killed, and only for runs that still belong to the worker."""

import ast
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from sample_events import frame, note
from store_rows import queued, run

from leakage.data.errors import CheckpointError, PictureError
from leakage.runs.events import ProgressEvent, RoundEvent
from leakage.runs.store import Store
from leakage.settings import Settings
from leakage.spec.experiment import Experiment, Picture
from leakage.spec.tasks import GradientNorms, Training
from leakage.workers import remote_store
from leakage.workers.cluster_files import NeededFile, changed_files, fetch_files, keep_training, needed_files, process_home
from leakage.workers.ray_worker import RayWorker, resources_of
from leakage.workers.remote_calls import RemoteCalls
from leakage.workers.remote_store import CALLS, SEVERAL, Call, CallAnswer, OpenCalls, RemoteStore

SOON = 60.0
TRAINING = Training(rounds=2)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    return Settings(home=tmp_path, slots=1, store_mb=64, memory_mb=0)


@pytest.fixture
def store(config: Settings) -> Iterator[Store]:
    made = Store(config.store)
    yield made
    made.close()


@pytest.fixture
def calls(store: Store, config: Settings) -> RemoteCalls:
    return RemoteCalls(store, config)


def call(name: str, *values: Any, again: bool = False, **named: Any) -> Call:
    return Call(1, name, values, named, again)


def done(calls: RemoteCalls, one: Call, worker: str = "w") -> Any:
    answer = calls.answer(worker, one)
    if answer.error:
        raise answer.error
    return answer.value


def asking(ask: Callable[..., Any], *values: Any, **named: Any) -> Future[Any]:
    """Ask beside the test, which need not wait for a thread that nobody answers."""
    answer = Future[Any]()

    def wait() -> None:
        try:
            answer.set_result(ask(*values, **named))
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=wait, daemon=True).start()
    return answer


# ---------------------------------------------------------------- calls on their way


def test_a_call_waits_for_its_answer() -> None:
    open_calls = OpenCalls()
    answer = asking(open_calls.ask, "files", "a", prefix="upload:")
    (fetched,) = open_calls.exchange([], SOON)
    assert (fetched.name, fetched.values, fetched.named, fetched.again) == ("files", ("a",), {"prefix": "upload:"}, False)
    assert not answer.done()
    assert open_calls.exchange([CallAnswer(fetched.number, {"x": b"1"})], 0) == []
    assert answer.result(SOON) == {"x": b"1"}


def test_a_call_whose_fetch_was_lost_is_fetched_again_and_says_so() -> None:
    open_calls = OpenCalls()
    answer = asking(open_calls.ask, "claim")
    first = open_calls.exchange([], SOON)
    second = open_calls.exchange([], SOON)
    assert [(one.number, one.again) for one in (*first, *second)] == [(1, False), (1, True)]
    for _ in range(2):  # the answer, too, may come twice
        open_calls.exchange([CallAnswer(1, "run")], 0)
    assert answer.result(SOON) == "run"


def test_what_a_call_raised_is_raised_where_it_was_made() -> None:
    open_calls = OpenCalls()
    answer = asking(open_calls.ask, "add_event")
    (fetched,) = open_calls.exchange([], SOON)
    open_calls.exchange([CallAnswer(fetched.number, error=sqlite3.OperationalError("database or disk is full"))], 0)
    with pytest.raises(sqlite3.OperationalError, match="full"):
        answer.result(SOON)


def test_calls_of_several_threads_get_each_their_own_answer() -> None:
    open_calls = OpenCalls()
    answers = {number: asking(open_calls.ask, "note", number) for number in range(4)}
    answered = 0
    while answered < 4:
        fetched = open_calls.exchange([], SOON)
        open_calls.exchange([CallAnswer(one.number, 10 * one.values[0]) for one in fetched], 0)
        answered += len(fetched)
    assert {number: answer.result(SOON) for number, answer in answers.items()} == {0: 0, 1: 10, 2: 20, 3: 30}


# ---------------------------------------------------------------- what is done where the store is


def test_a_worker_claims_in_its_own_name(store: Store, calls: RemoteCalls) -> None:
    queued(store, "a", "b")
    assert done(calls, call("claim", short=False)).worker == "w"
    assert [one.worker for one in done(calls, call("claim_also", ["b"], 1))] == ["w"]


def test_a_claim_that_was_done_and_not_answered_gives_the_same_run(store: Store, calls: RemoteCalls) -> None:
    queued(store, "a", "b", "c")
    first = done(calls, call("claim", short=False))
    assert done(calls, call("claim", again=True, short=False)) == first
    assert [run.id for run in store.running()] == ["a"]
    also = done(calls, call("claim_also", ["b", "c"], 1))
    assert done(calls, call("claim_also", ["b", "c"], 1, again=True)) == also
    assert [run.id for run in store.running()] == ["a", "b"]


def test_a_claim_that_was_fetched_and_not_done_is_done(store: Store, calls: RemoteCalls) -> None:
    queued(store, "a")
    assert done(calls, call("claim", again=True, short=False)).id == "a"


def test_a_frame_that_was_kept_and_not_answered_is_kept_once(store: Store, calls: RemoteCalls) -> None:
    queued(store, "a")
    done(calls, call("claim", short=False))
    first = done(calls, call("add_frame", "a", frame(step=1), b"png"))
    assert done(calls, call("add_frame", "a", frame(step=1), b"png", again=True)) == first
    second = done(calls, call("add_frame", "a", frame(step=2), b"png", again=True))
    assert [told.seq for told in store.frames("a")] == [first, second]
    assert done(calls, call("add_event", "a", note("one"))) == done(calls, call("add_event", "a", note("one"), again=True))


@pytest.mark.parametrize("gone", ["deleted", "ended", "begun anew elsewhere"])
def test_a_run_that_is_no_more_the_workers_is_neither_written_nor_played_on(store: Store, calls: RemoteCalls, gone: str) -> None:
    queued(store, "a")
    done(calls, call("claim", short=False))
    assert done(calls, call("beat", "a")) == (False, 1)
    if gone == "deleted":
        store.drop("a", "me")
    elif gone == "ended":
        store.finish("a", "failed", message="lost")
    else:
        store.requeue("a", "lost")
        store.claim("other")
    before = (store.get("a"), store.events(["a"], 0))
    assert done(calls, call("beat", "a")) == (True, 0)
    assert done(calls, call("add_event", "a", note("late"))) == 0
    assert done(calls, call("add_frame", "a", frame(), b"png")) == 0
    assert done(calls, call("put_file", "a", "private.png", b"png")) is None
    assert done(calls, call("finish", "a", "done", message="late")) is None
    assert (store.get("a"), store.events(["a"], 0)) == before
    assert store.files("a") == {}


@pytest.mark.parametrize("name", ["drop", "cancel", "requeue", "__class__", "_write_in_any_case"])
def test_a_worker_can_ask_for_nothing_else(store: Store, calls: RemoteCalls, name: str) -> None:
    queued(store, "a")
    with pytest.raises(AttributeError, match=f"asks the store for '{name}'"):
        done(calls, call(name, "a"))


def test_a_worker_knows_no_other_method() -> None:
    with pytest.raises(AttributeError, match="drop"):
        RemoteStore(OpenCalls()).drop("a", "me")


def test_an_error_that_cannot_travel_travels_in_words(store: Store, calls: RemoteCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    class HomelessError(Exception):
        """Of a class that nobody else can find."""

    def fail(_name: str) -> None:
        raise HomelessError("no such thing")

    monkeypatch.setattr(store, "note", fail)
    with pytest.raises(RuntimeError, match="HomelessError: no such thing"):
        done(calls, call("note", "speeds"))


# ---------------------------------------------------------------- the worker's side, against the other


@pytest.fixture
def remote(store: Store, calls: RemoteCalls) -> Iterator[RemoteStore]:
    """A remote store and a thread that answers its calls. Some exchanges are lost, before or after the call is done."""
    open_calls, over = OpenCalls(), threading.Event()

    def answer_calls() -> None:
        answers, number = list[CallAnswer](), 0
        while not over.is_set():
            number += 1
            fetched = open_calls.exchange(answers, 0.05)
            answers = [calls.answer("0:w:1", one) for one in fetched] if number % 4 else []
            if number % 4 == 2:
                answers = []
        store.close()

    thread = threading.Thread(target=answer_calls)
    thread.start()
    yield RemoteStore(open_calls)
    over.set()
    thread.join()


def test_from_afar_a_store_is_a_store(store: Store, remote: RemoteStore) -> None:
    queued(store, "a")
    claimed = remote.claim("", short=False)
    assert claimed is not None
    assert claimed.id == "a"
    assert time.time() - (claimed.started or 0) < SOON  # by this side's clock
    seqs = [remote.add_frame("a", frame(step=step), b"png") for step in range(1, 8)]
    assert [told.seq for told in store.frames("a")] == seqs
    assert remote.beat("a") == (False, SEVERAL)
    store.cancel("a")
    assert remote.beat("a") == (True, SEVERAL)
    remote.finish("a", "cancelled", message="so far")
    ended = store.get("a")
    assert ended is not None
    assert (ended.status, ended.message) == ("cancelled", "so far")


def test_a_training_is_kept_at_every_round_and_at_its_end(store: Store, remote: RemoteStore, config: Settings, tmp_path: Path) -> None:
    store.add(run("t", kind="train", experiment=TRAINING.model_dump_json()), {})
    remote.claim("", short=False)
    kept = config.checkpoints / TRAINING.name
    remote.training = tmp_path / "far"
    remote.training.mkdir()
    (remote.training / "lock").touch()
    (remote.training / "state.safetensors").write_bytes(b"one round")
    remote.add_event("t", ProgressEvent(done=0.5, loss=1.0, seconds=1.0))
    assert not kept.exists()
    remote.add_event("t", RoundEvent(done=1, loss=1.0, seconds=1.0, accuracy=0.5))
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == {"state.safetensors": b"one round"}
    (remote.training / "state.safetensors").unlink()
    (remote.training / "card.json").write_bytes(b"{}")
    remote.finish("t", "done")
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == {"card.json": b"{}"}


# ---------------------------------------------------------------- files


def test_only_files_that_differ_are_fetched(tmp_path: Path) -> None:
    file = NeededFile("data", "sets/a.bin", 3, 10**18)
    fetched = list[str]()

    def read(one: NeededFile) -> bytes:
        fetched.append(one.path)
        return b"abc"

    for _ in range(2):
        fetch_files([file], read, {"data": tmp_path})
    assert fetched == ["sets/a.bin"]
    assert (tmp_path / "sets" / "a.bin").read_bytes() == b"abc"
    fetch_files([NeededFile("data", "sets/a.bin", 3, 10**18 + 5)], read, {"data": tmp_path})
    assert len(fetched) == 2


def test_an_attack_needs_the_data_set_of_its_pictures_with_its_labels_and_nothing_else(config: Settings, tmp_path: Path) -> None:
    raw = tmp_path / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", "train-images-idx3-ubyte"):
        (raw / name).touch()
    digits = Experiment(pictures=(Picture(source="mnist", id="3"), Picture(id="astronaut")))
    needed = needed_files(run("a", experiment=digits.model_dump_json()), config)
    assert {file.path: path for file, path in needed.items()} == {
        f"MNIST/raw/{name}": raw / name for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
    }
    norms = GradientNorms(source="mnist").model_dump_json()
    assert needed_files(run("n", kind="norms", experiment=norms), config) == needed
    gallery = Experiment(pictures=(Picture(id="astronaut"), Picture(source="upload", id="u", label=1)))
    assert needed_files(run("b", experiment=gallery.model_dump_json()), config) == {}
    assert needed_files(run("c", kind="rank"), config) == {}


def test_what_is_missing_where_the_store_is_is_named(config: Settings, tmp_path: Path) -> None:
    digits = Experiment(pictures=(Picture(source="mnist", id="3"),))
    with pytest.raises(PictureError, match="The pictures of MNIST were not found in LEAKAGE_DATA"):
        needed_files(run("a", experiment=digits.model_dump_json()), config)
    with pytest.raises(CheckpointError, match="'mine@3' is not on this machine"):
        needed_files(run("b", experiment=Experiment(checkpoint="mine@3").model_dump_json()), config)


def test_of_two_workers_at_one_training_the_second_waits(store: Store, calls: RemoteCalls, tmp_path: Path) -> None:
    raw = tmp_path / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "t10k"):
        (raw / f"{part}-images-idx3-ubyte").touch()
    for name, seconds in (("a", 100), ("b", 200)):
        training = TRAINING.model_copy(update={"data": "mnist", "max_seconds": seconds})
        store.add(run(name, kind="train", experiment=training.model_dump_json()), {})
    done(calls, call("claim", short=False), "w1")
    done(calls, call("claim", short=False), "w2")
    assert done(calls, call("needed_files", "b"), "w2") is None
    store.finish("a", "cancelled")
    assert [file.path for file in done(calls, call("needed_files", "b"), "w2")] == [
        "MNIST/raw/train-images-idx3-ubyte",
        "MNIST/raw/t10k-images-idx3-ubyte",
    ]


def test_a_training_that_is_kept_halfway_can_go_on(tmp_path: Path) -> None:
    """The card says that it is finished: it comes last, and the state just before it."""
    folder, fresh = tmp_path / "kept", {"card.json": b"c", "state.safetensors": b"s", "metrics.json": b"m", "1.safetensors": b"1"}
    keep_training(folder, fresh, fresh)
    order = sorted(fresh, key=lambda name: (folder / name).stat().st_mtime_ns)
    assert order == ["1.safetensors", "metrics.json", "state.safetensors", "card.json"]
    keep_training(folder, ["card.json", "../evil.json"], {"../evil.json": b"x"})
    assert [path.name for path in folder.iterdir()] == ["card.json"]
    assert not (tmp_path / "evil.json").exists()


def test_a_file_that_was_fetched_is_not_sent_back(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_bytes(b"1")
    (tmp_path / "state.safetensors.tmp").touch()
    present, fresh = changed_files(tmp_path, {})
    assert fresh == {"metrics.json": b"1"}
    assert changed_files(tmp_path, present) == (present, {})


def test_homes_of_processes_that_are_gone_are_removed(tmp_path: Path) -> None:
    other = tmp_path / "homes" / "999999999"
    living = tmp_path / "homes" / str(os.getppid())
    for folder in (other, living):
        folder.mkdir(parents=True)
    assert process_home(tmp_path) == tmp_path / "homes" / str(os.getpid())
    assert not other.exists()
    assert living.exists()


def test_a_node_with_another_version_says_so() -> None:
    worker = RayWorker("0:w:1", slots=1, per_gpu=1, version="another")
    worker.thread.join(SOON)
    calls, ended = worker.exchange([], leave=False)
    assert calls == []
    assert ended is not None
    assert "has another version of this program than the dispatcher" in ended


def test_a_worker_asks_for_a_core_or_for_a_share_of_a_gpu_where_there_is_one() -> None:
    assert resources_of({"CPU": 6.0, "memory": 1e9}, 4) == ({"num_cpus": 1}, 6)
    assert resources_of({"CPU": 16.0, "GPU": 2.0}, 4) == ({"num_cpus": 1, "num_gpus": 0.25}, 8)
    assert resources_of({"CPU": 16.0, "GPU": 1.0}, 1) == ({"num_cpus": 1, "num_gpus": 1.0}, 1)
    assert resources_of({}, 4) == ({"num_cpus": 1}, 0)


def test_all_that_a_worker_asks_of_its_store_can_be_asked_from_afar() -> None:
    folder, asked = Path(remote_store.__file__).parent, set()
    for module in ("worker", "job", "attack_job", "training_job", "rank_job", "heartbeat"):
        for node in ast.walk(ast.parse((folder / f"{module}.py").read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                if getattr(owner, "attr", getattr(owner, "id", "")) == "store":
                    asked.add(node.func.attr)
    assert {"claim", "add_frame", "put_version", "finish"} <= asked
    assert asked - {"close"} <= CALLS | set(vars(RemoteStore))
