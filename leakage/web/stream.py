"""Live events for the open pages: one poller per server reads the store for all listeners, beside the event loop."""

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

from leakage.results.comparison import MAX_ARMS
from leakage.runs.broken_home import in_plain_words
from leakage.runs.connections import StoreError
from leakage.runs.events import StateEvent
from leakage.runs.notes import SERVER
from leakage.runs.owners import COOKIE
from leakage.runs.service import Place, Service
from leakage.runs.store import Store
from leakage.web.proxies import one_visitor

T = TypeVar("T")
READERS = ThreadPoolExecutor(2, "readers")
POLL = 0.1  # seconds
ALIVE = 5.0  # seconds between signs of life, to the dispatcher and to quiet listeners
BACKLOG = 500  # events on their way to one page
PAGE = 25  # events read at a time of what was before: a page that does not read keeps them in memory
MAX_LISTENERS = 20  # of one browser
LIVE = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
TOO_MANY_PAGES = f"This browser follows runs on {MAX_LISTENERS} open pages already. Close some of them."
log = logging.getLogger(__name__)


class Listener:
    """One open page: the runs it follows and the events on their way to it, each with its number (None: not to resume after)."""

    def __init__(self, runs: list[str], owner: str) -> None:
        self.runs, self.owner = set(runs), owner
        self.queue = asyncio.Queue[tuple[int | None, str] | None](BACKLOG)  # None: the end

    def tell(self, seq: int | None, text: str) -> None:
        """Put an event on its way. A page that does not read is cut off: it comes back by itself, after the last event that it has read."""
        if self.queue.full():
            self.end()
        else:
            self.queue.put_nowait((seq, text))

    def end(self) -> None:
        """Close it. All that waits is dropped, not a part: what comes back asks for everything after the last event that arrived."""
        while not self.queue.empty():
            self.queue.get_nowait()
        self.queue.put_nowait(None)
        self.runs = set()


class Followed(StreamingResponse):
    """A stream of events; `leave` is called when it ends, also before its first event."""

    def __init__(self, events: AsyncIterator[str], leave: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=LIVE)
        self.leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.leave()


class Places:
    """Where the waiting runs stand. Who asks while the queue is being read shares the next reading, however many they are."""

    def __init__(self, service: Service) -> None:
        self.service, self.lock = service, asyncio.Lock()
        self.begun, self.known = 0.0, dict[str, Place]()

    async def now(self) -> dict[str, Place]:
        """As they are at this moment, by run."""
        asked = time.monotonic()
        async with self.lock:
            if self.begun < asked:
                self.begun = time.monotonic()
                self.known = await reading(self.service.places)
            return self.known


