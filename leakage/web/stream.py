"""Live events for the open pages, as server-sent events: a single task polls the store for all pages, in threads beside the event loop."""

import asyncio
import contextlib
import functools
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from leakage.results.comparison import MAX_RUNS
from leakage.runs.broken_home import in_plain_words
from leakage.runs.connections import StoreError
from leakage.runs.events import StateEvent
from leakage.runs.notes import SERVER
from leakage.runs.owners import COOKIE
from leakage.runs.service import Place, Service
from leakage.runs.store import Store
from leakage.web.proxies import visitor_of

T = TypeVar("T")
READERS = ThreadPoolExecutor(2, "readers")
POLL = 0.1  # seconds
ALIVE = 5.0  # seconds between signs of life, to the dispatcher and to pages without events
BACKLOG = 500  # most events that wait for a page to read them
PAGE = 25  # past events that are read at a time; they stay in memory until the page has read them
MAX_LISTENERS = 20  # of a browser
LIVE = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
TOO_MANY_PAGES = f"This browser follows runs on {MAX_LISTENERS} open pages already. Close some of them."
log = logging.getLogger(__name__)


class Listener:
    """An open page: the runs that it follows, and a queue of events, each with its sequence number (None: no point to resume after)."""

    def __init__(self, runs: list[str], owner: str) -> None:
        self.runs, self.owner = set(runs), owner
        self.queue = asyncio.Queue[tuple[int | None, str] | None](BACKLOG)  # None ends the stream

    def put(self, seq: int | None, text: str) -> None:
        """Add an event to the queue. If the queue is full, close the stream: the browser then resumes after the last event it read."""
        if self.queue.full():
            self.end()
        else:
            self.queue.put_nowait((seq, text))

    def end(self) -> None:
        """Close the stream and drop all waiting events, so that no part of them is skipped when the browser resumes."""
        while not self.queue.empty():
            self.queue.get_nowait()
        self.queue.put_nowait(None)
        self.runs = set()


class EventStreamResponse(StreamingResponse):
    """A response of server-sent events; `leave` is called when it ends, also if it ends before the first event."""

    def __init__(self, events: AsyncIterator[str], leave: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=LIVE)
        self.leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.leave()


class QueuePositions:
    """The positions of the waiting runs; requests that arrive while the queue is being read share the next read."""

    def __init__(self, service: Service) -> None:
        self.service, self.lock = service, asyncio.Lock()
        self.read_at, self.latest = 0.0, dict[str, Place]()

    async def now(self) -> dict[str, Place]:
        """Return the position of every waiting run, by run id, as read after this call."""
        asked_at = time.monotonic()
        async with self.lock:
            if self.read_at < asked_at:
                self.read_at = time.monotonic()
                self.latest = await read_in_thread(self.service.places)
            return self.latest


