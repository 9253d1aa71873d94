"""The web server beside Streamlit's pages: all routes, the middleware, and what runs as long as the server does."""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from functools import cache
from types import FrameType
from typing import Any

from starlette.formparsers import MultiPartParser
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from leakage.data.lpips_download import lpips_download
from leakage.learn.restored import restore_all
from leakage.runs.broken_home import in_plain_words
from leakage.runs.connections import StoreError
from leakage.runs.service import Service, service, store
from leakage.runs.upload_quota import QUOTA
from leakage.spec.experiment import SpecError
from leakage.web.class_key import ClassKey, join_path
from leakage.web.class_routes import ClassRoutes
from leakage.web.connection_limits import ConnectionLimits, limit_connections
from leakage.web.dispatcher_watch import DispatcherWatch
from leakage.web.guests import GuestGuard
from leakage.web.hosts import Hosts
from leakage.web.learn_routes import LearnRoutes
from leakage.web.owner_cookie import OwnerCookie
from leakage.web.page_sessions import OncePerMinute, PageSessions
from leakage.web.paper_routes import PaperRoutes
from leakage.web.password import PasswordGate
from leakage.web.proxies import accept_proxies
from leakage.web.request_filter import AGENT, RequestFilter
from leakage.web.routes import Routes
from leakage.web.stream import Stream
from leakage.web.streamlit_page import page_routes
from leakage.web.update_routes import UpdateRoutes
from leakage.web.upload_gate import UploadGate

GRACE = 4.0  # most seconds between the first signal to stop and the end of the process
SOCKETS = "streamlit.web.server.starlette.starlette_websocket"  # the logger of Streamlit's websockets
IN_MEMORY = 16 * 2**20  # bytes of an upload that stay in memory; a larger upload is refused, but its bytes would go to the disk
TROUBLE = "The runs of this server cannot be read now. Try again later. The server's log says why: tell the person who runs it."
log = logging.getLogger(__name__)


def routes(base: str = "") -> list[Route]:
    """Return all routes, below a prefix such as `/gle`."""
    files = Routes(service(), store(), _stream())
    return [
        *page_routes(base),
        *files.below(base),
        *ClassRoutes(service(), _stream(), files, base).routes(),
        *UpdateRoutes(service()).below(base),
        *LearnRoutes(service(), base).routes(),
        *PaperRoutes(service(), base).routes(),
    ]


def middleware(base: str = "", *, agent: bool = False) -> list[Middleware]:
    """Return the middleware in the order in which a request passes it; also limit trusted proxies, log lines, and uploads in memory.

    Args:
        base: The prefix of all addresses, such as `/gle`, or empty.
        agent: Whether Streamlit's agent interface stays open.

    Raises:
        ValueError: If LEAKAGE_ALLOWED_HOSTS has an entry that is no name, or LEAKAGE_PROXIES an entry that is no address or network.
    """
    config = service().config
    accept_proxies(config.proxies)
    logging.getLogger(SOCKETS).addFilter(OncePerMinute())  # malformed requests cannot fill the log
    MultiPartParser.spool_max_size = IN_MEMORY
    layers = [
        Middleware(RequestFilter, hosts=Hosts(config.allowed_hosts), enabled_routes=(AGENT,) if agent else ()),
        Middleware(OwnerCookie),
        Middleware(PageSessions),
        Middleware(UploadGate, quota=QUOTA, base=base),
    ]
    key = ClassKey(config) if config.password else None
    if config.guests:
        layers.insert(1, Middleware(GuestGuard, key=key, base=base))
    if key:
        layers.insert(1, Middleware(PasswordGate, key=key, base=base))
        log.warning("The address %s%s on this server needs no password.", base, join_path(config))
    return layers


async def store_trouble(_request: Request, error: Exception) -> Response:
    """Return the response of a route if the store cannot be read or written, and log the reason."""
    log.warning("a request failed: %s", in_plain_words(error, store().path) or error)
    return PlainTextResponse(TROUBLE, 503)


@contextlib.asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[dict[str, Any]]:
    """Run the server's tasks while the context is open: poll the store, keep a dispatcher running, and limit new connections.

    At the start, restore the recorded runs and begin the download of the weights that LPIPS needs.
    """
    try:
        restore_all(store())
    except (SpecError, StoreError) as error:
        log.warning("the Lab starts without its recorded run: %s", in_plain_words(error, store().path) or error)
    lpips_download().begin()
    watch = asyncio.create_task(dispatcher_watch().keep())
    limits = ConnectionLimits(per_address=service().config.connections, proxies=service().config.proxies)
    async with _stream().polling():
        with end_streams_on_signal(_stream()), limit_connections(limits):
            yield {}
    watch.cancel()


@contextlib.contextmanager
def end_streams_on_signal(stream: Stream) -> Iterator[None]:
    """End the open event streams at the first SIGINT or SIGTERM, because uvicorn waits for them before it ends the lifespan.

    uvicorn also waits for clients that do not read their response. The process therefore ends after GRACE seconds in any case; nothing is
    lost, because the store is always complete.
    """
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}

    def stop(number: int, frame: FrameType | None) -> None:
        if not stream.closing:
            stream.closing = True
            watchdog = threading.Timer(GRACE, end_process)
            watchdog.daemon = True
            watchdog.start()
        before[signal.Signals(number)](number, frame)

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_process() -> None:
    """End this process at once, without waiting for open connections."""
    log.warning("a client has not read its response: the server ends all the same")
    os._exit(0)


@cache
def dispatcher_watch() -> DispatcherWatch:
    """Return the watch of this process, which keeps a dispatcher of runs running."""
    return DispatcherWatch(service().config, _stream())


_streams: dict[Service, Stream] = {}


def _stream() -> Stream:
    return _streams.setdefault(service(), Stream(service(), store()))
