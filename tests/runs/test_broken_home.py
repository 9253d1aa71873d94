"""A store that is damaged, cut, closed or on a full disk: it is saved if possible, and a message names the file and what to do."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from home_fixtures import furnished
from home_processes import Place, Server, damaged, place, until
from sample_events import end, frame
from starlette.applications import Starlette
from starlette.testclient import TestClient
from store_rows import run

from leakage.__main__ import main
from leakage.data.images import sheet
from leakage.learn.restored import restore_all
from leakage.runs.broken_home import BrokenHomeError
from leakage.runs.connections import PAGE
from leakage.runs.notes import RECORDINGS
from leakage.runs.programs import take_lock
from leakage.runs.salvage import fault_of, kept_aside, remove_kept, save_if_damaged
from leakage.runs.service import Service
from leakage.runs.store import Store
from leakage.settings import ROOT, Settings
from leakage.spec.experiment import Experiment
from leakage.web.routes import Routes
from leakage.web.stream import Stream
from leakage.workers.dispatcher import Dispatcher

RUNS, FRAMES = 40, 4
PICTURE = random.Random(0).randbytes(3000)
DAY = 24 * 3600.0
SERVER = ["-m", "streamlit", "run", "app.py", "--server.port", "0", "--server.address", "127.0.0.1"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with RUNS finished runs of FRAMES pictures."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    store = Store(path)
    for number in range(RUNS):
        name = f"run-{number}"
        store.add(run(name, experiment=Experiment(seed=number).model_dump_json()), {"private.png": PICTURE})
        store.claim("0:1")
        seqs = [store.add_frame(name, frame(step + 1), PICTURE) for step in range(FRAMES)]
        store.finish(name, "done", result=end(seqs[-1]))
    store.close()
    return path


@pytest.fixture
def config(tmp_path: Path, whole: Path) -> Settings:
    shutil.copy(whole, tmp_path / "store.db")
    return Settings(home=tmp_path, slots=1, store_mb=64, memory_mb=0)


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def hole(path: Path) -> None:
    """Ten pages in its middle are noise."""
    overwrite(path, path.stat().st_size // 2 // PAGE * PAGE, random.Random(1).randbytes(10 * PAGE))


def headless(path: Path) -> None:
    """Its first bytes, which say what it is, are noise."""
    overwrite(path, 0, random.Random(2).randbytes(100))


def cut(path: Path) -> None:
    """The last tenth is missing."""
    os.truncate(path, path.stat().st_size * 9 // 10)


def no_store(path: Path) -> None:
    """Something else."""
    path.write_bytes(b"hello" * 5000)


@pytest.mark.parametrize(("damage", "least"), [(hole, RUNS - 1), (headless, RUNS), (cut, RUNS // 2), (no_store, 0)])
def test_what_can_be_read_of_a_damaged_store_is_saved_and_the_damaged_file_is_kept(
    damage: Callable[[Path], None], least: int, config: Settings
) -> None:
    damage(config.store)
    before = config.store.read_bytes()
    salvaged = save_if_damaged(config)
    assert salvaged is not None
    assert salvaged.kept.read_bytes() == before
    assert salvaged.kept.stat().st_mode & 0o777 == config.store.stat().st_mode & 0o777 == 0o600
    assert kept_aside(config) == [salvaged.kept]
    assert f"{config.store} was damaged" in salvaged.words(config)
    assert f"{salvaged.runs} runs were saved" in salvaged.words(config)
    assert str(salvaged.kept) in salvaged.words(config)
    store = Store(config.store)
    found = store.everything()
    assert len(found) == salvaged.runs >= least
    for one in found:
        assert one.experiment_as(Experiment).seed == int(one.id.removeprefix("run-"))
        for told in store.frames(one.id):
            assert store.frame(one.id, told.seq) in (PICTURE, None)
    pictures = sum(store.frame(one.id, told.seq) == PICTURE for one in found for told in store.frames(one.id))
    assert pictures >= len(found) * FRAMES // 2  # a lost page may be the one that names many others
    assert damaged(store) == []
    store.add(run("new"), {})
    new = store.add_frame("new", frame(), PICTURE)
    assert not least or new > 1_000_000  # a browser keeps pictures by their numbers: none comes twice
    store.close()
    assert save_if_damaged(config) is None


def test_a_whole_store_is_left_as_it_is_and_a_large_one_is_looked_through_for_a_moment_only(config: Settings) -> None:
    before = config.store.read_bytes()
    assert save_if_damaged(config) is None
    assert config.store.read_bytes() == before
    hole(config.store)
    assert fault_of(config.store, seconds=-1.0) == ""  # its time was over before it came to the damage
    assert fault_of(config.store, seconds=60.0) != ""


def test_a_damaged_store_is_not_touched_while_a_dispatcher_uses_it_nor_without_room(
    config: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    hole(config.store)
    before = config.store.read_bytes()
    lock = take_lock(config)
    assert lock is not None
    with lock, pytest.raises(BrokenHomeError, match=r"another process of this program uses it \(see .*dispatch.lock\)"):
        save_if_damaged(config)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 2**20))
    with pytest.raises(BrokenHomeError, match=r"needs 2 MB of free disk for a copy and a new file, and there are 1"):
        save_if_damaged(config)
    assert config.store.read_bytes() == before
    assert kept_aside(config) == []


def test_a_kept_store_goes_when_its_uploads_would_have(config: Settings) -> None:
    hole(config.store)
    assert save_if_damaged(config)
    dispatcher = Dispatcher(config)
    dispatcher.sweep(time.time())
    assert len(kept_aside(config)) == 1
    dispatcher.sweep(time.time() + 8 * DAY)
    assert kept_aside(config) == []
    assert remove_kept(config, before=time.time()) == 0
    dispatcher.store.close()


def test_recorded_runs_are_put_in_anew_after_their_store_was_saved(config: Settings) -> None:
    store = Store(config.store)
    restore_all(store)
    (name, *_) = store.note(RECORDINGS)
    pictures = len(store.frames(name))
    store.close()
    headless(config.store)
    assert save_if_damaged(config)
    store = Store(config.store)
    with store.database.write() as db:
        db.execute("DELETE FROM events WHERE run = ? AND kind = 'frame'", (name,))  # as if they could not be read
    restore_all(store)
    assert len(store.frames(name)) == pictures > 0
    store.close()


def test_a_row_that_is_no_json_any_more_stays_behind_with_what_belongs_to_it(config: Settings) -> None:
    with sqlite3.connect(config.store, isolation_level=None) as db:
        db.execute("UPDATE runs SET experiment = substr(experiment, 2) WHERE id = 'run-3'")
    db.close()
    hole(config.store)
    salvaged = save_if_damaged(config)
    assert salvaged is not None
    store = Store(config.store)
    assert store.get("run-3") is None
    assert store.events(["run-3"], 0) == []
    assert store.files("run-3") == {}
    store.close()


# ---------------------------------------------------------------- the command line


def said(config: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str]:
    """Exit status and log of `admin` on this home."""
    monkeypatch.setenv("LEAKAGE_HOME", str(config.home))
    caplog.clear()
    with caplog.at_level("INFO"):
        status = main(["admin", *words])
    return status, "\n".join(caplog.messages)


@pytest.mark.parametrize("damage", [headless, cut, no_store])
def test_admin_says_of_a_damaged_store_what_to_do_and_does_it(
    damage: Callable[[Path], None], config: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(config.store)
    status, text = said(config, caplog, monkeypatch, "status")
    assert status == 1
    assert f"{config.store} is damaged" in text
    assert "python -m leakage admin repair" in text
    status, text = said(config, caplog, monkeypatch, "repair")
    assert status == 0
    assert "runs were saved" in text
    status, text = said(config, caplog, monkeypatch, "status")
    assert status == 0
    assert f"kept      {kept_aside(config)[0].name}" in text
    assert "is not damaged" in said(config, caplog, monkeypatch, "repair")[1]
    assert said(config, caplog, monkeypatch, "clean", "--uploads", "0")[0] == 0
    assert kept_aside(config) == []


def test_admin_names_a_folder_in_the_place_of_the_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Settings(home=tmp_path, slots=1, store_mb=64, memory_mb=0)
    config.store.mkdir()
    status, text = said(config, caplog, monkeypatch, "status")
    assert status == 1
    assert f"{config.store} cannot be opened" in text


# ---------------------------------------------------------------- the programs


def ended(home: Path, arguments: list[str]) -> str:
    """What a program says that ends by itself because of its home."""
    environment = {**os.environ, "LEAKAGE_HOME": str(home)}
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    return done.stderr


def read_only(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)


def full(folder: Path) -> None:
    with (folder / "rest").open("wb", buffering=0) as rest:
        try:
            while True:
                rest.write(b"x" * PAGE)
        except OSError:
            pass


@pytest.mark.processes
@pytest.mark.parametrize("program", [SERVER, ["-m", "leakage.workers.dispatcher"], ["-m", "leakage", "app", "--headless"]])
def test_programs_end_with_a_sentence_where_the_store_cannot_be_opened(program: list[str], tmp_path: Path) -> None:
    (tmp_path / "home" / "store.db").mkdir(parents=True)
    assert f"{tmp_path}/home/store.db cannot be opened" in ended(tmp_path / "home", program)
    (tmp_path / "file").write_text("")
    assert f"{tmp_path}/file cannot be opened (File exists)" in ended(tmp_path / "file", program)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("broken", "there", "word"), [(read_only, True, "cannot be written"), (full, False, "is full"), (full, True, "is full")]
)
def test_programs_end_with_a_sentence_on_a_disk_that_takes_nothing(
    broken: Callable[[Path], None], there: bool, word: str, small_disk: Path, whole: Path
) -> None:
    home = small_disk / "home"
    home.mkdir()
    if there:  # without the bytes that are set aside for a full disk
        shutil.copy(whole, home / "store.db")
    broken(small_disk)
    for program in (SERVER, ["-m", "leakage", "admin", "status"]) if there else (SERVER,):
        told = ended(home, program)
        assert word in told
        assert str(home) in told


@pytest.fixture
def on(small_disk: Path, written: Path) -> Iterator[Place]:
    """A place on a small disk."""
    (small_disk / "catalog.json").write_bytes(written.read_bytes())
    with place(small_disk) as made:
        yield made


@pytest.mark.processes
def test_a_server_starts_on_a_disk_that_was_filled_since(on: Place, tmp_path: Path) -> None:
    on.store.add(run("before"), {})
    on.store.close()
    on.lock = take_lock(on.config)
    (on.home / "server.log").symlink_to(tmp_path / "server.log")  # what prints into a full disk ends by itself
    full(on.home)
    server = Server(on)
    with server.get("/learn") as answer:
        assert answer.status == 200
    log = (on.home / "server.log").read_text()
    assert "Traceback" not in log
    assert on.look("before").status == "queued"


@pytest.mark.processes
def test_a_server_saves_a_damaged_store_when_it_starts_and_says_so(home: Path, whole: Path) -> None:
    shutil.copy(whole, home / "store.db")
    hole(home / "store.db")
    with place(home) as made:
        made.store.close()
        server = made.serve(alone=False)
        with server.get("/learn") as answer:
            assert answer.status == 200
        log = until(lambda: (home / "server.log").read_text(), what="the server wrote its log")
        assert f"{home}/store.db was damaged" in log
        assert "Traceback" not in log
        assert len(made.store.everything()) >= RUNS - 1
        assert len(kept_aside(made.config)) == 1


@pytest.mark.processes
def test_a_store_that_is_damaged_while_the_server_runs_is_told_in_a_sentence(home: Path, whole: Path) -> None:
    shutil.copy(whole, home / "store.db")
    with place(home) as made:
        server = made.serve(alone=True)
        made.store.close()
        overwrite(home / "store.db", PAGE, b"\0" * (made.config.store.stat().st_size - PAGE))
        with server.get("/api/runs/run-1/final.png") as answer:
            assert answer.status in (404, 503)
            assert answer.status == 404 or b"cannot be read now" in answer.read()
        time.sleep(1)
        log = (home / "server.log").read_text()
        assert "Traceback" not in log
        assert len(log) < 5000  # told once, not ten times a second


# ---------------------------------------------------------------- clocks and frames


def test_a_clock_a_month_ahead_removes_no_run_of_who_is_here(tmp_path: Path) -> None:
    config, now = Settings(home=tmp_path, slots=1, store_mb=64, memory_mb=0), time.time()
    dispatcher = Dispatcher(config)
    store = dispatcher.store
    store.see("me")
    store.add(run("mine"), {})
    store.claim("0:1")
    store.finish("mine", "done")
    for hours in (0, 1, 2, 31 * 24, 31 * 24 + 1, 2, 3):  # it goes on, jumps a month ahead, and is put right
        dispatcher.sweep(now + hours * 3600)
        assert store.get("mine") is not None, hours
    for hours in range(3, 24 * 31):
        store.keep_time(now + hours * 3600, longest=7200)
    dispatcher.sweep(now + 24 * 31 * 3600)
    assert store.get("mine") is None  # a month in which the program ran, and nobody came
    store.close()


@pytest.fixture
def web(tmp_path: Path, whole: Path, written: Path) -> Iterator[tuple[TestClient, Path]]:
    """Our routes on such a store; its first run has real pictures."""
    home = furnished(tmp_path / "home", written)
    shutil.copy(whole, home / "store.db")
    store = Store(home / "store.db")
    seen = sheet(np.zeros((1, 32, 32, 3), np.uint8))
    store.put_file("run-1", "private.png", seen)
    with store.database.write() as db:
        db.execute("UPDATE frames SET png = ? WHERE run = 'run-1'", (seen,))
    service = Service(store, Settings(home=home, slots=1, store_mb=64, memory_mb=0))
    yield TestClient(Starlette(routes=Routes(service, store, Stream(service, store)).below())), store.path
    store.close()


def test_a_run_whose_answer_is_missing_is_answered_with_nothing_to_download(web: tuple[TestClient, Path]) -> None:
    assert web[0].get("/api/runs/run-1/final.png").status_code == 200
    with sqlite3.connect(web[1], isolation_level=None) as db:  # the pictures stay: this connection keeps no foreign keys
        db.execute("UPDATE runs SET finished = finished + 1")  # nothing of what was made before is kept
        db.execute("DELETE FROM events WHERE run = 'run-1' AND seq = (SELECT MAX(seq) FROM frames WHERE run = 'run-1')")
    db.close()
    answer = web[0].get("/api/runs/run-1/final.png")
    assert (answer.status_code, answer.text[:19]) == (404, "Nothing to download")
    for name in ("run.webp", "curves.csv"):
        assert web[0].get(f"/api/runs/run-1/{name}").status_code == 200


def test_a_picture_that_is_damaged_in_the_store_is_told(web: tuple[TestClient, Path]) -> None:
    for name in ("final.png", "run.webp"):
        answer = web[0].get(f"/api/runs/run-2/{name}")
        assert answer.status_code == 404
        assert "This contact sheet is damaged" in answer.text