class Stream:
    """Sends the events of the store to the open pages that follow their runs."""

    dispatcher_is_ours: bool
    """Whether the running dispatcher belongs to this server's version of the program; if so, `poll` sends it signs of life."""
    closing: bool
    """Whether the server is about to end; all streams end then, because the server waits for them."""
    at_end: list[Callable[[], None]]
    """Called when the server is about to end."""

    def __init__(self, service: Service, store: Store) -> None:
        self.service, self.store = service, store
        self.positions = QueuePositions(service)
        self.listeners: set[Listener] = set()
        self.dispatcher_is_ours, self.closing = True, False
        self.at_end = list[Callable[[], None]]()

    async def poll(self) -> None:
        """Send new events to the listeners and signs of life to the dispatcher, until the server ends; then end all streams."""
        since, alive_at, trouble = 0, 0.0, ""
        while not self.closing:
            try:
                since, news = await read_in_thread(self.read_news, since, self.followed_runs())
                for run, seq, text in news:
                    self.send(run, seq, text)
                if time.time() - alive_at > ALIVE:
                    alive_at = time.time()
                    if self.dispatcher_is_ours:
                        await read_in_thread(self.store.put_note, SERVER, alive_at)  # may wait for a writer
                    await self.send_positions()
                trouble = ""
            except StoreError as error:  # a full disk must not end all streams
                if str(error) != trouble:
                    log.warning("will read events again: %s", in_plain_words(error, self.store.path) or error)
                trouble = str(error)
            except Exception:  # no other error may end them either
                log.exception("will read events again")
            await asyncio.sleep(POLL)
        for listener in self.listeners:
            listener.end()
        for call in self.at_end:
            call()

    def followed_runs(self) -> set[str]:
        """Return the ids of the runs that at least one open page follows."""
        return set().union(*(listener.runs for listener in self.listeners))

    def read_news(self, since: int, runs: set[str]) -> tuple[int, list[tuple[str, int, str]]]:
        """Read the events of `runs` after the sequence number `since`.

        Returns:
            The sequence number to continue after, and for each event its run, its sequence number and its text for the listeners.
        """
        if not runs:
            return self.store.last_seq(), []
        news = [(event["run"], event["seq"], message(event)) for event in self.store.events(runs, since)]
        return (news[-1][1] if news else since), news

    def send(self, run: str, seq: int | None, text: str) -> None:
        """Put an event of a run into the queue of every page that follows this run."""
        for listener in self.listeners:
            if run in listener.runs:
                listener.put(seq, text)

    async def send_positions(self) -> None:
        """Send the queue position of every waiting run to the pages that follow it."""
        if runs := self.followed_runs():
            for run, place in (await self.positions.now()).items():
                if run in runs:
                    self.send(run, None, queued_message(run, place))

    async def follow(self, request: Request) -> Response:
        """Respond with the events of the runs `ids` in the address."""
        return await self.listen(request, ids_in_address(request), request.cookies.get(COOKIE) or visitor_of(request))

    async def listen(self, request: Request, ids: list[str], owner: str) -> Response:
        """Respond with the events of runs after the sequence number `since` of the address, or after Last-Event-ID if the browser resumes.

        Args:
            request: The request.
            ids: The runs.
            owner: A name of the listener, which may have MAX_LISTENERS streams.
        """
        since = parse_seq(request.headers.get("last-event-id") or request.query_params.get("since", "0"))
        if since is None:
            return PlainTextResponse("since must be a whole number.", 400)
        if not await read_in_thread(self.mark_viewed, ids):
            return PlainTextResponse("No such run; it may have been deleted.", 404)
        if sum(listener.owner == owner for listener in self.listeners) >= MAX_LISTENERS:
            return PlainTextResponse(TOO_MANY_PAGES, 429)
        listener = Listener(ids, owner)
        self.listeners.add(listener)  # before the first await, so that simultaneous requests cannot exceed the limit
        leave = functools.partial(self.listeners.discard, listener)
        return EventStreamResponse(self.events(request, listener, ids, since), leave)

    def mark_viewed(self, ids: Iterable[str]) -> bool:
        """Return whether at least one of the runs exists, and note that they are viewed now: housekeeping deletes such runs last."""
        existing = [run for run in ids if self.service.look(run)]
        if existing:
            with contextlib.suppress(StoreError):  # runs can be followed even if the disk is full
                self.store.view(existing)
        return bool(existing)

    async def events(self, request: Request, listener: Listener, ids: list[str], since: int) -> AsyncIterator[str]:
        """Yield the past events of the runs after `since`, then new ones; the listener already collects new events, so none is lost."""
        try:
            while page := await read_in_thread(self.read_page, ids, since):
                for since, text in page:  # noqa: B007 (the number of the last event is where to continue)
                    yield text
                if len(page) < PAGE:
                    break
            places = await self.positions.now()
            for run in (run for run in ids if run in places):
                yield queued_message(run, places[run])
            while not self.closing and not await request.is_disconnected():
                try:
                    news = await asyncio.wait_for(listener.queue.get(), ALIVE)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if news is None:
                    break
                seq, text = news
                if seq is None or seq > since:
                    since = seq or since
                    yield text
        finally:
            self.listeners.discard(listener)

    def read_page(self, ids: list[str], since: int) -> list[tuple[int, str]]:
        """Read the next PAGE events of the runs after `since`, each as its sequence number and its text."""
        return [(event["seq"], message(event)) for event in self.store.events(ids, since, most=PAGE)]

    @contextlib.asynccontextmanager
    async def polling(self) -> AsyncIterator[None]:
        """Run `poll` in a task while the context is open."""
        task = asyncio.create_task(self.poll())
        try:
            yield
        finally:
            task.cancel()


async def read_in_thread(read: Callable[..., T], *arguments: Any) -> T:
    """Call `read` in a thread beside the event loop, and return its result.

    Two threads serve all requests, because each thread needs a database connection and memory.
    """
    return await asyncio.get_running_loop().run_in_executor(READERS, read, *arguments)


def ids_in_address(request: Request) -> list[str]:
    """Return the run ids in the query parameter `ids` of the request's address, only the first MAX_RUNS."""
    return [run for run in request.query_params.get("ids", "").split(",") if run][:MAX_RUNS]


def parse_seq(text: str) -> int | None:
    """Return the sequence number of an event in a text from an address; None if it is no whole number of at most 18 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def queued_message(run: str, place: Place) -> str:
    """Return a server-sent event which says that a run is queued, at which position, and for how long."""
    return message(StateEvent(run=run, status="queued", position=place.position, wait=place.wait).wire())


def message(event: dict[str, Any]) -> str:
    """Return an event as the text of a server-sent event; the browser can resume after an event with a sequence number."""
    head = f"id: {event['seq']}\n" if "seq" in event else ""
    return f"{head}data: {json.dumps(event)}\n\n"
