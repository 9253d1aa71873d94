"""Drawings for one request: two at a time, once for all requests, without delaying other pictures."""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from event_loop import run_async
from home_processes import Server, get, place, until

from leakage.learn.data_address import data_folder
from leakage.results.exports import Download
from leakage.web.downloads import AT_A_TIME, Downloads
from leakage.web.learn_routes import film_files

MANY = 60


def drawing(counts: list[int]) -> Callable[[], Download]:
    """Draws for 50 ms; notes how many draw at this moment."""
    lock, now = threading.Lock(), [0]

    def make() -> Download:
        with lock:
            now[0] += 1
            counts.append(now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1
        return Download("text/plain", b"drawn")

    return make


def test_two_are_drawn_at_a_time_however_many_are_asked_for() -> None:
    counts: list[int] = []
    make, drawn = drawing(counts), Downloads()

    async def ask() -> list[Download]:
        return await asyncio.gather(*(drawn.get(("one", number), make) for number in range(10)))

    assert len(run_async(ask())) == len(counts) == 10
    assert max(counts) == AT_A_TIME


def test_those_who_ask_for_the_same_at_once_get_one_drawing_and_who_leaves_takes_it_from_nobody() -> None:
    counts: list[int] = []
    make, drawn = drawing(counts), Downloads()

    async def ask() -> list[Download]:
        leaving, *staying = [asyncio.ensure_future(drawn.get("same", make)) for _ in range(10)]
        await asyncio.sleep(0.01)
        leaving.cancel()
        return await asyncio.gather(*staying)

    assert [one.data for one in run_async(ask())] == [b"drawn"] * 9
    assert run_async(drawn.get("same", make)).data == b"drawn"
    assert counts == [1]


def test_what_could_not_be_drawn_is_tried_again() -> None:
    tries: list[int] = []

    def make() -> Download:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("damaged")
        return Download("text/plain", b"drawn")

    drawn = Downloads()
    with pytest.raises(ValueError, match="damaged"):
        run_async(drawn.get("one", make))
    assert run_async(drawn.get("one", make)).data == b"drawn"
    assert not drawn.under_way


def worked(server: Server) -> float:
    """Seconds of processor time of a server."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.processes
def test_another_picture_comes_while_one_browser_asks_for_sixty_slides(home: Path) -> None:
    with place(home) as made, ThreadPoolExecutor(MANY) as browser:
        server = made.serve(alone=True)
        recorded = until(made.service.recorded, what="the recorded run is there")
        private = f"/api/runs/{recorded}/private.png"
        names = [name.removeprefix("runs/") for name in film_files() if name.startswith("runs/")]
        slides = [f"{data_folder('')}/slides/{name}.{kind}" for kind in ("png", "gif") for name in names][:MANY]

        def ask(path: str) -> int:
            with get(server.address + path, timeout=120) as answer:
                answer.read()
                return int(answer.status)

        begun = worked(server)
        asked = [browser.submit(ask, path) for path in slides]
        until(lambda: any(one.done() for one in asked), what="the first slide is drawn")
        before = sum(one.done() for one in asked)
        assert ask(private) == 200
        drawn = sum(one.done() for one in asked) - before
        assert drawn < MANY / 2, f"the picture waited for {drawn} slides"
        assert [one.result() for one in asked] == [200] * MANY
        drawing = worked(server) - begun
        assert [ask(path) for path in slides[:10]] == [200] * 10
        assert worked(server) - begun - drawing < drawing * 10 / MANY / 2  # they were kept
