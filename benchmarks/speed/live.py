"""The product around the attack's loop: storing and streaming frames, two runs, page delays, ten viewers. Real processes."""

import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from loop import batch_of, experiment, ours
from playwright.sync_api import Browser, Page, sync_playwright

from leakage.runs.notes import SPEEDS
from leakage.runs.service import Service
from leakage.runs.store import OPEN, Store
from leakage.settings import ROOT, cores, settings
from leakage.spec.experiment import Experiment
from leakage.workers.adapter import prepare
from leakage.workers.timing import fitting_threads

ROUNDS = 3
AT_REST, EARLY = 2000, 500  # milliseconds from a drawn page to a click: until Plotly is loaded, and in the middle of that
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync"]


class Site:
    """A dashboard of its own, started as a user would."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = tempfile.TemporaryDirectory()
        os.environ["LEAKAGE_HOME"] = self.folder.name
        kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "ARGS")}
        environment = {**kept, "HEADLESS": "1", "PORT": str(self.port)}
        self.began = time.perf_counter()
        self.process = subprocess.Popen(["make", "run"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)

    def service(self) -> Service:
        config = replace(settings(), home=Path(self.folder.name).resolve())
        return Service(Store(config.store), config)

    def web_process(self) -> int:
        """Return the process id of the web server: the python below make."""
        found = subprocess.run(["pgrep", "-f", f"streamlit run app.py.*{self.port}"], capture_output=True, text=True, check=True)
        return int(found.stdout.split()[-1])

    def close(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()
        with suppress(OSError, IndexError, ValueError):
            os.kill(int(Path(self.folder.name, "dispatch.lock").read_text().split()[0]), signal.SIGTERM)
        time.sleep(1)
        self.folder.cleanup()


@contextmanager
def browser() -> Iterator[Browser]:
    """Yield a headless Chromium."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=os.environ["LEAKAGE_BROWSER"], args=FLAGS)
        yield chromium
        chromium.close()


def usable(page: Page, url: str) -> tuple[float, float]:
    """Measure the seconds until the Run button can be pressed, and until the recorded run's first picture is drawn."""
    began = time.perf_counter()
    while True:
        try:
            page.goto(url)
            break
        except Exception:  # the server is not listening yet
            time.sleep(0.05)
    passed = []
    for what in (
        "document.querySelector('.st-key-run-button button:not(:disabled)')",
        "Number(document.querySelector('.gle-stage')?.dataset.frames) > 0",
    ):  # looks every 20 ms; a locator's own waiting looks ever more seldom, in the end once a second
        page.wait_for_function(f"() => {what}", polling=20, timeout=60_000)
        passed.append(time.perf_counter() - began)
    return passed[0], passed[1]


def page_delays(site: Site) -> dict[str, Any]:
    """Measure cold start, warm load, click to first picture, and memory of the web process with ten pages open."""
    with browser() as chromium:
        page = chromium.new_page()
        usable(page, site.url)
        cold = time.perf_counter() - site.began
        page.close()
        while not site.service().store.note(SPEEDS):  # the workers settle in
            time.sleep(0.5)
        time.sleep(2)
        warm, clicks = [], {wait: list[float]() for wait in (AT_REST, EARLY)}
        for number, wait in enumerate(list(clicks) * ROUNDS):
            page = chromium.new_page()
            warm.append(usable(page, f"{site.url}/?seed={100 + number}"))
            page.wait_for_timeout(wait)
            began = time.perf_counter()
            page.get_by_role("button", name="Run", exact=True).click()
            page.wait_for_function(
                "() => { const d = document.querySelector('.gle-stage').dataset; return location.search.includes('run=')"
                " && d.status === 'running' && Number(d.frames) > 0 }",
                polling=20,
            )
            clicks[wait].append(time.perf_counter() - began)
            page.get_by_role("button", name="Stop and keep").click()
            page.wait_for_timeout(1500)
            page.close()
        pages = [chromium.new_page() for _ in range(10)]
        for page in pages:
            usable(page, site.url)
        status = Path(f"/proc/{site.web_process()}/status").read_text()
        state = next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))
        maps = Path(f"/proc/{site.web_process()}/maps").read_text()
    return {
        "cold_s": cold,
        "warm_s": statistics.median(interactive for interactive, _ in warm),
        "recorded_s": statistics.median(drawn for _, drawn in warm),
        "first_picture_s": statistics.median(clicks[AT_REST]),
        "early_click_s": statistics.median(clicks[EARLY]),
        "web_mb": state,
        "torch_in_web": "libtorch" in maps,
    }


