"""The GET routes: every event once and in order, pictures cached for ever, downloads that can be read back."""

import asyncio
import contextlib
import csv
import dataclasses
import io
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from event_loop import run_async
from home_processes import QUICK, get, until
from PIL import Image
from sample_events import end, frame, note
from starlette.applications import Starlette
from store_rows import run

from leakage.data.images import sheet
from leakage.results import exports
from leakage.results.comparison_file import experiments
from leakage.runs.events import TurnEvent
from leakage.runs.owners import COOKIE
from leakage.runs.service import NOT_READY, Place, Service
from leakage.runs.store import Store
from leakage.settings import Settings
from leakage.spec.experiment import Experiment, Picture, parse
from leakage.web.downloads import cache_key
from leakage.web.routes import Routes
from leakage.web.stream import BACKLOG, MAX_LISTENERS, TOO_MANY_PAGES, QueuePositions, Stream, message

EXPERIMENT = QUICK.model_copy(update={"pictures": (Picture(id="astronaut"), Picture(id="chelsea"))})
SIZE = 32


class Site:
    """Our routes on a server in a thread, and the store behind them."""

    def __init__(self, home: Path) -> None:
        self.store = Store(home / "store.db")
        service = Service(self.store, Settings(home=home, slots=2, store_mb=4096, memory_mb=0))
        self.stream = Stream(service, self.store)
        app = Starlette(routes=Routes(service, self.store, self.stream).below(), lifespan=lambda _app: self.stream.polling())
        self.server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="on"))
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        until(lambda: self.server.started, what="the server has started")
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"

    def get(self, path: str, headers: dict[str, str] | None = None) -> Any:
        return get(self.address + path, headers)

    def read(self, path: str) -> tuple[int, str, bytes]:
        with self.get(path) as response:
            return response.status, response.headers["Content-Type"].split(";")[0], response.read()

    def end(self) -> None:
        self.stream.closing = True
        self.server.should_exit = True
        self.thread.join()
        self.store.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.end()


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    """A site without runs."""
    yield running
    for found in running.store.held_by("me"):
        running.store.drop(found.id, "me")


def queued(store: Store, name: str, experiment: Experiment = EXPERIMENT) -> None:
    store.add(dataclasses.replace(run(name), experiment=experiment.model_dump_json()), {})


def pictures(seed: int, experiment: Experiment = EXPERIMENT) -> bytes:
    shape = (len(experiment.pictures), experiment.size, experiment.size, experiment.channels)
    return sheet(np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8))


def add_frame(store: Store, name: str, step: int, experiment: Experiment = EXPERIMENT) -> int:
    scores = {"psnr": 10.0 + step, "mse": 0.1 / step, "label_accuracy": 1.0} | ({"ssim": 0.5} if step % 2 else {})
    return store.add_frame(name, frame(step, scores=scores), pictures(step, experiment))


def played(store: Store, name: str, *, frames: int = 6, experiment: Experiment = EXPERIMENT) -> list[int]:
    """A finished run; the numbers of its frames."""
    queued(store, name, experiment)
    store.claim("0:1")
    store.put_file(name, "private.png", pictures(0, experiment))
    seqs = [add_frame(store, name, step, experiment) for step in range(1, frames + 1)]
    store.finish(name, "done", result=end(seqs[-1]))
    return seqs


def heard(response: Any, count: int) -> list[dict[str, Any]]:
    """The next `count` events of a stream; each with the id under which it was sent."""
    events: list[dict[str, Any]] = []
    sent = None
    ends = time.monotonic() + 120
    while len(events) < count:
        line = response.readline().decode()
        assert time.monotonic() < ends, f"only {len(events)} of {count} events arrived"
        assert line, "the stream ended"
        if line.startswith("id: "):
            sent = int(line[4:])
        elif line.startswith("data: "):
            events.append({"id": sent, **json.loads(line[6:])})
            sent = None
    return events


