"""The life of uploads: the operator's number of days, never an hour longer, and codes no longer than their uploads."""

import time
from pathlib import Path

import pytest
from store_rows import run

from leakage.runs.upload_codes import CodeError, UploadCodes
from leakage.settings import Settings, settings
from leakage.workers.dispatcher import DAY, HOUR, Dispatcher


def test_the_dispatcher_deletes_uploads_of_that_age_before_a_day_too_many_begins(tmp_path: Path) -> None:
    dispatcher = Dispatcher(Settings(home=tmp_path, slots=0, store_mb=64, memory_mb=0, upload_days=2))
    store, now = dispatcher.store, time.time()
    for id, age in (("old", 2 * DAY - HOUR / 2), ("new", 2 * DAY - 2 * HOUR)):  # the next look is in an hour
        store.add(run(id, shareable=False, created=now - age), {"upload:face": b"picture"})
    store.add(run("gallery", created=now - 99 * DAY), {})
    store.see("me")
    unused = UploadCodes(store).issue("me", "tree")
    with store.database.write() as db:
        db.execute("UPDATE upload_codes SET created = ?", (now - 2 * DAY,))
    dispatcher.sweep(now)
    assert {found.id for found in store.held_by("me")} == {"new", "gallery"}
    with pytest.raises(CodeError):
        UploadCodes(store).delete(unused, "me")
    store.close()


@pytest.mark.parametrize(("given", "days", "words"), [("", 7, "7 days"), ("1", 1, "1 day"), ("30", 30, "30 days"), ("0", 1, "1 day")])
def test_the_days_are_a_setting(monkeypatch: pytest.MonkeyPatch, given: str, days: int, words: str) -> None:
    monkeypatch.setenv("LEAKAGE_UPLOAD_DAYS", given)
    assert (settings().upload_days, settings().upload_life) == (days, words)


def test_days_that_are_no_number_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKAGE_UPLOAD_DAYS", "a week")
    with pytest.raises(ValueError, match=r"^LEAKAGE_UPLOAD_DAYS must be a whole number, got 'a week'\.$"):
        settings()
