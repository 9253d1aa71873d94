"""A class at once: pages that follow waiting runs, pages that never read, page sessions; seconds, and the memory of the web process."""

import asyncio
import itertools
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
from _site import Site, silent_page, until
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from leakage.data.images import sheet
from leakage.runs.events import FrameEvent
from leakage.runs.owners import COOKIE
from leakage.runs.store import Run
from leakage.spec.experiment import Experiment, Part, Picture

EIGHT = tuple(Picture(id=name) for name in ("astronaut", "chelsea", "coffee", "rocket", "retina", "face-0", "digit-0", "page-0"))
LASTING = Experiment(attack=Part(id="inverting_gradients", fields={"steps": 20000}), max_seconds=600)
FOLLOW = 30.0  # seconds


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return sorted(values)[int(0.95 * (len(values) - 1))]


def a_class(site: Site, pages: int, arms: int) -> dict[str, Any]:
    """Measure how long the health page takes to answer while so many pages follow so many waiting runs each and workers compute."""
    seeds = itertools.count()
    asked = [
        site.service.submit_all([LASTING.model_copy(update={"seed": next(seeds)}) for _ in range(arms)], f"{arms} {n}")
        for n in range(pages)
    ]
    until(lambda: len(site.store.running()) == site.config.slots, 120)
    waits = asyncio.run(health_while_followed(site, asked))
    for owner in range(pages):
        site.service.delete_all(f"{arms} {owner}")
    until(lambda: not site.store.running(), 120)
    return {"pages": pages, "arms": arms, "asked": len(waits), "median_s": statistics.median(waits), "longest_s": max(waits)}


async def health_while_followed(site: Site, asked: list[list[str]]) -> list[float]:
    """Seconds of every answer of the health page while these runs are followed, a page for each list."""
    async with httpx.AsyncClient(base_url=site.address, timeout=60, limits=httpx.Limits(max_connections=None)) as web:

        async def follow(number: int, runs: list[str]) -> None:
            headers = {"Cookie": f"{COOKIE}=follower{number:08}"}
            async with web.stream("GET", "/api/runs/stream", params={"ids": ",".join(runs)}, headers=headers) as stream:
                async for _ in stream.aiter_bytes():
                    pass

        pages = [asyncio.create_task(follow(number, runs)) for number, runs in enumerate(asked)]
        waits, ends = list[float](), time.monotonic() + FOLLOW
        while time.monotonic() < ends:
            began = time.perf_counter()
            (await web.get("/_stcore/health")).raise_for_status()
            waits.append(time.perf_counter() - began)
            await asyncio.sleep(0.05)
        for page in pages:
            page.cancel()
        await asyncio.gather(*pages, return_exceptions=True)
        return waits


def frames_arrive(site: Site, listeners: int, runs: int, *, every: float = 1.0, seconds: float = 20.0) -> dict[str, Any]:
    """Measure whether listeners on runs of a batch of 8 get every frame once and in order, and how late."""
    names = [f"written-{number}" for number in range(runs)]
    for name in names:
        site.store.add(replace(row(name), owner="writer"), {})
    picture = sheet(np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), dtype=np.uint8))
    total = int(seconds / every)

    async def measure() -> tuple[list[float], int]:
        lateness, wrong = list[float](), 0
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=site.address, timeout=60, limits=limits) as web:
            ready = asyncio.Semaphore(0)

            async def listen(number: int) -> list[int]:
                heard = list[int]()
                headers = {"Cookie": f"{COOKIE}=listener{number:08}"}
                async with web.stream("GET", f"/api/runs/stream?ids={names[number % runs]}", headers=headers) as stream:
                    ready.release()
                    async for line in stream.aiter_lines():
                        if line.startswith("data: ") and '"kind": "frame"' in line:
                            step, told = (part.split(",")[0] for part in (line.split('"step": ')[1], line.split('"seconds": ')[1]))
                            lateness.append(time.time() - began - float(told))
                            heard.append(int(step))
                            if len(heard) == total:
                                return heard
                return heard

            began = time.time()
            pages = [asyncio.create_task(listen(number)) for number in range(listeners)]
            for _ in pages:
                await ready.acquire()
            await asyncio.to_thread(write, began)
            for found in await asyncio.gather(*pages):
                wrong += found != list(range(1, total + 1))
        return lateness, wrong

    def write(began: float) -> None:
        order = [(step, name) for step in range(1, total + 1) for name in names]
        start = time.monotonic()
        for place, (step, name) in enumerate(order):
            time.sleep(max(0.0, start + place * every / runs - time.monotonic()))
            site.store.add_frame(name, FrameEvent(step=step, seconds=time.time() - began, loss=1.0 / step), picture)
        site.store.close()

    lateness, wrong = asyncio.run(measure())
    for name in names:
        site.store.drop(name, "writer")
    found = {"listeners": listeners, "runs": runs, "frames_heard": len(lateness), "listeners_that_missed_some": wrong}
    return {**found, "median_s": statistics.median(lateness), "p95_s": p95(lateness), "longest_s": max(lateness)}


def never_read(site: Site, pages: int) -> dict[str, Any]:
    """Measure by how much the web process grows under pages that open a stream of a long run and never read."""
    site.store.add(row("long"), {})
    views = {"view": "x" * 4000}
    for step in range(3000):
        site.store.add_event("long", FrameEvent(step=step, seconds=float(step), loss=1.0, views=views))
    before = site.measure_memory()
    with ExitStack() as opened:
        for number in range(pages):
            opened.enter_context(silent_page(site, "long", number))
        for step in range(3000, 4000):  # and it goes on
            site.store.add_event("long", FrameEvent(step=step, seconds=float(step), loss=1.0, views=views))
        time.sleep(10)
        grown = site.measure_memory() - before
    site.store.drop("long", "me")
    return {"pages": pages, "before_mb": before, "grown_mb": grown}


def sessions(site: Site, count: int) -> dict[str, Any]:
    """Measure memory for so many open pages, and how long the slowest page took to be drawn."""
    before, seconds = site.measure_memory(), list[float]()
    with ExitStack() as opened:
        for number in range(count):
            began = time.perf_counter()
            page = connect(
                site.address.replace("http", "ws") + "/_stcore/stream",
                origin=Origin(site.address),
                subprotocols=[Subprotocol("streamlit")],
                additional_headers={"Cookie": f"{COOKIE}=visitor{number:010}"},
                max_size=None,
                proxy=None,
            )
            draw(opened.enter_context(page))
            seconds.append(time.perf_counter() - began)
        after = site.measure_memory()
    return {
        "sessions": count,
        "before_mb": before,
        "after_mb": after,
        "median_draw_s": statistics.median(seconds),
        "longest_draw_s": max(seconds),
    }


def draw(page: ClientConnection) -> None:
    """Open the Lab in a session, up to the end of its script."""
    hello = BackMsg()
    hello.rerun_script.query_string = ""
    page.send(hello.SerializeToString())
    while True:
        message = page.recv(timeout=60)
        assert isinstance(message, bytes)
        if ForwardMsg.FromString(message).WhichOneof("type") == "script_finished":
            return


def row(name: str) -> Run:
    """Return a run of a batch of 8 that no worker claims: it counts as done, whatever is written to it."""
    asked = Experiment(pictures=EIGHT)
    return Run(
        id=name,
        owner="me",
        grp=None,
        kind="attack",
        digest=name,
        version="written",
        experiment=asked.model_dump_json(),
        shareable=True,
        estimate=None,
        created=time.time(),
        status="done",
        finished=time.time(),
    )
