"""Rooms on a real server: nothing is kept of a class, and streams go on after the server stood still."""

import asyncio
import json
import os
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path

import httpx
import pytest
from class_phones import Class, lan_address, requests_to, say, slot
from event_loop import run_async
from home_fixtures import furnished
from home_processes import QUICK, Place, Server, place, until

pytestmark = pytest.mark.processes
Served = tuple[Place, Server]
LESSON, QUESTION, TRY, LAST = "01-gradient", 3, 5, 7  # beats count from 1
PHONES = 6  # in each room
STREAMS = 20
STANDS = 3.0  # seconds in which the server does nothing


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, written: Path) -> Iterator[Served]:
    """A server as `make class` starts it."""
    with place(furnished(tmp_path_factory.mktemp("class"), written), LEAKAGE_CLASS="1") as made:
        yield made, made.serve(host="0.0.0.0")


def rows(home: Path) -> dict[str, int]:
    """How many rows each table of the store has."""
    with closing(sqlite3.connect(home / "store.db")) as store:
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: store.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables}


def files(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*")}


def test_nothing_is_kept_of_a_class_of_three_rooms(served: Served) -> None:
    made, server = served
    logs = [made.home / name for name in ("server.log", "dispatch.log", "workers.log")]
    run = made.finished(made.submit(QUICK)).id  # its dispatcher has read the recorded runs and keeps what is kept once
    made.service.delete(run, "me")
    with requests_to(lan_address(server.port)) as phones, requests_to(server.address) as teacher:
        rows_before, files_before = rows(made.home), files(made.home)
        written_before = {log: len(log.read_bytes()) for log in logs}
        rooms = [Class(teacher, LESSON) for _ in range(3)]
        for room in rooms:
            room.lead(beat=QUESTION)
            for number in range(PHONES):
                say(phones, room.code, number, beat=QUESTION, option=number % 3, round=0)
            for act in ("reveal", "again", "clear", "lock"):
                room.lead(act=act)
            room.lead(beat=TRY)
            say(phones, room.code, 0, beat=TRY, cell=1)
            if room is rooms[0]:
                assert made.finished(room.live(TRY, 1)).status == "done"
            assert phones.put(f"/api/class/{room.code}/me", json={"slot": slot(PHONES)}).status_code == 403  # locked
            assert phones.put(f"/api/class/{room.code}/me", content=b" " * 501).status_code == 413
            with phones.stream("GET", f"/api/class/{room.code}/events?slot={slot(0)}") as stream:
                next(stream.iter_lines())  # and the connection ends in the middle
            room.lead(act="close")
            assert phones.get(f"/api/class/{room.code}/lesson").status_code == 404
    until(lambda: rows(made.home) == rows_before, what="the store has the rows of before")
    until(lambda: files(made.home) <= files_before, what="the home has the files of before")
    for log in logs:
        told = log.read_bytes()[written_before[log] :].decode()
        assert [word for word in ("192.", "127.", *(room.code for room in rooms)) if word in told] == [], told


async def states(stream: httpx.Response) -> AsyncIterator[dict[str, object]]:
    async for line in stream.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def until_beat(stream: AsyncIterator[dict[str, object]], beat: int) -> None:
    async for state in stream:
        if state["beat"] == beat:
            return
    raise AssertionError("the stream ended")


def test_streams_go_on_after_the_server_stood_still(served: Served) -> None:
    _, server = served

    async def listen() -> float:
        """Listen with all phones while the server stands still; return the seconds until all have heard what came afterwards."""
        limits = httpx.Limits(max_connections=STREAMS)
        async with (
            httpx.AsyncClient(base_url=server.address, trust_env=False, timeout=120, limits=limits) as client,
            AsyncExitStack() as open,
        ):
            heard = []
            for number in range(STREAMS):
                request = client.stream("GET", f"/api/class/{room.code}/events?slot={slot(number)}")
                heard.append(states(await open.enter_async_context(request)))
            await asyncio.gather(*(until_beat(stream, 1) for stream in heard))
            os.kill(server.process.pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(STANDS)
            finally:
                os.kill(server.process.pid, signal.SIGCONT)
            woken = time.monotonic()
            await asyncio.to_thread(room.lead, beat=LAST)
            await asyncio.gather(*(until_beat(stream, LAST) for stream in heard))
            return time.monotonic() - woken

    with requests_to(server.address) as teacher:
        room = Class(teacher, LESSON)
        assert run_async(listen()) < 60.0
        room.lead(act="close")
