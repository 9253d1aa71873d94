"""Our GET routes: live events, pictures and downloads of a run. One poller per server reads the store for all listeners."""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from leakage.results import answer_file, comparison_exports, exports
from leakage.results.comparison import MAX_ARMS
from leakage.results.scripts import ROUTE, scripts
from leakage.runs.connections import StoreError
from leakage.runs.events import StateEvent
from leakage.runs.notes import SERVER
from leakage.runs.service import Service
from leakage.runs.store import Store
from leakage.spec.experiment import SpecError

POLL = 0.1  # seconds
ALIVE = 5.0  # seconds between signs of life, to the dispatcher and to quiet listeners
FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
UNKEPT = {"Cache-Control": "no-store"}
LIVE = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
log = logging.getLogger(__name__)


class Listener:
    """One open page: the runs it follows and the events on their way to it."""

    def __init__(self, runs: list[str]) -> None:
        self.runs, self.queue = set(runs), asyncio.Queue[dict[str, Any] | None]()  # None: the end


class Stream:
    """Fans the store's events out to the open pages; what is more than reading them is the service's."""

    def __init__(self, service: Service, store: Store) -> None:
        self.service, self.store = service, store
        self.listeners: set[Listener] = set()
        self.leads = True  # whether the dispatcher at work is of this server's program; another's should leave when nobody needs it
        self.closing = False  # set when the server begins to leave: it waits for open streams

    def routes(self, base: str = "") -> list[Route]:
        """All GET routes, below a prefix such as `/gle`."""
        return [
            Route(f"{base}/api/runs/stream", self.stream),
            Route(f"{base}/api/runs/{{run}}/{{name:path}}", self.file),
            Route(f"{base}/api/compare/{{name}}", self.comparison),
            Route(f"{base}/api/ask/{{name}}", self.answer),
            Route(f"{base}/api/plotly.min.js", self.plotly),
            Route(f"{base}{ROUTE}/{{version}}/{{name:path}}", self.script),
        ]

    async def poll(self) -> None:
        """Until the server leaves: hand new events to those who listen, and tell the dispatcher that this server lives."""
        since, told = 0, 0.0
        while not self.closing:
            try:
                since = self.hand_out(since)
                if time.time() - told > ALIVE:
                    told = time.time()
                    if self.leads:
                        await asyncio.to_thread(self.store.put_note, SERVER, told)  # may wait for a writer
                    self.tell_places()
            except StoreError as error:  # a full disk must not end all streams
                log.warning("will look again: %s", error)
            await asyncio.sleep(POLL)
        for listener in self.listeners:
            listener.queue.put_nowait(None)

    def hand_out(self, since: int) -> int:
        """Events after `since` to those who listen; answers up to where."""
        if not self.listeners:
            return self.store.last_seq()
        wanted = set().union(*(listener.runs for listener in self.listeners))
        for event in self.store.events(wanted, since):
            since = event["seq"]
            for listener in self.listeners:
                if event["run"] in listener.runs:
                    listener.queue.put_nowait(event)
        return since

    def tell_places(self) -> None:
        """Tell every waiting run's listeners where it stands in the queue."""
        waiting = {run.id for run in self.store.queue()}
        for listener in self.listeners:
            for run in listener.runs & waiting:
                listener.queue.put_nowait(self.place(run))

    def place(self, run: str) -> dict[str, Any]:
        place = self.service.place(run)
        return StateEvent(run=run, status="queued", position=place.position, wait=place.wait).wire()

    async def stream(self, request: Request) -> Response:
        """Server-sent events of `ids` after `since`, or after the Last-Event-ID of a listener that comes back."""
        ids = ids_in_address(request)
        since = number(request.headers.get("last-event-id") or request.query_params.get("since", "0"))
        if since is None:
            return PlainTextResponse("since must be a whole number.", 400)
        if not ids or not any(self.service.look(run) for run in ids):
            return PlainTextResponse("No such run; it may have been deleted.", 404)
        return StreamingResponse(self.events(request, ids, since), media_type="text/event-stream", headers=LIVE)

    async def events(self, request: Request, ids: list[str], since: int) -> AsyncIterator[str]:
        listener = Listener(ids)
        self.listeners.add(listener)  # first listen, then read what was before: nothing falls between
        try:
            for event in await asyncio.to_thread(self.store.events, ids, since):  # of a long run, thousands
                since = event["seq"]
                yield message(event)
            for run in self.store.queue():
                if run.id in listener.runs:
                    yield message(self.place(run.id))
            while not self.closing and not await request.is_disconnected():
                try:
                    news = await asyncio.wait_for(listener.queue.get(), ALIVE)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if news is None:
                    break
                if news.get("seq", since + 1) > since:
                    since = news.get("seq", since)
                    yield message(news)
        finally:
            self.listeners.discard(listener)

    async def file(self, request: Request) -> Response:
        """The private pictures, one frame, or a download of a run."""
        run, name = request.path_params["run"], request.path_params["name"]
        store = self.store
        if name == "private.png":
            return self.picture(run, await asyncio.to_thread(self.service.private, run))
        if name.startswith("frames/") and name.endswith(".png") and (seq := number(name[7:-4])) is not None:
            return self.picture(run, store.frame(run, seq))
        export = await asyncio.to_thread(exports.make, store, run, name, self.service.catalog())
        if export is None:
            return PlainTextResponse("Nothing to download: no such run, or it has no pictures yet.", 404)
        return download(export, f"leakage-{run[:6]}-{name}")

    async def comparison(self, request: Request) -> Response:
        """A download of the runs `ids` together; it changes while they run, and may show uploads, so no browser keeps it."""
        name = request.path_params["name"]
        try:
            known = self.service.ready()
        except SpecError as error:
            return PlainTextResponse(str(error), 503)
        export = await asyncio.to_thread(comparison_exports.make, self.store, ids_in_address(request), name, known)
        if export is None:
            return PlainTextResponse("Nothing to download: no such runs, or they have no pictures yet.", 404)
        return download(export, f"leakage-{name}", UNKEPT)

    async def answer(self, request: Request) -> Response:
        """An answer of the page Ask: a page to print, which opens in the browser, or a file that asks the same again."""
        name = request.path_params["name"]
        try:
            made = await asyncio.to_thread(
                answer_file.make, self.store, ids_in_address(request), name, self.service.ready(), dict(request.query_params)
            )
        except SpecError as error:
            return PlainTextResponse(str(error), 400)
        if made is None:
            return PlainTextResponse("Nothing to show: no such runs, or they have no pictures yet.", 404)
        return Response(made.data, media_type=made.type, headers=UNKEPT) if name.endswith(".html") else download(made, name, UNKEPT)

    def picture(self, run: str, png: bytes | None) -> Response:
        """A picture that never changes. Uploads leave no trace in the browser's cache: it may be a shared computer."""
        found = self.service.look(run)
        if png is None or found is None:
            return PlainTextResponse("No such picture.", 404)
        return Response(png, media_type="image/png", headers=FOREVER if found.shareable else UNKEPT)

    async def plotly(self, _request: Request) -> Response:
        """plotly.js from the installed package: no content delivery network is asked."""
        import plotly

        path = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
        return FileResponse(path, media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})

    async def script(self, request: Request) -> Response:
        """A module of the components. Its address names its content, so a browser asks once."""
        found = scripts().find(request.path_params["version"], request.path_params["name"])
        if found is None:
            return PlainTextResponse("No such script in this version; reload the page.", 404, headers=UNKEPT)
        return Response(found, media_type="text/javascript", headers={"Cache-Control": "public, max-age=31536000, immutable"})

    @contextlib.asynccontextmanager
    async def polling(self) -> AsyncIterator[None]:
        """Poll while the server runs."""
        task = asyncio.create_task(self.poll())
        try:
            yield
        finally:
            task.cancel()


def ids_in_address(request: Request) -> list[str]:
    """The runs in an address."""
    return [run for run in request.query_params.get("ids", "").split(",") if run][:MAX_ARMS]


def download(export: exports.Made, name: str, headers: Mapping[str, str] | None = None) -> Response:
    """A file that the browser saves instead of showing."""
    return Response(
        export.data, media_type=export.type, headers={**(headers or {}), "Content-Disposition": f'attachment; filename="{name}"'}
    )


def number(text: str) -> int | None:
    """A sequence number out of an address, if it is one that the store can hold."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def message(event: dict[str, Any]) -> str:
    """One server-sent event; those with a sequence number can be resumed after."""
    head = f"id: {event['seq']}\n" if "seq" in event else ""
    return f"{head}data: {json.dumps(event)}\n\n"
