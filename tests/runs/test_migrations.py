"""A store of version 0.1.0 opens, plays and exports with the same numbers, and a store of a newer version is refused."""

import contextlib
import hashlib
import io
import json
import math
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from home_processes import damaged
from page_visits import Open, fine, words
from PIL import Image

from leakage.__main__ import main
from leakage.results import comparison_exports, exports
from leakage.runs.connections import Connection, Database, NewerStoreError
from leakage.runs.events import AttackEnd
from leakage.runs.migrations import MIGRATIONS
from leakage.runs.owners import owner_of
from leakage.runs.service import Service, service
from leakage.runs.store import Label, Store
from leakage.settings import ROOT
from leakage.spec import catalog
from leakage.spec.aliases import fields_today
from leakage.spec.experiment import parse
from leakage.workers.worker import perform

DUMP = (Path(__file__).with_name("store_of_0_1_0.sql")).read_text()
OPEN_IT = "import logging, sys; from pathlib import Path; from leakage.runs.store import Store\nlogging.basicConfig(level=logging.INFO)\n"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store that the first version of the program has written, not yet opened by this one."""
    path = tmp_path / "store.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(DUMP)
    return path


@pytest.fixture
def store(old: Path) -> Iterator[Store]:
    """The same, opened."""
    made = Store(old)
    yield made
    assert damaged(made) == []
    made.close()


def rows(path: Path, question: str) -> list[dict[str, Any]]:
    """What SQLite itself answers, past all of our code."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(question)]


def schema(path: Path) -> int:
    return int(rows(path, "PRAGMA user_version")[0]["user_version"])


def all_rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    return {table: rows(path, f"SELECT * FROM {table}") for table in ("runs", "holders", "events", "frames", "files", "notes")}


# ---------------------------------------------------------------- from 0.1.0


def test_the_dump_is_a_store_of_the_oldest_schema(old: Path) -> None:
    assert schema(old) == 1
    assert [row["status"] for row in rows(old, "SELECT status FROM runs ORDER BY created")] == ["done"] * 4 + ["cancelled", "queued"]
    assert len(rows(old, "SELECT seq FROM frames")) == 11
    assert "labels_granted" not in DUMP


def test_every_stored_run_has_the_numbers_that_it_had(old: Path) -> None:
    before = all_rows(old)
    store = Store(old)
    compared = 0
    for row in before["runs"]:
        run = store.get(row["id"])
        assert run is not None
        assert {**vars(run), "result": None} == {
            **row,
            "shareable": bool(row["shareable"]),
            "result": None,
            "thinned": None,
            "yields": None,
            "model_folder": None,
        }
        stored = json.loads(row["experiment"])["attack"]
        fields = fields_today(stored["id"], stored["fields"])
        assert parse(run.experiment).model_dump()["attack"] == {**stored, "fields": fields}
        assert store.holders(run.id) == [run.owner]
        assert store.labels(run.owner) == {}
        store.put_label(run.id, run.owner, Label("Mine", 3.0))
        assert store.labels(run.owner)[run.id] == Label("Mine", 3.0)
        store.put_label(run.id, run.owner, Label())
        frames = store.frames(run.id)
        told = [event for event in before["events"] if event["run"] == run.id and event["kind"] == "frame"]
        assert [frame.seq for frame in frames] == [event["seq"] for event in told]
        for frame, event in zip(frames, told, strict=True):
            body = json.loads(event["body"])
            assert (frame.step, frame.seconds, frame.loss, list(frame.labels)) == tuple(
                body[name] for name in ("step", "seconds", "loss", "labels")
            )
            assert frame.body()["scores"] == {
                name: tuple(value) if isinstance(value, list) else value for name, value in body["scores"].items()
            }
            assert frame.picture
            compared += len(body["scores"])
        end = run.outcome(AttackEnd)
        if row["result"]:
            kept = json.loads(row["result"])
            assert end is not None
            assert (end.answer, end.seconds, end.scores.psnr) == (kept["answer"], kept["seconds"], kept["scores"]["psnr"])
    assert compared == sum(len(json.loads(event["body"])["scores"]) for event in before["events"] if event["kind"] == "frame") > 50
    assert rows(old, "SELECT * FROM frames") == before["frames"]
    assert rows(old, "SELECT * FROM files") == before["files"]
    store.close()


def test_an_attack_of_0_1_0_introduces_itself_by_what_its_experiment_says(old: Path) -> None:
    before = {row["run"]: json.loads(row["body"]) for row in rows(old, "SELECT run, body FROM events WHERE kind = 'meta'")}
    asked = {row["id"]: json.loads(row["experiment"]) for row in rows(old, "SELECT id, experiment FROM runs")}
    store = Store(old)
    metas = {run: store.meta(run) for run in before}
    assert [meta.knowledge.labels_granted for meta in metas.values() if meta] == [False, True, False, False]
    assert [(asked[run]["model"]["id"], meta.knowledge.batch_norm) for run, meta in metas.items() if meta] == [
        ("lenet", False),
        ("lenet", False),
        ("convnet", True),
        ("lenet", False),
    ]
    for run, meta in metas.items():
        assert meta is not None
        assert meta.knowledge.weights == "untrained"
        assert meta.judging.baselines["grey"].psnr == before[run]["baselines"]["grey"]["psnr"]
        assert meta.update.received.norm == before[run]["received"]["norm"]
        (stored,) = rows(old, f"SELECT body FROM events WHERE run = '{run}' AND kind = 'meta'")
        assert before[run].items() <= json.loads(stored["body"]).items()
    store.close()