# ---------------------------------------------------------------- the stream


def test_a_stream_begins_with_all_that_was_before(site: Site) -> None:
    played(site.store, "a")
    stored = site.store.events(["a"], 0)
    with site.get("/api/runs/stream?ids=a&since=0") as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        assert stream.headers["Cache-Control"] == "no-cache"
        assert stream.headers["X-Accel-Buffering"] == "no"
        events = heard(stream, len(stored))
    assert [event.pop("id") for event in events] == [event["seq"] for event in stored]
    assert events == stored


@pytest.mark.parametrize("how", ["header", "query"])
def test_a_stream_resumes_after_the_last_event_heard(site: Site, how: str) -> None:
    seqs = played(site.store, "a")
    headers = {"Last-Event-ID": str(seqs[3])} if how == "header" else {}
    with site.get(f"/api/runs/stream?ids=a&since={seqs[3] if how == 'query' else 0}", headers) as stream:
        assert [event["seq"] for event in heard(stream, 2)] == seqs[4:6]


def test_events_arrive_while_one_listens_and_only_those_of_the_runs_asked_for(site: Site) -> None:
    for name in ("a", "b", "c"):
        queued(site.store, name)
    since = site.store.last_seq()
    with site.get(f"/api/runs/stream?ids=a,b&since={since}") as stream, site.get(f"/api/runs/stream?ids=c&since={since}") as other:
        assert {event["run"] for event in heard(stream, 2)} == {"a", "b"}  # where they stand in the queue
        for name in ("c", "a", "c", "b"):
            site.store.add_event(name, note(name))
        assert [event["text"] for event in heard(stream, 2)] == ["a", "b"]
        assert [event["run"] for event in heard(other, 3)] == ["c"] * 3


def test_a_waiting_run_hears_its_place_without_a_number_to_resume_after(site: Site) -> None:
    queued(site.store, "a")
    queued(site.store, "b")
    with site.get(f"/api/runs/stream?ids=b&since={site.store.last_seq()}") as stream:
        (place,) = heard(stream, 1)
    assert place == {"id": None, "run": "b", "kind": "state", "status": "queued", "position": 2, "wait": None}


def test_what_happens_between_the_backlog_and_the_first_new_event_is_not_missed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    played(site.store, "a", frames=2)
    read = site.store.events

    def slowly(runs: Any, since: int, *, most: int = -1) -> list[dict[str, Any]]:
        found = read(runs, since, most=most)
        if isinstance(runs, list) and not since:  # a listener's look at what was before
            site.store.add_event("a", note("meanwhile"))
            time.sleep(0.5)  # the poller looks several times
        return found

    monkeypatch.setattr(site.store, "events", slowly)
    before = len(read(["a"], 0))
    with site.get("/api/runs/stream?ids=a") as stream:
        assert heard(stream, before + 1)[-1]["text"] == "meanwhile"


