"""Trained models count towards the store's limit, of each owner and in all, and are deleted with their runs."""

import fcntl
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from store_rows import run

from leakage.runs import trained_models
from leakage.runs.connections import Database
from leakage.runs.migrations import MIGRATIONS
from leakage.runs.store import Store
from leakage.runs.trained_models import ALL_FULL, OWN, OWN_FULL, SHARE, NoModelRoomError
from leakage.spec.tasks import InverterTraining, Training

MB = 2**20
LIMIT = 64  # MB: 8 for all models, 4 for those of one owner


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "store.db", max_mb=LIMIT)
    yield store
    store.close()


def trained(store: Store, name: str, owner: str, megabytes: float, **values: Any) -> Path:
    """A training that has ended, and its folder, written as a worker does."""
    folder = store.path.parent / "checkpoints" / name
    store.add(run(name, owner, kind="train", model_folder=f"checkpoints/{name}", **values), {})
    store.claim_also([name], 1, "0:1")
    store.make_model_room(name, int(megabytes * MB))
    folder.mkdir(parents=True)
    (folder / "1.safetensors").write_bytes(b"\0" * int(megabytes * MB))
    store.finish(name, "done")
    return folder


def test_the_file_of_runs_and_the_models_share_the_limit(small: Store) -> None:
    assert small.database.pages * 4096 + SHARE * LIMIT * MB == LIMIT * MB
    assert (SHARE * LIMIT, OWN * LIMIT) == (8, 4)


def test_one_owner_has_a_part_of_the_room_and_is_told_what_to_do(small: Store) -> None:
    """One browser wrote 345 MB of models beside a store of 64."""
    trained(small, "a", "me", 3)
    with pytest.raises(NoModelRoomError) as error:
        trained(small, "b", "me", 1.5)
    assert str(error.value) == OWN_FULL.format(4.5, 4.0)
    trained(small, "c", "you", 1.5)
    small.drop("a", "me")
    small.make_model_room("b", int(1.5 * MB))


def test_all_models_together_have_a_limit_and_old_ones_that_nobody_looks_at_make_room(small: Store) -> None:
    folders = [trained(small, name, name, 3) for name in "ab"]
    small.view("ab")
    with pytest.raises(NoModelRoomError) as error:
        trained(small, "c", "c", 3)
    assert str(error.value) == ALL_FULL.format(9.0, 8.0)
    assert all(folder.exists() for folder in folders), "who is refused has made nobody's go"
    with small.database.write() as db:
        db.execute("UPDATE runs SET viewed = ? WHERE id = 'a'", (time.time() - 3601,))
    small.make_model_room("c", 3 * MB)
    assert [folder.exists() for folder in folders] == [False, True]
    assert small.get("a") is None
    assert small.removed("a") is not None
    assert small.models.total() == (2, 6 * MB)


def test_many_who_ask_at_once_do_not_get_the_same_room(small: Store) -> None:
    for name in "abc":
        small.add(run(name, name, kind="train", model_folder=f"checkpoints/{name}"), {})
    small.claim_also("abc", 3, "0:1")
    for name in "ab":
        small.make_model_room(name, 4 * MB)
    with pytest.raises(NoModelRoomError):
        small.make_model_room("c", 1 * MB)


def test_a_training_of_an_owner_without_room_is_not_queued(small: Store) -> None:
    trained(small, "a", "me", 4)
    with pytest.raises(NoModelRoomError):
        small.add(run("b", "me", kind="train", model_folder="checkpoints/b"), {})
    assert small.get("b") is None
    small.add(run("an attack", "me"), {})


@pytest.mark.parametrize("how", ["deleted", "its owner is not seen", "room is made"])
def test_whatever_removes_a_run_removes_what_it_made(small: Store, how: str) -> None:
    folder = trained(small, "a", "me", 1)
    if how == "deleted":
        small.drop("a", "me")
    elif how == "its owner is not seen":
        small.sweep(uploads_before=0.0, unseen_before=time.time() + 1)
    else:
        from leakage.runs.housekeeping import free_one

        small.database.write_using_reserve(free_one)
        small.models.remove_unheld()  # as the dispatcher does every few seconds
    assert small.get("a") is None
    assert not folder.exists()
    assert small.models.total() == (0, 0)


def test_two_runs_that_made_the_same_keep_it_until_the_last_is_gone(small: Store) -> None:
    """They differ in their time limit alone, so they train in one folder."""
    folder = trained(small, "a", "me", 1)
    small.add(run("longer", "me", kind="train", model_folder="checkpoints/a"), {})
    small.drop("a", "me")
    assert folder.exists()
    small.drop("longer", "me")
    assert not folder.exists()


def test_a_folder_that_a_worker_is_still_at_counts_until_it_is_gone(small: Store) -> None:
    folder = trained(small, "a", "me", 1)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        small.drop("a", "me")
        assert folder.exists()
        assert small.models.total() == (1, 1 * MB)
    small.models.remove_unheld()
    assert not folder.exists()
    assert small.models.total() == (0, 0)


def test_what_a_run_did_not_make_is_left_alone(small: Store) -> None:
    by_hand = small.path.parent / "checkpoints" / "by hand"
    by_hand.mkdir(parents=True)
    trained(small, "a", "me", 1)
    small.drop("a", "me")
    assert by_hand.exists()


def test_trainings_of_earlier_versions_are_counted_once_the_store_is_opened(tmp_path: Path) -> None:
    tasks = {"train": (Training(max_seconds=77), "checkpoints"), "invert": (InverterTraining(), "inverters")}
    Database(tmp_path / "store.db", migrations=MIGRATIONS[:9], max_mb=64).close()
    database = Database(tmp_path / "store.db", migrations=MIGRATIONS[:9], max_mb=64)
    with database.write() as db:
        for kind, (task, place) in tasks.items():
            db.execute(
                "INSERT INTO runs (id, owner, kind, digest, version, experiment, shareable, status, created)"
                " VALUES (?, 'me', ?, ?, '1', ?, 1, 'done', 1)",
                (kind, kind, task.digest(), task.model_dump_json()),
            )
            db.execute("INSERT INTO holders (run, owner, since) VALUES (?, 'me', 1)", (kind,))
            (tmp_path / place / task.name).mkdir(parents=True)
            (tmp_path / place / task.name / "card.json").write_text(json.dumps("x" * 998))
    database.close()
    store = Store(tmp_path / "store.db", max_mb=64)
    for kind, (task, place) in tasks.items():
        found = store.get(kind)
        assert found
        assert found.model_folder == f"{place}/{task.name}"
    assert store.models.total() == (2, 2000)
    store.drop("train", "me")
    assert not (tmp_path / "checkpoints" / tasks["train"][0].name).exists()
    store.close()


def test_a_training_that_was_deleted_meanwhile_writes_nothing_more(small: Store) -> None:
    with pytest.raises(NoModelRoomError, match="deleted"):
        small.make_model_room("gone", 1)


def test_the_size_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "b.tmp").write_bytes(b"45")
    assert trained_models.size_of(tmp_path) == 5
    assert trained_models.size_of(tmp_path / "none") == 0
