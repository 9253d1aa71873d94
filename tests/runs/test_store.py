"""The store: one queue for many processes, a bounded number of frames, and nothing left of deleted data."""

import contextlib
import math
import shutil
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from home_processes import damaged
from sample_events import end, frame, note
from store_rows import python, queued, run

from leakage.runs.connections import StoreError, is_full
from leakage.runs.event_log import MAX_FRAMES, THINNED
from leakage.runs.notes import LOG, RECORDINGS
from leakage.runs.run_queue import BEAT
from leakage.runs.store import Caps, Label, QueueFullError, Store
from leakage.runs.thin import log_spaced

PNG = b"\x89PNG not really"


def claimed(store: Store) -> str | None:
    found = store.claim("0:1")
    return found.id if found else None


def asked(store: Store, **values: Any) -> str:
    """Return the run that answers owner "you" for the digest of "mine", or with `values`; drop it if it is the new run "yours"."""
    (answer,) = store.ask([(run("yours", "you", **{"digest": "digest of mine", **values}), {})])
    store.drop("yours", "you")
    return answer


def counts(store: Store) -> dict[str, int]:
    """Rows per table that belong to a run."""
    tables = ("runs", "holders", "events", "frames", "files")
    return {table: store.database.read().execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables}


# ---------------------------------------------------------------- the queue