def test_listeners_that_come_and_go_miss_nothing_and_hear_nothing_twice(site: Site) -> None:
    """Each comes at a moment of its own, leaves after some events, and comes back where it left."""
    queued(site.store, "a")
    queued(site.store, "other")
    site.store.claim("0:1")
    site.store.claim("0:2")
    first, total = site.store.last_seq(), 300
    results: list[list[int]] = []

    def listen(number: int) -> None:
        seen: list[int] = []
        since = first
        while len(seen) < total:
            with site.get(f"/api/runs/stream?ids=a&since={since}") as stream:
                for event in heard(stream, min(7 + 13 * number, total - len(seen))):
                    seen.append(event["number"])
                    since = event["seq"]
        results.append(seen)

    listeners = [threading.Thread(target=listen, args=(number,)) for number in range(6)]
    for number in range(total):
        if number % 50 == 0:
            listeners[number // 50].start()
        site.store.add_event("a", TurnEvent(name="point", number=number, layers=total))
        site.store.add_event("other", TurnEvent(name="point", number=-1, layers=total))
        time.sleep(0.002)
    for listener in listeners:
        listener.join(240)
    assert results == [list(range(total))] * len(listeners)


def test_a_page_that_does_not_read_is_cut_off_and_goes_on_where_it_was(site: Site) -> None:
    """More than BACKLOG events wait for it: its stream ends, and the next one begins after the last event that it read."""
    queued(site.store, "a")
    site.store.claim("0:1")
    first, total = site.store.last_seq(), 3 * BACKLOG
    long = "x" * 5000  # so that the sockets between do not hold them all
    with site.get(f"/api/runs/stream?ids=a&since={first}") as stream:
        until(lambda: site.stream.listeners, what="the listener is there")
        site.store.add_event("a", note(f"0 {long}"))
        seen = heard(stream, 1)
        for number in range(1, total):
            site.store.add_event("a", note(f"{number} {long}"))
        until(lambda: not any(listener.runs for listener in site.stream.listeners), what="the listener is cut off")
        with contextlib.suppress(AssertionError):  # the stream ends
            while True:
                seen += heard(stream, 1)
    assert len(seen) < total
    with site.get("/api/runs/stream?ids=a", {"Last-Event-ID": str(seen[-1]["seq"])}) as stream:
        seen += heard(stream, total - len(seen))
    assert [int(event["text"].split()[0]) for event in seen] == list(range(total))


def test_a_browser_follows_on_so_many_pages_at_most(site: Site) -> None:
    queued(site.store, "a")
    path = f"/api/runs/stream?ids=a&since={site.store.last_seq()}"
    with contextlib.ExitStack() as open_pages:
        for _ in range(MAX_LISTENERS):
            heard(open_pages.enter_context(site.get(path, {"Cookie": f"{COOKIE}=one"})), 1)
        with site.get(path, {"Cookie": f"{COOKIE}=one"}) as refused:
            assert (refused.status, refused.read().decode()) == (429, TOO_MANY_PAGES)
        with site.get(path, {"Cookie": f"{COOKIE}=another"}) as other:
            heard(other, 1)


def test_the_queue_is_read_once_for_all_who_ask_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty ask while it is being read: they share the one reading that begins after they asked."""
    queued(site.store, "a")
    places, readings = QueuePositions(site.stream.service), []
    read = site.stream.service.places

    def slowly() -> dict[str, Place]:
        readings.append(time.monotonic())
        time.sleep(0.2)
        return read()

    monkeypatch.setattr(site.stream.service, "places", slowly)

    async def ask() -> list[dict[str, Place]]:
        first = asyncio.create_task(places.now())
        await asyncio.sleep(0.05)
        return await asyncio.gather(first, *(places.now() for _ in range(30)))

    assert [found["a"].position for found in run_async(ask())] == [1] * 31
    assert len(readings) == 2


def test_an_event_is_written_as_json_once_for_all_its_listeners(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    queued(site.store, "a")
    site.store.claim("0:1")
    path = f"/api/runs/stream?ids=a&since={site.store.last_seq()}"
    with contextlib.ExitStack() as open_pages:
        pages = [open_pages.enter_context(site.get(path)) for _ in range(5)]
        until(lambda: len(site.stream.listeners) == 5, what="all listen")
        site.store.add_event("a", note("first"))
        for page in pages:
            heard(page, 1)
        time.sleep(0.5)  # what was before has been read by all: from here on events come by the poller alone
        written: list[str] = []
        monkeypatch.setattr("leakage.web.stream.message", lambda event: written.append(event["text"]) or message(event))
        site.store.add_event("a", note("once"))
        assert [heard(page, 1)[0]["text"] for page in pages] == ["once"] * 5
        assert written == ["once"]


def test_a_run_that_somebody_follows_makes_room_last(site: Site) -> None:
    played(site.store, "a", frames=1)
    with site.get("/api/runs/stream?ids=a") as stream:
        heard(stream, 1)
    viewed = site.store.database.read().execute("SELECT viewed FROM runs WHERE id = 'a'").fetchone()[0]
    assert time.time() - viewed < 300


def test_a_listener_that_left_is_forgotten(site: Site) -> None:
    played(site.store, "a")
    with site.get("/api/runs/stream?ids=a") as stream:
        heard(stream, 1)
        until(lambda: len(site.stream.listeners) == 1, what="it alone listens")
    until(lambda: not site.stream.listeners, what="the listener is forgotten")


def test_a_store_that_cannot_be_written_does_not_end_the_streams(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The poller's own sign of life fails on a full disk."""
    queued(site.store, "a")
    site.store.claim("0:1")
    refused = threading.Event()

    def refuse(*_: Any) -> None:
        refused.set()
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(site.store, "put_note", refuse)
    monkeypatch.setattr("leakage.web.stream.ALIVE", 0.1)
    with site.get(f"/api/runs/stream?ids=a&since={site.store.last_seq()}") as stream:
        assert refused.wait(60)
        site.store.add_event("a", note("still here"))
        assert heard(stream, 1)[0]["text"] == "still here"


def test_open_streams_end_when_the_server_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leakage.web.stream.ALIVE", 120.0)  # they do not wait for the next sign of life
    site = Site(tmp_path)
    played(site.store, "a", frames=1)
    with site.get("/api/runs/stream?ids=a") as stream:
        heard(stream, len(site.store.events(["a"], 0)))
        time.sleep(0.3)  # now it waits for news
        site.stream.closing = True
        began = time.monotonic()
        stream.read()
        assert time.monotonic() - began < 60
    site.end()


@pytest.mark.parametrize("ids", ["", "ids=", "ids=nobody", "ids=,,"])
def test_a_stream_of_no_run_is_refused_with_a_sentence(site: Site, ids: str) -> None:
    assert site.read(f"/api/runs/stream?{ids}") == (404, "text/plain", b"No such run; it may have been deleted.")


@pytest.mark.parametrize("since", ["soon", "-1", "1.5", "%C2%B2", "9" * 30, "9" * 5000])
def test_a_stream_since_no_number_is_refused_with_a_sentence(site: Site, since: str) -> None:
    queued(site.store, "a")
    assert site.read(f"/api/runs/stream?ids=a&since={since}") == (400, "text/plain", b"since must be a whole number.")


# ---------------------------------------------------------------- pictures


def test_pictures_never_change_and_may_be_kept_for_ever(site: Site) -> None:
    seqs = played(site.store, "a")
    for path, wanted in ((f"frames/{seqs[2]}.png", pictures(3)), ("private.png", pictures(0))):
        with site.get(f"/api/runs/a/{path}") as response:
            assert (response.status, response.headers["Content-Type"]) == (200, "image/png")
            assert response.headers["Cache-Control"] == "private, max-age=31536000, immutable"
            assert response.read() == wanted


def test_pictures_of_an_upload_leave_no_trace_in_the_browser(site: Site) -> None:
    site.store.add(dataclasses.replace(run("a"), shareable=False), {"upload:red": b"red"})
    site.store.put_file("a", "private.png", pictures(0))
    for path in (f"frames/{add_frame(site.store, 'a', 1)}.png", "private.png"):
        with site.get(f"/api/runs/a/{path}") as response:
            assert (response.status, response.headers["Cache-Control"]) == (200, "no-store")


def test_a_frame_of_another_run_or_of_none_is_not_found(site: Site) -> None:
    seqs = played(site.store, "a")
    played(site.store, "b")
    for path in (f"b/frames/{seqs[0]}.png", "a/frames/999999.png", "nobody/frames/1.png", f"a/frames/{'9' * 30}.png"):
        status, kind, _ = site.read(f"/api/runs/{path}")
        assert (status, kind) == (404, "text/plain")
    assert site.read("/api/runs/nobody/private.png") == (404, "text/plain", b"Nothing to download: no such run, or it has no pictures yet.")


def test_plotly_comes_from_the_installed_package(site: Site) -> None:
    status, kind, script = site.read("/api/plotly.min.js")
    assert (status, kind) == (200, "text/javascript")
    assert b"plotly.js v" in script[:300]


# ---------------------------------------------------------------- downloads


def test_the_final_picture_shows_private_pictures_above_guesses(site: Site) -> None:
    played(site.store, "a")
    with site.get("/api/runs/a/final.png") as response:
        assert response.headers["Content-Disposition"] == 'attachment; filename="leakage-a-final.png"'
        image = np.asarray(Image.open(io.BytesIO(response.read())).convert("RGB"))
    side = 2 * SIZE * exports.SCALE  # two pictures, enlarged
    for top, seed in ((exports.GAP, 0), (2 * exports.GAP + SIZE * exports.SCALE, 6)):
        shown = image[top : top + SIZE * exports.SCALE : exports.SCALE, exports.GAP : exports.GAP + side : exports.SCALE]
        assert np.array_equal(shown, np.asarray(Image.open(io.BytesIO(pictures(seed)))))


def test_the_final_picture_of_a_run_without_an_answer_is_the_kept_one_of_lowest_loss(site: Site) -> None:
    queued(site.store, "a")
    site.store.claim("0:1")
    site.store.put_file("a", "private.png", pictures(0))
    for step in (1, 3, 2):
        add_frame(site.store, "a", step)
    before = site.read("/api/runs/a/final.png")
    played(site.store, "b", frames=3)
    assert before == site.read("/api/runs/b/final.png")


def test_the_animation_moves_through_the_run(site: Site) -> None:
    played(site.store, "a", frames=5)
    status, kind, data = site.read("/api/runs/a/run.webp")
    assert (status, kind) == (200, "image/webp")
    with Image.open(io.BytesIO(data)) as animation:
        assert animation.n_frames == 5
        first = np.asarray(animation.convert("RGB")).copy()
        animation.seek(4)
        assert not np.array_equal(first, np.asarray(animation.convert("RGB")))


@pytest.mark.parametrize(("batch", "size", "channels"), [(1, 28, 1), (128, 64, 3), (10, 224, 3)])
@pytest.mark.long
def test_downloads_stay_small_whatever_the_run(tmp_path: Path, batch: int, size: int, channels: int) -> None:
    """They are made in the memory of the web server: 240 sheets of 128 pictures, enlarged, would take gigabytes."""
    store = Store(tmp_path / "store.db")
    many = Experiment.model_validate({"pictures": [{"id": "astronaut"}] * batch, "size": size, "channels": channels})
    played(store, "a", frames=25, experiment=many)
    animation, final = exports.make(store, "a", "run.webp"), exports.make(store, "a", "final.png")
    assert animation is not None
    assert final is not None
    with Image.open(io.BytesIO(animation.data)) as moving, Image.open(io.BytesIO(final.data)) as still:
        assert 2 <= moving.n_frames * moving.width * moving.height <= exports.MAX_PIXELS
        assert moving.n_frames >= 20
        assert moving.width <= exports.NARROW + 2 * exports.GAP
        assert still.width <= exports.WIDE + 2 * exports.GAP
    store.close()


def test_the_curves_have_one_row_per_frame_kept_or_not(site: Site) -> None:
    played(site.store, "a", frames=250)
    status, kind, data = site.read("/api/runs/a/curves.csv")
    assert (status, kind) == (200, "text/csv")
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert list(rows[0]) == [
        *("step", "seconds", "gradient_distance", "psnr_db", "mse", "ssim", "label_accuracy"),
        *("rank", "identified", "registered_psnr", "lpips"),
    ]
    assert [int(row["step"]) for row in rows] == list(range(1, 251))
    assert [row["ssim"] for row in rows[:3]] == ["0.5", "", "0.5"]
    assert float(rows[3]["gradient_distance"]) == 0.25
    assert float(rows[3]["psnr_db"]) == 14.0


def test_the_experiment_comes_back_as_it_was_asked(site: Site) -> None:
    played(site.store, "a")
    status, kind, data = site.read("/api/runs/a/experiment.json")
    assert (status, kind) == (200, "application/json")
    assert parse(data) == EXPERIMENT


def test_a_download_is_made_once_while_it_cannot_change(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    make = exports.make
    monkeypatch.setattr(exports, "make", lambda store, run, *rest: made.append(run) or make(store, run, *rest))
    played(site.store, "a")
    queued(site.store, "b")
    site.store.claim("0:1")
    for _ in range(3):
        assert site.read("/api/runs/a/curves.csv") == site.read("/api/runs/a/curves.csv")
        site.read("/api/runs/b/curves.csv")
    assert (made.count("a"), made.count("b")) == (1, 3)


def test_a_download_of_an_upload_is_kept_neither_here_nor_in_the_browser(site: Site) -> None:
    site.store.add(dataclasses.replace(run("a"), experiment=EXPERIMENT.model_dump_json(), shareable=False), {})
    site.store.claim("0:1")
    add_frame(site.store, "a", 1)
    site.store.finish("a", "cancelled")
    for _ in range(2):
        with site.get("/api/runs/a/curves.csv") as response:
            assert (response.status, response.headers["Cache-Control"]) == (200, "no-store")
    assert cache_key([site.store.get("a")], "curves.csv") is None
    played(site.store, "b")
    assert cache_key([site.store.get("b")], "curves.csv")
    assert cache_key([site.store.get("a"), site.store.get("b")], "comparison.json") is None


@pytest.mark.parametrize("name", ["final.png", "run.webp"])
def test_a_run_without_pictures_has_none_to_download(site: Site, name: str) -> None:
    queued(site.store, "a")
    assert site.read(f"/api/runs/a/{name}")[0] == 404


def test_a_comparison_is_downloaded_and_kept_by_no_browser(site: Site, written: Path) -> None:
    played(site.store, "a")
    played(site.store, "b", experiment=EXPERIMENT.model_copy(update={"seed": 2}))
    address, place = "/api/compare/comparison.json?ids=a,b", site.stream.service.config.catalog
    assert site.read(address) == (503, "text/plain", NOT_READY.encode())
    place.write_bytes(written.read_bytes())
    with site.get(address) as response:
        assert (response.status, response.headers["Cache-Control"]) == (200, "no-store")
        assert response.headers["Content-Disposition"] == 'attachment; filename="leakage-comparison.json"'
        assert [one.seed for one in experiments(response.read().decode())] == [1, 2]
    for path in ("comparison.json", "comparison.json?ids=", "comparison.json?ids=nobody", "nothing.txt?ids=a,b", "../runs/a/final.png"):
        assert site.read(f"/api/compare/{path}")[0] == 404
    place.unlink()


@pytest.mark.parametrize(
    "path",
    [
        "a/nothing.png",
        "a/frames/.png",
        "a/frames/1.jpg",
        "a/frames/%C2%B2.png",
        "a/frames/-1.png",
        "a/frames/../private.png",
        "a/../../../app.py",
        "a/%2e%2e/%2e%2e/app.py",
        "..%2f..%2fapp.py/final.png",
        "a/upload:red",
        "a/final.png%00",
        "a//final.png",
        "a/",
        "a'%20OR%201=1/final.png",
    ],
)
def test_other_names_and_tricks_with_paths_find_nothing(site: Site, path: str) -> None:
    played(site.store, "a")
    site.store.put_file("a", "upload:red", b"somebody's file")
    status, kind, data = site.read(f"/api/runs/{path}")
    assert (status, kind) == (404, "text/plain")
    assert len(data) < 100