class Stream:
    """Fans the store's events out to the open pages; what is more than reading them is the service's."""

    def __init__(self, service: Service, store: Store) -> None:
        self.service, self.store = service, store
        self.places = Places(service)
        self.listeners: set[Listener] = set()
        self.leads = True  # whether the dispatcher at work is of this server's program; another's should leave when nobody needs it
        self.closing = False  # set when the server begins to leave: it waits for open streams

    async def poll(self) -> None:
        """Until the server leaves: hand new events to those who listen, and tell the dispatcher that this server lives."""
        since, told, trouble = 0, 0.0, ""
        while not self.closing:
            try:
                since, news = await reading(self.look, since, self.wanted())
                for run, seq, text in news:
                    self.tell(run, seq, text)
                if time.time() - told > ALIVE:
                    told = time.time()
                    if self.leads:
                        await reading(self.store.put_note, SERVER, told)  # may wait for a writer
                    await self.tell_places()
                trouble = ""
            except StoreError as error:  # a full disk must not end all streams
                if str(error) != trouble:
                    log.warning("will look again: %s", in_plain_words(error, self.store.path) or error)
                trouble = str(error)
            except Exception:  # nor must anything else
                log.exception("will look again")
            await asyncio.sleep(POLL)
        for listener in self.listeners:
            listener.end()

    def wanted(self) -> set[str]:
        """The runs that somebody follows."""
        return set().union(*(listener.runs for listener in self.listeners))

    def look(self, since: int, wanted: set[str]) -> tuple[int, list[tuple[str, int, str]]]:
        """Events after `since` of these runs, each as (run, number, text for every listener); and after which to look next."""
        if not wanted:
            return self.store.last_seq(), []
        news = [(event["run"], event["seq"], message(event)) for event in self.store.events(wanted, since)]
        return (news[-1][1] if news else since), news

    def tell(self, run: str, seq: int | None, text: str) -> None:
        """Put an event of a run on its way to all who follow it."""
        for listener in self.listeners:
            if run in listener.runs:
                listener.tell(seq, text)

    async def tell_places(self) -> None:
        """Tell every waiting run's listeners where it stands in the queue."""
        if wanted := self.wanted():
            for run, place in (await self.places.now()).items():
                if run in wanted:
                    self.tell(run, None, placed(run, place))

    async def follow(self, request: Request) -> Response:
        """Server-sent events of `ids` after `since`, or after the Last-Event-ID of a listener that comes back."""
        ids = ids_in_address(request)
        since = number(request.headers.get("last-event-id") or request.query_params.get("since", "0"))
        if since is None:
            return PlainTextResponse("since must be a whole number.", 400)
        if not await reading(self.known, ids):
            return PlainTextResponse("No such run; it may have been deleted.", 404)
        owner = request.cookies.get(COOKIE) or one_visitor(request.client.host if request.client else "")
        if sum(listener.owner == owner for listener in self.listeners) >= MAX_LISTENERS:
            return PlainTextResponse(TOO_MANY_PAGES, 429)
        listener = Listener(ids, owner)
        self.listeners.add(listener)  # at once: of a hundred that ask at the same moment all would find room
        leave = functools.partial(self.listeners.discard, listener)
        return Followed(self.events(request, listener, ids, since), leave)

    def known(self, ids: Iterable[str]) -> bool:
        """Whether one of these runs is here. Who follows it looks at it: it makes room last."""
        here = [run for run in ids if self.service.look(run)]
        if here:
            with contextlib.suppress(StoreError):  # on a full disk it is followed all the same
                self.store.view(here)
        return bool(here)

    async def events(self, request: Request, listener: Listener, ids: list[str], since: int) -> AsyncIterator[str]:
        """What was before, page by page; then what comes. The listener listens already: nothing falls between."""
        try:
            while page := await reading(self.page, ids, since):
                for since, text in page:  # noqa: B007 (the last one is where to go on)
                    yield text
                if len(page) < PAGE:
                    break
            places = await self.places.now()
            for run in (run for run in ids if run in places):
                yield placed(run, places[run])
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

    def page(self, ids: list[str], since: int) -> list[tuple[int, str]]:
        """The next PAGE events of these runs after `since`."""
        return [(event["seq"], message(event)) for event in self.store.events(ids, since, most=PAGE)]

    @contextlib.asynccontextmanager
    async def polling(self) -> AsyncIterator[None]:
        """Poll while the server runs."""
        task = asyncio.create_task(self.poll())
        try:
            yield
        finally:
            task.cancel()


async def reading(look: Callable[..., T], *given: Any) -> T:
    """What `look` answers, beside the event loop. By two threads for all: each keeps a connection and memory of its own."""
    return await asyncio.get_running_loop().run_in_executor(READERS, look, *given)


def ids_in_address(request: Request) -> list[str]:
    """The runs in an address."""
    return [run for run in request.query_params.get("ids", "").split(",") if run][:MAX_ARMS]


def number(text: str) -> int | None:
    """A sequence number out of an address, if it is one that the store can hold."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def placed(run: str, place: Place) -> str:
    """That a run waits, and where."""
    return message(StateEvent(run=run, status="queued", position=place.position, wait=place.wait).wire())


def message(event: dict[str, Any]) -> str:
    """One server-sent event; those with a sequence number can be resumed after."""
    head = f"id: {event['seq']}\n" if "seq" in event else ""
    return f"{head}data: {json.dumps(event)}\n\n"
