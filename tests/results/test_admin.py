"""The commands of a server's operator."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sample_events import end, frame
from store_rows import queued, run

from leakage.__main__ import main
from leakage.data.images import sheet
from leakage.results import admin
from leakage.runs.notes import RECORDINGS
from leakage.runs.store import Store
from leakage.settings import Settings, settings
from leakage.spec.experiment import Experiment, parse

DAY = 24 * 3600.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db", max_mb=64)
    yield made
    made.close()


def played(store: Store, name: str, owner: str = "me", **values: bool) -> None:
    asked = Experiment()
    store.add(replace(run(name, owner), experiment=asked.model_dump_json(), **values), {})
    store.claim("0:1")
    pictures = sheet(np.full((len(asked.pictures), asked.size, asked.size, asked.channels), 99, np.uint8))
    store.put_file(name, "private.png", pictures)
    seq = store.add_frame(name, frame(1), pictures)
    store.finish(name, "done", result=end(seq))


def test_status_counts_what_is_there(store: Store, tmp_path: Path) -> None:
    played(store, "recorded")
    store.put_note(RECORDINGS, {"recorded": "digest"})
    played(store, "upload", shareable=False)
    queued(store, "waiting", "waiting too", owner="you")
    for owner in ("me", "you"):
        store.see(owner)
    store.add(run("training", "you", kind="train", model_folder="checkpoints/a"), {})
    store.make_model_room("training", 2 * 2**20)
    told = "\n".join(admin.status(store, Settings(home=tmp_path, slots=2, store_mb=64, memory_mb=0)))
    for words in (
        "server    not here, 2 slots",
        "of 56 MB",
        "models    1 trained by runs take 2.0 of 8.0 MB",
        "runs      5: 2 done, 3 queued",
        "1 of them recorded, 1 with uploads, 0 thinned",
        "queue     3 wait",
        "owners    2; 2 here within the hour, 2 within a day",
    ):
        assert words in told


def admin_cleaned(store: Store, uploads: float, unseen: float) -> str:
    removed, _ = admin.clean(store, uploads, unseen)
    return removed


def test_clean_removes_what_is_older_than_it_was_told(store: Store) -> None:
    played(store, "upload", shareable=False)
    played(store, "plain")
    played(store, "mine", owner="here")
    store.see("here")
    assert admin_cleaned(store, 7, 30).startswith("0 runs removed")
    with store.database.write() as db:
        db.execute("UPDATE runs SET created = created - ?", (2 * DAY,))
        db.execute("UPDATE holders SET since = since - ?", (2 * DAY,))
    assert admin_cleaned(store, 1, 1).startswith("2 runs removed")
    assert [found.id for found in store.everything()] == ["mine"]


def test_export_writes_every_finished_attack_but_none_with_uploads(store: Store, tmp_path: Path) -> None:
    played(store, "plain")
    played(store, "upload", shareable=False)
    queued(store, "waiting")
    out = tmp_path / "out"
    assert admin.export(store, out) == 1
    assert {file.name for file in (out / "plain").iterdir()} == set(admin.FILES)
    assert parse((out / "plain" / "experiment.json").read_bytes()) == Experiment()
    with (out / "runs.csv").open() as file:
        assert [(row["id"], row["status"]) for row in csv.DictReader(file)] == [("plain", "done")]
    with pytest.raises(FileExistsError, match="new or empty"):
        admin.export(store, out)


@pytest.mark.parametrize("words", [["status"], ["clean"], ["clean", "--uploads", "0", "--unseen", "2"]])
def test_the_command_line_reaches_the_store_of_this_home(words: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        assert main(["admin", *words]) == 0
    assert ("runs removed" if words[0] == "clean" else "store     ") in caplog.text


def test_clean_removes_compiled_steps(home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("LEAKAGE_HOME", str(home))
    programs = settings().programs
    programs.mkdir()
    (programs / "key-digest.pt2").touch()
    with caplog.at_level("INFO"):
        assert main(["admin", "clean"]) == 0
    assert "1 compiled steps removed; an idle machine compiles them again." in caplog.text
    assert not programs.exists()
