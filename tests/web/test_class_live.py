"""What phones are told while the teacher's live run is computed."""

import asyncio
from pathlib import Path

import pytest
from event_loop import run_async

from leakage.learn.reader_data import reader_lesson
from leakage.rooms.outline import Outline
from leakage.rooms.room import Room
from leakage.rooms.room_errors import RoomError
from leakage.runs.service import Service
from leakage.runs.store import Store
from leakage.settings import Settings
from leakage.spec import catalog
from leakage.web import live_runs
from leakage.web.live_runs import LiveRuns
from leakage.web.routes import Routes
from leakage.web.stream import Stream

LESSON, QUESTION, TRY = "07-noise", 3, 5  # beats of this lesson


@pytest.fixture
def live(store: Store, tmp_path: Path) -> LiveRuns:
    service = Service(store, Settings(home=tmp_path, slots=2, store_mb=4096, memory_mb=0))
    stream = Stream(service, store)
    return LiveRuns(service, stream, Routes(service, store, stream))


def room_at_try(written: Path) -> Room:
    return Room("KRT4P", "k" * 24, Outline.of(reader_lesson(LESSON, catalog.read(written))), beat=TRY, now=0.0)


def test_phones_at_the_beat_know_while_the_run_of_the_teacher_is_computed(
    live: LiveRuns, store: Store, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_runs, "LOOK", 0.01)
    room = room_at_try(written)
    room.let_compute(True)
    told = []

    def note() -> None:
        told.append(room.state("student")["computing"])

    async def go() -> None:
        await live.ask(room, "a phone", TRY, 0)
        await asyncio.sleep(0)
        note()  # a phone's run is not the teacher's
        run = await live.ask(room, "teacher", TRY, 1)
        await asyncio.sleep(0)
        for beat in (TRY, QUESTION, TRY):
            room.lead(beat)
            note()
        store.claim("0:1")
        store.claim("1:1")
        store.finish(run, "done")
        await asyncio.gather(*live.tasks)
        note()

    run_async(go())
    assert told == [False, True, False, True, False]


def test_two_requests_at_once_of_a_phone_whose_run_has_ended_start_one_run(live: LiveRuns, store: Store, written: Path) -> None:
    room = room_at_try(written)
    room.let_compute(True)

    async def go() -> list[str | BaseException]:
        await live.ask(room, "a phone", TRY, 0)
        claimed = store.claim("0:1")
        assert claimed is not None
        store.finish(claimed.id, "done")
        return await asyncio.gather(*(live.ask(room, "a phone", TRY, cell) for cell in (1, 2)), return_exceptions=True)

    answers = run_async(go())
    assert [isinstance(answer, RoomError) for answer in answers] == [False, True]
    assert len(store.queue()) == 1


def test_a_room_that_was_opened_again_takes_its_earlier_runs_along_when_it_closes(live: LiveRuns, store: Store, written: Path) -> None:
    async def go() -> None:
        await live.ask(room_at_try(written), "teacher", TRY, 0)
        for task in live.tasks:
            task.cancel()
        live.forget(room_at_try(written))  # the same code, after a restart of the server
        await asyncio.gather(*live.tasks, return_exceptions=True)

    run_async(go())
    assert store.queue() == []
