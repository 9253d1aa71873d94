"""A full store: what is removed first, what never, and what the link to a removed run says."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from home_processes import damaged
from sample_events import end, frame
from store_rows import queued, run

from leakage.runs.connections import StoreError
from leakage.runs.housekeeping import FEWEST, MADE_ROOM, TIGHT
from leakage.runs.notes import LOG, RECORDINGS
from leakage.runs.store import Label, Store
from leakage.settings import Settings
from leakage.workers.dispatcher import Dispatcher

PICTURE = b"x" * 20_000
NOW = time.time()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Of 4 MB: about 190 such pictures."""
    made = Store(tmp_path / "store.db", max_mb=4)
    yield made
    assert damaged(made) == []
    made.close()


def played(store: Store, name: str, *, owner: str = "me", frames: int = 10, ended: float | None = None, uploads: bool = False) -> int:
    """A finished run with its answer in the middle; that frame's number."""
    store.add(run(name, owner, shareable=not uploads), {"upload:a": PICTURE} if uploads else {})
    store.claim("0:1")
    seqs = [store.add_frame(name, frame(number), PICTURE) for number in range(frames)]
    store.finish(name, "done", result=end(seqs[frames // 2]))
    if ended:
        change(store, name, finished=ended)
    return seqs[frames // 2]


def change(store: Store, name: str, **values: float) -> None:
    with store.database.write() as db:
        for column, value in values.items():
            db.execute(f"UPDATE runs SET {column} = ? WHERE id = ?", (value, name))


def pictures(store: Store, name: str) -> list[int]:
    return [told["seq"] for told in store.events([name], 0) if told.get("picture")]


def thinned(store: Store) -> list[str]:
    rows = store.database.read().execute("SELECT id FROM runs WHERE thinned IS NOT NULL ORDER BY thinned")
    return [row["id"] for row in rows]


def make_tight(store: Store) -> None:
    """Fill it with pictures of a run that goes on, which make no room, until it is tight."""
    if store.get("filling") is None:
        store.add(run("filling", "another"), {})
        store.claim_also(["filling"], 1, "9:9")
    number = 0
    while store.housekeeping.free() >= TIGHT:
        number += 1
        store.put_file("filling", f"{number}", PICTURE)


def test_a_store_with_room_is_left_alone(store: Store) -> None:
    played(store, "a")
    assert store.housekeeping.tidy() == 0
    assert len(pictures(store, "a")) == 10


def test_when_it_gets_tight_the_oldest_are_thinned_to_their_answer_first(store: Store) -> None:
    answers = {name: played(store, name, ended=NOW - age) for name, age in (("newer", 7200), ("oldest", 9000), ("older", 8000))}
    make_tight(store)
    assert store.housekeeping.tidy() == 2
    assert thinned(store) == ["oldest", "older"]
    assert pictures(store, "oldest") == [answers["oldest"]]
    assert len([told for told in store.events(["oldest"], 0) if told["kind"] == "frame"]) == 10  # every point of its curves
    assert len(pictures(store, "newer")) == 10


def test_who_asks_again_for_what_was_thinned_gets_it_whole(store: Store) -> None:
    played(store, "mine", ended=NOW - 9000, frames=16)
    asked = run("anew", "you", digest="digest of mine")
    make_tight(store)
    store.housekeeping.tidy()
    assert thinned(store) == ["mine"]
    assert store.ask([(asked, {})]) == ["anew"]


def test_the_dispatcher_makes_room_and_empties_the_log(tmp_path: Path) -> None:
    dispatcher = Dispatcher(Settings(home=tmp_path, slots=0, store_mb=4, memory_mb=0))
    store = dispatcher.store
    played(store, "old", ended=NOW - 9000, frames=16)
    make_tight(store)
    store.put_note(LOG, NOW)
    dispatcher.tidy()
    assert (thinned(store), store.note(LOG)) == (["old"], None)
    store.close()


def test_of_what_is_thinned_the_oldest_go_and_their_links_say_why(store: Store) -> None:
    for name, age in (("older", 9000), ("newer", 8000)):
        played(store, name, ended=NOW - age, frames=12)
        change(store, name, thinned=NOW)
    make_tight(store)
    store.housekeeping.tidy()
    assert (store.get("older"), thinned(store)) == (None, ["newer"])
    gone = store.removed("older")
    assert gone is not None
    assert (gone.why, gone.experiment) == (MADE_ROOM, "{}")
    assert store.removed("newer") is None


def test_a_training_has_no_pictures_to_lose_and_is_still_shared(store: Store) -> None:
    store.add(run("training", kind="train"), {})
    store.claim("0:1")
    store.finish("training", "done")
    change(store, "training", finished=NOW - 9000)
    played(store, "attack", ended=NOW - 8000, frames=16)
    make_tight(store)
    store.housekeeping.tidy()
    assert thinned(store) == ["attack"]
    assert store.ask([(run("again", "you", kind="train", digest="digest of training"), {})]) == ["training"]


def test_what_nobody_holds_goes_before_what_somebody_does(store: Store) -> None:
    for name, age in (("held", 9000), ("unheld", 8000)):
        played(store, name, ended=NOW - age, frames=12)
        change(store, name, thinned=NOW)
    with store.database.write() as db:
        db.execute("DELETE FROM holders WHERE run = 'unheld'")
    make_tight(store)
    store.housekeeping.tidy()
    assert store.get("unheld") is None
    assert store.get("held") is not None


def test_those_that_were_looked_at_within_the_hour_go_last_and_pinned_ones_after_the_others(store: Store) -> None:
    for name, age in (("viewed", 9000), ("pinned", 8500), ("plain", 8000)):
        played(store, name, ended=NOW - age)
    store.view(["viewed"])
    store.put_label("pinned", "me", Label("mine", NOW))
    make_tight(store)
    store.housekeeping.tidy()
    assert thinned(store) == ["plain", "pinned"]
    assert len(pictures(store, "viewed")) == 10
    make_tight(store)
    store.housekeeping.tidy()
    assert (store.get("plain"), store.get("pinned"), thinned(store)) == (None, None, ["viewed"])


def test_what_was_looked_at_longest_ago_goes_first_not_what_ended_first(store: Store) -> None:
    for name, ended in (("ended first", 9000), ("ended last", 8000)):
        played(store, name, ended=NOW - ended, frames=16)
    change(store, "ended first", viewed=NOW - 7000)
    make_tight(store)
    store.housekeeping.tidy()
    assert thinned(store) == ["ended last"]


def test_who_has_more_than_their_quota_makes_room_first(store: Store) -> None:
    played(store, "single", owner="modest", ended=NOW - 9000)
    for number in range(7):  # 7 times 200 kB of 4 MB: more than a quarter, also when the first of them has been thinned
        played(store, f"one of many {number}", owner="greedy", ended=NOW - 8000 + number)
    make_tight(store)
    store.housekeeping.tidy()
    assert thinned(store) == ["one of many 0", "one of many 1"]


def test_waiting_running_and_recorded_runs_stay_and_a_new_one_is_refused(store: Store) -> None:
    played(store, "recorded", ended=NOW - 9000)
    store.put_note(RECORDINGS, {"recorded": "digest"})
    queued(store, "waiting")
    make_tight(store)
    with pytest.raises(StoreError, match="full"):  # noqa: PT012 (which of them is refused is not known)
        for number in range(100):
            store.add(run(f"new {number}", shareable=False), {"upload:a": PICTURE})
    assert len(pictures(store, "recorded")) == 10
    assert {"recorded", "waiting"} <= {found.id for found in store.held_by("me")}
    assert [found.id for found in store.running()] == ["filling"]


def test_a_write_that_finds_no_room_makes_some_and_is_done(store: Store) -> None:
    for number in range(60):
        played(store, f"run {number}", ended=NOW - 9000 + number)
    assert len(pictures(store, "run 0")) == 1
    assert len(pictures(store, "run 59")) == 10


def test_a_running_run_that_fills_the_store_loses_pictures_between_and_goes_on(store: Store) -> None:
    """230 pictures of 20 kB are more than 4 MB; the first and the last are there, and every frame's numbers."""
    store.add(run("a"), {})
    store.claim("0:1")
    seqs = [store.add_frame("a", frame(number), PICTURE) for number in range(230)]
    kept = pictures(store, "a")
    assert FEWEST < len(kept) < 200
    assert (kept[0], kept[-1]) == (seqs[0], seqs[-1])
    assert len([told for told in store.events(["a"], 0) if told["kind"] == "frame"]) == 230


def test_runs_of_owners_who_were_not_here_for_long_go_unless_another_holds_them(store: Store) -> None:
    for name in ("alone", "shared"):
        played(store, name, owner="gone")
    assert store.ask([(run("again", "here", digest="digest of shared"), {})]) == ["shared"]
    with store.database.write() as db:
        db.execute("UPDATE holders SET since = ?", (NOW - 5000,))
        db.execute("INSERT INTO owners VALUES ('gone', ?)", (NOW - 4000,))
    store.see("here")
    store.sweep(uploads_before=0.0, unseen_before=NOW - 4500)
    assert store.get("alone") is not None  # seen since
    store.sweep(uploads_before=0.0, unseen_before=NOW - 3000)
    assert store.get("alone") is None
    assert store.holders("shared") == ["here"]
    gone = store.removed("alone")
    assert gone is not None
    assert gone.why.startswith("its owner had not been here for")


def test_what_an_upload_asked_is_not_remembered_and_what_its_owner_deletes_not_at_all(store: Store) -> None:
    played(store, "upload", uploads=True)
    store.sweep(uploads_before=time.time() + 1)
    gone = store.removed("upload")
    assert gone is not None
    assert gone.experiment is None
    played(store, "mine")
    store.drop("mine", "me")
    assert store.removed("mine") is None