def test_every_finished_run_of_0_1_0_can_be_taken_away(store: Store, written: Path) -> None:
    done = [row["id"] for row in rows(store.path, "SELECT id FROM runs WHERE status = 'done' ORDER BY created")]
    for run in done:
        made = {name: exports.make(store, run, name) for name in ("final.png", "run.webp", "curves.csv", "experiment.json")}
        frames = store.frames(run)
        assert Image.open(io.BytesIO(made["final.png"].data)).size[0] > 100
        assert Image.open(io.BytesIO(made["run.webp"].data)).format == "WEBP"
        assert len(made["curves.csv"].data.splitlines()) == len(frames) + 1
        assert f",{frames[-1].scores.psnr}," in made["curves.csv"].data.decode()
        assert parse(made["experiment.json"].data) == parse(store.get(run).experiment)
    table = json.loads(comparison_exports.make(store, done, "comparison.json", catalog.read(written)).data)
    assert [row["run"] for row in table["rows"]] == done
    assert [row["psnr"] for row in table["rows"]] == [store.get(run).result["scores"]["psnr"] for run in done]


@pytest.mark.long
def test_a_run_that_waited_in_a_store_of_0_1_0_is_played(store: Store) -> None:
    run = store.claim("0:1")
    assert run is not None
    assert run.id == rows(store.path, "SELECT id FROM runs WHERE status = 'running'")[0]["id"]
    perform(store, run, torch.device("cpu"))
    played = store.get(run.id)
    assert (played.status, played.message) == ("done", "")
    assert store.meta(run.id).judging.lineup.size == 100


@pytest.mark.long
def test_the_lab_shows_every_run_of_0_1_0(old: Path, door: Service, visit: Open) -> None:
    done = rows(old, "SELECT id, owner FROM runs WHERE status = 'done'")
    assert len(done) == 4
    for row in done:
        at = visit(who=row["owner"], run=row["id"])
        fine(at)
        assert at.query_params["run"] == row["id"]
        assert "untrained" in words(at)


# ---------------------------------------------------------------- numbers that no browser can read


def test_nan_and_infinity_of_0_1_0_become_null_and_words_stay(old: Path) -> None:
    with contextlib.closing(sqlite3.connect(old)) as db:
        run = db.execute("SELECT id FROM runs WHERE status = 'done'").fetchone()[0]
        body = {"step": 9, "seconds": 0.1 + 0.2, "loss": math.nan, "scores": {"psnr": math.inf}, "note": {"said": "NaN, Infinity"}}
        db.execute("INSERT INTO events (run, kind, body) VALUES (?, 'frame', ?)", (run, json.dumps(body)))
        db.execute("INSERT INTO notes VALUES ('speeds', ?)", (json.dumps({"lenet": [-math.inf, 1.5]}),))
        db.commit()
    store = Store(old)
    (heard,) = [event for event in store.events([run], 0) if event.get("step") == 9 and event["kind"] == "frame"]
    assert (heard["loss"], heard["scores"], heard["seconds"], heard["note"]) == (
        None,
        {"psnr": None},
        0.30000000000000004,
        {"said": "NaN, Infinity"},
    )
    assert store.note("speeds") == {"lenet": [None, 1.5]}
    json.dumps(store.events(None, 0), allow_nan=False)
    store.close()


# ---------------------------------------------------------------- the owners of runs


def test_visitors_of_0_1_0_keep_their_runs_and_their_cookie_is_nowhere_in_the_file(old: Path) -> None:
    cookie = "kY3vZq0cT1mB7nWJ5xR2dg"
    with contextlib.closing(sqlite3.connect(old)) as db:
        for table in ("runs", "holders"):
            db.execute(f"UPDATE {table} SET owner = ? WHERE owner = 'owner-a'", (f"browser {cookie}",))
        db.commit()
        (theirs,) = zip(*db.execute("SELECT run FROM holders WHERE owner = ?", (f"browser {cookie}",)), strict=True)
    assert cookie.encode() in old.read_bytes()
    store = Store(old)
    assert {run.id for run in store.held_by(owner_of(cookie))} == set(theirs)
    assert len(theirs) == 3
    assert {store.get(run).owner for run in theirs} == {owner_of(cookie)}
    assert owner_of(cookie) == f"browser {hashlib.sha256(cookie.encode()).hexdigest()}"
    store.database.empty_log()
    store.close()
    assert cookie.encode() not in b"".join(file.read_bytes() for file in old.parent.iterdir())