@pytest.mark.long
def test_of_many_processes_that_claim_at_once_each_run_goes_to_exactly_one(store: Store) -> None:
    names = [f"run-{number:03d}" for number in range(120)]
    queued(store, *names)
    script = """
        print("ready", flush=True)
        go = Path(sys.argv[3])
        while not go.exists():
            pass
        while run := store.claim(f"{sys.argv[2]}:1"):
            print(run.id)
            time.sleep(0.001)  # so that the others come to their turn, on one core too
    """
    go = store.path.with_name("go")
    workers = [python(script, store.path, number, go) for number in range(4)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    go.touch()
    answers = [worker.communicate(timeout=240)[0].split() for worker in workers]
    assert sorted(name for answer in answers for name in answer) == names
    assert sum(bool(answer) for answer in answers) > 1, "one process was so fast that nothing was tested"
    assert {event["status"] for event in store.events(None, 0)} == {"queued", "running"}
    assert store.queue() == []


def test_runs_of_one_owner_are_claimed_in_their_order(store: Store) -> None:
    queued(store, "first", "second", "third")
    assert [claimed(store) for _ in range(4)] == ["first", "second", "third", None]


def test_an_owner_with_a_running_run_waits_behind_one_without(store: Store) -> None:
    queued(store, "mine", "mine too", "mine again")
    queued(store, "yours", "yours too", owner="you")
    assert [claimed(store) for _ in range(5)] == ["mine", "yours", "mine too", "yours too", "mine again"]


def test_a_finished_run_counts_against_its_owner_by_the_seconds_it_took(store: Store) -> None:
    now = time.time()
    for name, owner, created in (("mine", "me", now - 9), ("mine too", "me", now - 3), ("yours", "you", now + 50)):
        store.add(run(name, owner, created=created), {})
    assert claimed(store) == "mine"
    store.finish("mine", "done")  # within the 50 s by which yours came later
    assert claimed(store) == "mine too"


def test_a_waiting_run_is_cancelled_at_once_and_never_claimed(store: Store) -> None:
    queued(store, "mine")
    store.cancel("mine")
    assert claimed(store) is None
    found = store.get("mine")
    assert found is not None
    assert found.status == "cancelled"
    assert found.finished is not None
    assert store.events(["mine"], 0)[-1]["message"] == "Cancelled before it began."


def test_a_beat_is_noted_once_a_second(store: Store) -> None:
    def noted() -> float:
        found = store.get("a")
        assert found is not None
        assert found.heartbeat is not None
        return found.heartbeat

    queued(store, "a")
    claimed(store)
    first = noted()
    store.beat("a")
    assert noted() == first
    with store.database.write() as db:
        db.execute("UPDATE runs SET heartbeat = heartbeat - ?", (BEAT,))
    store.beat("a")
    assert noted() >= first


def test_a_beat_tells_a_cancelled_a_finished_and_a_deleted_run_to_stop(store: Store) -> None:
    queued(store, "a", "b")
    claimed(store)
    claimed(store)
    assert store.beat("a") == (False, 2)
    store.cancel("a")
    assert store.beat("a") == (True, 2)
    store.finish("b", "failed")
    assert store.beat("b") == (True, 1)
    store.drop("a", "me")
    assert store.beat("a") == (True, 0)


def test_finish_is_final(store: Store) -> None:
    queued(store, "mine")
    claimed(store)
    store.finish("mine", "done", result=end(7))
    ended = store.get("mine")
    store.finish("mine", "failed", message="worker lost")
    store.cancel("mine")
    assert store.get("mine") == ended
    assert ended is not None
    assert (ended.status, ended.message, ended.result) == ("done", "", {"answer": 7})
    assert [event["kind"] for event in store.events(["mine"], 0)] == ["state", "state", "end", "state"]


def test_a_run_begins_anew_once_and_without_what_it_told(store: Store) -> None:
    queued(store, "a")
    store.claim("w1")
    store.add_event("a", note(text="so far"))
    store.add_frame("a", frame(step=1), b"png")
    assert store.requeue("a", "Its machine is gone.")
    told = store.events(["a"], 0)
    states = [event["status"] for event in told if event["kind"] == "state"]
    assert states == ["queued", "running", "queued"]
    assert [event["text"] for event in told if event["kind"] != "state"] == ["Its machine is gone."]
    assert store.database.read().execute("SELECT COUNT(*) FROM frames").fetchone()[0] == 0
    again = store.claim("w2")
    assert again is not None
    assert (again.id, again.worker, again.status) == ("a", "w2", "running")
    assert not store.requeue("a", "A second time.")
    assert store.get("a") == again


@pytest.mark.parametrize("how", ["waiting", "finished", "to be stopped"])
def test_a_run_that_does_not_run_or_is_to_be_stopped_does_not_begin_anew(store: Store, how: str) -> None:
    queued(store, "a")
    if how != "waiting":
        store.claim("w1")
    if how == "finished":
        store.finish("a", "done")
    if how == "to be stopped":
        store.cancel("a")
    before = store.get("a")
    assert not store.requeue("a", "Its machine is gone.")
    assert store.get("a") == before


def test_a_run_that_nobody_claimed_cannot_be_finished(store: Store) -> None:
    queued(store, "mine")
    store.finish("mine", "done")
    assert [waiting.id for waiting in store.queue()] == ["mine"]


# ---------------------------------------------------------------- sharing


def test_only_a_run_with_equal_digest_and_version_is_shared(store: Store) -> None:
    queued(store, "mine")
    assert asked(store, digest="another digest") == "yours"
    assert asked(store, version="2") == "yours"
    assert "you" not in store.holders("mine")
    assert asked(store) == "mine"
    assert "you" in store.holders("mine")


@pytest.mark.parametrize(("status", "shared"), [("running", True), ("done", True), ("failed", False), ("cancelled", False)])
def test_a_failed_or_cancelled_run_is_not_shared(store: Store, status: str, shared: bool) -> None:
    queued(store, "mine")
    claimed(store)
    if status != "running":
        store.finish("mine", status)
    assert asked(store) == ("mine" if shared else "yours")


def test_a_run_that_is_being_cancelled_is_not_shared(store: Store) -> None:
    queued(store, "mine")
    claimed(store)
    store.cancel("mine")
    assert asked(store) == "yours"


def test_a_run_with_uploads_is_not_shared(store: Store) -> None:
    store.add(run("mine", shareable=False), {"upload:a": b"picture"})
    assert asked(store) == "yours"
    assert asked(store, shareable=False) == "yours"


def test_what_is_to_be_computed_anew_is_not_shared_with_what_was_there_but_within_itself(store: Store) -> None:
    queued(store, "mine")
    twice = [(run("one", "you", digest="digest of mine"), {}), (run("two", "you", digest="digest of mine"), {})]
    assert store.ask(twice, anew=True) == ["one", "one"]
    assert store.get("two") is None


@pytest.mark.long
def test_forty_equal_requests_at_once_queue_one_run(store: Store) -> None:
    """Each in a thread of its own with a connection of its own, let go together; a hundred times."""
    for trial in range(100):
        answers: list[str] = []
        together = threading.Barrier(40)

        def ask(number: int, trial: int = trial, together: threading.Barrier = together, answers: list[str] = answers) -> None:
            together.wait()
            answers.extend(store.ask([(run(f"{trial}-{number}", f"owner {number}", digest=f"question {trial}"), {})]))
            store.close()

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 40
        assert len(set(answers)) == 1
        assert len(store.holders(answers[0])) == 40
    assert len(store.queue()) == 100


@pytest.mark.parametrize(("caps", "cap", "open_runs"), [(Caps(3, 9), "own", 2), (Caps(9, 4), "all", 3)])
def test_beyond_a_cap_nothing_is_queued_and_the_cap_is_named(store: Store, caps: Caps, cap: str, open_runs: int) -> None:
    queued(store, "mine", "mine too")
    queued(store, "yours", owner="you")
    two = [(run("third"), {}), (run("fourth"), {})]
    with pytest.raises(QueueFullError) as caught:
        store.ask(two, caps=caps)
    assert (caught.value.cap, caught.value.open, caught.value.asked) == (cap, open_runs, 2)
    assert len(store.queue()) == 3
    assert store.ask([(run("new", digest="digest of mine"), {})], caps=Caps(0, 0)) == ["mine"]  # what is there costs nothing


# ---------------------------------------------------------------- events and frames


def test_events_come_in_their_order_since_a_number_and_only_of_the_runs_asked_for(store: Store) -> None:
    queued(store, "a", "b")
    first = store.add_event("a", note("one"))
    store.add_event("b", note("two"))
    third = store.add_event("a", note("three"))
    assert [event["seq"] for event in store.events(["a"], first - 1)] == [first, third]
    assert [event["text"] for event in store.events(["a"], first)] == ["three"]
    assert [event["run"] for event in store.events(["a", "b"], first - 1)] == ["a", "b", "a"]
    assert store.events(["a", "b"], third) == []
    assert len(store.events(None, 0)) == 5
    assert store.last_seq() == third


def test_an_event_of_a_deleted_run_is_not_written(store: Store) -> None:
    assert store.add_event("gone", note()) == 0
    assert store.add_frame("gone", frame(), PNG) == 0
    store.put_file("gone", "private.png", PNG)
    assert counts(store) == {"runs": 0, "holders": 0, "events": 0, "frames": 0, "files": 0}


def test_a_number_is_never_given_twice(store: Store) -> None:
    """A listener resumes after a number: an event that reused one would be skipped."""
    queued(store, "a")
    last = store.add_event("a", note())
    store.drop("a", "me")
    queued(store, "b")
    assert store.events(["b"], 0)[0]["seq"] == last + 1


@pytest.mark.long
def test_of_3000_frames_at_most_240_pictures_stay_evenly_on_a_log_scale_and_every_point_of_the_curves(store: Store) -> None:
    queued(store, "a")
    queued(store, "b")
    seqs = []
    for number in range(1, 3001):
        seqs.append(store.add_frame("a", frame(number), PNG))
        if number % 3 == 0:  # another run writes meanwhile
            store.add_event("b", note())
        if number % 100 == 0:
            assert counts(store)["frames"] <= MAX_FRAMES
    frames = [event for event in store.events(["a"], 0) if event["kind"] == "frame"]
    assert [frame["step"] for frame in frames] == list(range(1, 3001))
    kept = [frame["step"] for frame in frames if frame["picture"]]
    assert 100 <= len(kept) <= MAX_FRAMES
    assert kept[0] == 1
    assert kept[-1] == 3000
    assert kept[:8] == list(range(1, 9))  # the beginning, where most happens, without a gap
    # 160 of 3000 on a log scale are 5 % apart
    assert max(math.log(later / earlier) for earlier, later in pairwise(kept) if earlier > 20) < 0.1
    assert store.frame("a", seqs[0]) == PNG
    assert store.frame("a", seqs[-1]) == PNG
    assert store.frame("b", seqs[0]) is None


def test_a_thinned_event_names_the_frames_that_stay(store: Store) -> None:
    queued(store, "a")
    for number in range(MAX_FRAMES + 1):
        store.add_frame("a", frame(number), PNG)
    events = store.events(["a"], 0)
    (thinned,) = (event for event in events if event["kind"] == "thinned")
    assert thinned["kept"] == [event["seq"] for event in events if event.get("picture")]


@pytest.mark.parametrize(("last", "count"), [(1, 3), (3, 3), (10, 4), (241, 160), (1000, 160)])
def test_log_spaced_keeps_first_and_last_and_no_more_than_asked(last: int, count: int) -> None:
    kept = log_spaced(list(range(1, last + 1)), count)
    assert len(kept) == min(last, count)
    assert kept == sorted(set(kept))
    assert (kept[0], kept[-1]) == (1, last)


# ---------------------------------------------------------------- deleting


def test_the_last_holder_takes_run_frames_and_files_along(store: Store) -> None:
    store.add(run("mine"), {"upload:a": b"picture"})
    asked(store)
    store.add_frame("mine", frame(1), PNG)
    store.put_file("mine", "private.png", PNG)
    store.drop("mine", "me")
    assert "me" not in store.holders("mine")
    assert counts(store) == {"runs": 1, "holders": 1, "events": 2, "frames": 1, "files": 2}
    store.drop("mine", "a stranger")
    assert store.get("mine") is not None
    store.drop("mine", "you")
    assert counts(store) == {"runs": 0, "holders": 0, "events": 0, "frames": 0, "files": 0}


def test_the_bytes_of_a_deleted_upload_are_gone_from_the_disk(store: Store) -> None:
    secret = b"the pixels of somebody's face, " * 500
    server = python("print(store.queue()); sys.stdin.read()", store.path)  # while it has the store open, the log stays
    store.add(run("mine", shareable=False), {"upload:a": secret})
    store.add(run("old", "you", shareable=False, created=1.0), {"upload:b": secret})

    def found() -> set[str]:
        return {file.name for file in store.path.parent.iterdir() if secret[:31] in file.read_bytes()}

    assert found() == {"store.db-wal"}
    store.drop("mine", "me")
    store.sweep(uploads_before=2.0)
    assert found() == set()
    server.communicate("", timeout=240)


def test_pictures_that_are_thinned_or_deleted_are_overwritten_whatever_the_librarys_default(store: Store) -> None:
    """Of any run, also of one with uploads that goes on; the log is emptied, so what is found would be in the file."""
    secret = b"the pixels of somebody's face, " * 100
    for name, shareable in (("upload", False), ("plain", True)):
        store.add(run(name, shareable=shareable), {})
        store.claim("0:1")
        store.add_frame(name, frame(1), PNG)
        store.add_frame(name, frame(2), secret)
        for number in range(3, MAX_FRAMES + 2):  # the last one thins: of 241 frames every crowded one goes
            store.add_frame(name, frame(number), secret if number > MAX_FRAMES // 2 else PNG)
    kept = {name: sum(bool(told.get("picture")) for told in store.events([name], 0)) for name in ("upload", "plain")}
    assert kept == {"upload": THINNED, "plain": THINNED}
    store.database.empty_log()
    found = store.path.read_bytes().count(secret)
    shown = sum(store.frame(name, told["seq"]) == secret for name in kept for told in store.events([name], 0) if told.get("picture"))
    assert found == shown
    for name in kept:
        store.drop(name, "me")
    assert secret[:31] not in store.path.read_bytes()


def test_a_log_that_somebody_reads_is_emptied_later(store: Store) -> None:
    secret = b"the pixels of somebody's face, " * 500
    store.add(run("mine", shareable=False), {"upload:a": secret})
    reader = python("db = store.database.read(); db.execute('BEGIN'); print(len(store.queue()), flush=True); sys.stdin.read()", store.path)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "1\n"
    store.database.read().execute("PRAGMA busy_timeout = 200")  # else it waits for the reader, ten seconds
    store.drop("mine", "me")
    assert store.note(LOG) is not None
    reader.communicate("", timeout=240)
    store.empty_log()  # as the dispatcher does, every few seconds
    assert store.note(LOG) is None
    assert all(secret[:31] not in file.read_bytes() for file in store.path.parent.iterdir())


def test_a_sweep_takes_old_runs_with_uploads_and_no_others(store: Store) -> None:
    now = time.time()
    store.add(run("old upload", shareable=False, created=now - 100), {"upload:a": b"picture"})
    store.add(run("new upload", shareable=False, created=now), {"upload:b": b"picture"})
    store.add(run("old", created=now - 100), {})
    store.put_label("old upload", "me", Label("pinned", now))
    store.sweep(uploads_before=now - 50)
    assert {found.id for found in store.held_by("me")} == {"new upload", "old"}
    assert store.files("old upload") == {}
    assert store.files("new upload", "upload:") == {"upload:b": b"picture"}


def test_the_runs_of_an_owner_come_newest_first_and_are_nobody_elses(store: Store) -> None:
    store.add(run("older", created=1.0), {})
    store.add(run("newer", created=2.0), {})
    queued(store, "yours", owner="you")
    assert [found.id for found in store.held_by("me")] == ["newer", "older"]


# ---------------------------------------------------------------- several processes and threads


def test_another_process_reads_whole_events_while_one_writes(store: Store) -> None:
    queued(store, "a")
    reader = python(
        """
        print("ready", flush=True)
        since, seen = 0, []
        ends = time.monotonic() + 200
        while len(seen) < 200 and time.monotonic() < ends:
            for event in store.events(["a"], since):
                since = event["seq"]
                if event["kind"] == "frame":
                    seen.append(event["step"])
                    assert store.frame("a", since) == b"x" * 3000
        print(seen == list(range(200)))
        """,
        store.path,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "ready\n"
    for number in range(200):
        store.add_frame("a", frame(number), b"x" * 3000)
    assert reader.communicate(timeout=240)[0] == "True\n"


def test_threads_may_share_one_store(store: Store) -> None:
    queued(store, "a")
    errors: list[BaseException] = []

    def write() -> None:
        try:
            for _ in range(50):
                store.add_event("a", note())
                store.beat("a")
                store.ask([(run("b", "you", digest="digest of a"), {})])  # reads, then writes
        except BaseException as error:
            errors.append(error)
        finally:
            store.close()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(store.events(["a"], 0)) == 201


@pytest.mark.long
def test_two_processes_may_create_the_store_at_once(tmp_path: Path) -> None:
    makers = [python("store.put_note(sys.argv[2], 1); print('done')", tmp_path / "new" / "store.db", number) for number in range(4)]
    assert [maker.communicate(timeout=240)[0] for maker in makers] == ["done\n"] * 4
    store = Store(tmp_path / "new" / "store.db")
    assert [store.note(str(number)) for number in range(4)] == [1] * 4
    store.close()


# ---------------------------------------------------------------- a full disk


def test_a_store_at_its_limit_says_so_and_stays_usable(tmp_path: Path) -> None:
    """The failed write leaves nothing half done: the next ones work, and after a delete there is room again."""
    store = Store(tmp_path / "store.db", max_mb=1)
    queued(store, "a", "b")

    def fill() -> None:
        for number in range(1000):
            store.add_frame("a", frame(number), b"x" * 20_000)

    with pytest.raises(StoreError, match="full") as caught:
        fill()
    assert is_full(caught.value)
    frames = [event for event in store.events(["a"], 0) if event["kind"] == "frame"]
    assert 10 < len(frames) < 60
    assert store.frame("a", frames[-1]["seq"]) == b"x" * 20_000
    store.drop("a", "me")
    assert store.add_frame("b", frame(1), b"x" * 20_000) > 0
    assert damaged(store) == []
    store.close()


def fill(store: Store) -> None:
    """Small events until there is no room for another."""
    with pytest.raises(StoreError, match="full"):  # noqa: PT012 (which of them fails is not known)
        while True:
            store.add_event("a", note())


@pytest.mark.long
def test_there_is_room_for_last_words_beyond_the_limit_and_for_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.db", max_mb=1)
    queued(store, "a", "b")
    store.put_note(RECORDINGS, {"a": "", "b": ""})  # so that they make no room
    claimed(store)
    fill(store)
    store.finish("a", "failed", message="The disk is full. " * 300)
    store.cancel("b")
    with pytest.raises(StoreError, match="full"):
        store.ask([(run("c", shareable=False), {"upload:a": b"x" * 50_000})])
    assert [(found.id, found.status) for found in store.held_by("me")] == [("b", "cancelled"), ("a", "failed")]
    fill(store)
    assert store.database.read().execute("PRAGMA page_count").fetchone()[0] * 4096 < 1.1 * 2**20
    store.drop("b", "me")
    store.drop("a", "me")
    assert counts(store)["events"] == 0
    store.close()


def test_there_is_room_for_last_words_when_somebody_else_fills_the_disk(small_disk: Path) -> None:
    store = Store(small_disk / "store.db")
    queued(store, "a", "b")
    claimed(store)
    store.add_frame("a", frame(1), b"x" * 50_000)
    store.database.empty_log()
    with contextlib.suppress(OSError), (small_disk / "rest").open("wb", buffering=0) as rest:
        while True:
            rest.write(b"x" * 4096)
    assert not shutil.disk_usage(small_disk).free
    with pytest.raises(StoreError, match="full") as caught:
        store.add_frame("a", frame(2), b"x" * 50_000)
    assert is_full(caught.value)
    store.finish("a", "failed", message="The disk is full.")
    store.drop("b", "me")
    assert [(found.id, found.status) for found in store.held_by("me")] == [("a", "failed")]
    assert len(store.events(["a"], 0)) == 4
    assert damaged(store) == []
    (small_disk / "rest").unlink()
    queued(store, "c")
    assert claimed(store) == "c"
    store.drop("a", "me")
    assert store.database.reserve.exists(), "it is set aside again"
    store.close()