def run_to_end(doors: Service, *chosen: Experiment) -> list[float]:
    """Submit together, wait, and answer the seconds each took."""
    runs = [doors.submit(one, f"owner {number}") for number, one in enumerate(chosen)]
    while any(run.status in OPEN for run in map(doors.look, runs) if run):
        time.sleep(0.05)
    return [run.result["seconds"] for run in map(doors.look, runs) if run and run.result]


def keeping(site: Site) -> list[dict[str, Any]]:
    """Measure a run with stored frames and an open page, against the bare loop, in turn; batch 1 and 8."""
    rows, doors = [], site.service()
    for batch, steps in ((1, 4000), (8, 1500)):
        pairs = []
        threads = fitting_threads(prepare(batch_of(experiment("lenet", steps), batch, 0)).seen, cores(), {})
        for round_ in range(ROUNDS):
            chosen = batch_of(experiment("lenet", steps), batch, 1000 * batch + round_)
            bare = ours(chosen, threads, chosen.seed)["seconds"]
            run = doors.submit(chosen, "keeping")
            asyncio.run(follow(site.url, [run], viewers=1, seconds=3600))
            found = doors.look(run)
            assert found is not None
            assert found.result is not None
            pairs.append((bare, found.result["seconds"]))
        ratio = statistics.median(kept / bare_s for bare_s, kept in pairs)
        rows.append(
            {
                "batch": batch,
                "steps": steps,
                "threads": threads,
                "bare_s": statistics.median(p[0] for p in pairs),
                "kept_s": statistics.median(p[1] for p in pairs),
                "overhead": ratio - 1,
            }
        )
    return rows


def two_at_once(site: Site) -> dict[str, Any]:
    """Measure the steps per second of each of two simultaneous runs, as a fraction of a single run's."""
    doors = site.service()
    chosen = experiment("lenet", 3000)
    shares = []
    for round_ in range(ROUNDS):
        (solo,) = run_to_end(doors, batch_of(chosen, 1, 5000 + round_))
        both = run_to_end(doors, batch_of(chosen, 1, 6000 + round_), batch_of(chosen, 1, 7000 + round_))
        shares += [solo / seconds for seconds in both]
    return {"share_of_solo_speed": statistics.median(shares), "worst": min(shares)}


async def follow(url: str, runs: list[str], *, viewers: int, seconds: float) -> list[float]:
    """Open that many event streams as a page does, fetching every picture; frames per second of each."""

    async def one(client: httpx.AsyncClient) -> float:
        frames, first, last = 0, 0.0, 0.0
        began = time.perf_counter()
        async with client.stream("GET", f"{url}/api/runs/stream", params={"ids": ",".join(runs)}, timeout=60) as answer:
            async for line in answer.aiter_lines():
                event = json.loads(line[6:]) if line.startswith("data: ") else {}
                if event.get("kind") == "frame":
                    last = time.perf_counter()
                    first = first or last
                    frames += 1
                    await client.get(f"{url}/api/runs/{event['run']}/frames/{event['seq']}.png")
                if event.get("kind") == "end" or time.perf_counter() - began > seconds:
                    break
        return frames / max(last - first, 1e-9)

    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=100)) as client:
        return await asyncio.gather(*(one(client) for _ in range(viewers)))


def ten_viewers(site: Site) -> dict[str, Any]:
    """Measure the updates per second of the slowest of ten listeners of one live run."""
    run = site.service().submit(batch_of(experiment("lenet", 6000), 1, 9000), "viewers")
    time.sleep(0.5)
    rates = asyncio.run(follow(site.url, [run], viewers=10, seconds=8))
    return {"viewers": 10, "slowest_per_second": min(rates), "median_per_second": statistics.median(rates)}