def test_owners_without_a_cookie_stay_as_they_are(old: Path) -> None:
    with contextlib.closing(sqlite3.connect(old)) as db:
        db.execute("UPDATE holders SET owner = 'recorded' WHERE owner = 'owner-b'")
        db.commit()
    store = Store(old)
    assert len(store.held_by("owner-a")) == len(store.held_by("recorded")) == 3
    store.close()


# ---------------------------------------------------------------- the steps


def test_every_step_says_its_number_and_what_it_does() -> None:
    for number, step in enumerate(MIGRATIONS, 1):
        assert step.__doc__
        assert f"(migration {number})" in step.__doc__, step


def test_a_new_store_and_an_old_one_end_with_the_same_tables(store: Store, tmp_path: Path) -> None:
    def tables(path: Path) -> dict[str, str]:
        found = rows(path, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {row["name"]: "".join(row["sql"].split()) for row in found}

    Store(tmp_path / "new.db").close()
    assert tables(tmp_path / "new.db") == tables(store.path)
    assert schema(tmp_path / "new.db") == schema(store.path) == len(MIGRATIONS)


def test_a_step_that_fails_changes_nothing(old: Path) -> None:
    def broken(db: Connection) -> None:
        db.execute("CREATE TABLE half (name TEXT)")
        db.execute("INSERT INTO no_such_table VALUES (1)")

    before = all_rows(old)
    with pytest.raises(sqlite3.OperationalError, match="no_such_table"):
        Database(old, migrations=(*MIGRATIONS, broken), max_mb=64)
    assert schema(old) == 1
    assert all_rows(old) == before
    assert rows(old, "SELECT name FROM sqlite_master WHERE name = 'half'") == []
    Store(old).close()
    assert schema(old) == len(MIGRATIONS)


@pytest.mark.long
def test_of_processes_that_open_an_old_store_at_once_one_migrates_and_all_can_read(old: Path) -> None:
    script = OPEN_IT + (
        "go = Path(sys.argv[2])\nprint('ready', flush=True)\nwhile not go.exists(): pass\n"
        "store = Store(Path(sys.argv[1]))\nprint(len(store.held_by('owner-a')) + len(store.held_by('owner-b')))"
    )
    go = old.with_name("go")
    command = [sys.executable, "-c", script, str(old), str(go)]
    started = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    go.touch()
    ends = [process.communicate(timeout=240) for process in started]
    assert [out for out, _ in ends] == ["6\n"] * 4, ends
    assert sum(f"schema 1 is now {len(MIGRATIONS)}" in said for _, said in ends) == 1
    assert schema(old) == len(MIGRATIONS)


def test_a_store_that_is_up_to_date_opens_while_another_process_writes(store: Store) -> None:
    with store.database.write(), ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: Store(store.path).close()).result()  # if it had to write, it would fail after ten seconds


# ---------------------------------------------------------------- newer than this program


def become_newer(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")


def sentence(path: Path) -> str:
    return (
        f"{path} was written by a newer version of this program: its schema has the number {len(MIGRATIONS) + 1}, and this version knows "
        f"those up to {len(MIGRATIONS)}. Update the program, or set LEAKAGE_HOME to another folder."
    )


def test_a_newer_store_is_refused_and_left_as_it_is(old: Path) -> None:
    become_newer(old)
    before = old.read_bytes()
    with pytest.raises(NewerStoreError) as refused:
        Store(old)
    assert str(refused.value) == sentence(old)
    assert old.read_bytes() == before
    assert sorted(file.name for file in old.parent.iterdir()) == ["store.db"]


@pytest.mark.parametrize(
    "words",
    [
        ["-m", "leakage.workers.dispatcher"],
        ["-m", "leakage.workers.worker", "0", "1"],
        ["-m", "leakage", "app", "--headless", "--port", "0"],
        ["-m", "streamlit", "run", "app.py", "--server.port", "0", "--server.headless", "true"],
    ],
    ids=["dispatcher", "worker", "command line", "web server"],
)
@pytest.mark.long
def test_a_process_that_meets_a_newer_store_ends_with_a_sentence(words: list[str], old: Path) -> None:
    become_newer(old)
    given = {**os.environ, "LEAKAGE_HOME": str(old.parent), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=given, capture_output=True, text=True, timeout=120, check=False)
    assert sentence(old) in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert schema(old) == len(MIGRATIONS) + 1


def test_the_command_line_names_it_without_starting_anything(old: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    become_newer(old)
    monkeypatch.setenv("LEAKAGE_HOME", str(old.parent))
    service.cache_clear()
    assert main(["app", "--headless"]) == 1
    assert sentence(old) in caplog.text


def test_a_page_says_so_when_a_newer_version_has_been_started_on_the_same_runs(door: Service, visit: Open) -> None:
    fine(visit())
    become_newer(door.store.path)
    service().store.close()
    at = visit()
    fine(at)
    assert sentence(door.store.path) in [element.value for element in at.error]


def test_a_thread_that_begins_after_a_newer_version_came_is_refused(store: Store) -> None:
    refused: list[str] = []

    def look() -> None:
        try:
            store.queue()
        except NewerStoreError as error:
            refused.append(str(error))

    become_newer(store.path)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert refused == [sentence(store.path)]
