"""What the web server does beside serving pages: our routes, the recorded run, and a dispatcher that is kept alive."""

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
from leakage.web.connection_limits import ConnectionLimits, limiting
from leakage.web.dispatcher_watch import DispatcherWatch
from leakage.web.hosts import Hosts
from leakage.web.learn_routes import Learning
from leakage.web.owner_cookie import OwnerCookie
from leakage.web.page_sessions import PageSessions, quiet
from leakage.web.password import PasswordGate
from leakage.web.proxies import believe_only
from leakage.web.request_filter import AGENT, RequestFilter
from leakage.web.routes import Routes
from leakage.web.stream import Stream
from leakage.web.streamlit_page import page_routes
from leakage.web.upload_gate import UploadGate

GRACE = 4.0  # seconds that a server takes at most to leave; event streams that are read are ended at once
SOCKETS = "streamlit.web.server.starlette.starlette_websocket"  # the logger of its live connections
IN_MEMORY = 16 * 2**20  # bytes of an upload: larger ones, which are refused, would be written to the disk as they come
TROUBLE = "The runs of this server cannot be read now. Tell its owner, whose log says why, and try again later."
log = logging.getLogger(__name__)


def routes(base: str = "") -> list[Route]:
    """Our GET routes, below a prefix such as `/gle`."""
    return [*page_routes(base), *Routes(service(), store(), _stream()).below(base), *Learning(service(), base).routes()]


def middleware(base: str = "", *, agent: bool = False) -> list[Middleware]:
    """What every request passes, in this order; `agent`: Streamlit's agent interface is answered.

    Raises ValueError where LEAKAGE_ALLOWED_HOSTS or LEAKAGE_PROXIES names nothing.
    """
    config = service().config
    believe_only(config.proxies)
    quiet(SOCKETS)
    MultiPartParser.spool_max_size = IN_MEMORY
    stack = [
        Middleware(RequestFilter, hosts=Hosts(config.allowed_hosts), switched_on=(AGENT,) if agent else ()),
        Middleware(OwnerCookie),
        Middleware(PageSessions),
        Middleware(UploadGate, quota=QUOTA, base=base),
    ]
    if config.password:
        stack.insert(1, Middleware(PasswordGate, key=ClassKey(config), base=base))
        log.warning("Whoever opens %s%s on this server comes in without the password.", base, join_path(config))
    return stack


async def store_trouble(_request: Request, error: Exception) -> Response:
    """What a route answers where the store cannot be read or written; the log says more of it."""
    told = in_plain_words(error, store().path)
    log.warning("a request was not answered: %s", told or error)
    return PlainTextResponse(TROUBLE, 503)


@contextlib.asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[dict[str, Any]]:
    """While the server runs: poll the store for the open pages, keep a dispatcher at work, and fetch what LPIPS needs, once."""
    try:
        restore_all(store())
    except (SpecError, StoreError) as error:
        log.warning("the Lab opens without its recorded run: %s", in_plain_words(error, store().path) or error)
    lpips_download().begin()
    watch = asyncio.create_task(dispatcher_watch().keep())
    limits = ConnectionLimits(per_address=service().config.connections, proxies=service().config.proxies)
    async with _stream().polling():
        with farewell(_stream()), limiting(limits):
            yield {}
    watch.cancel()


@contextlib.contextmanager
def farewell(stream: Stream) -> Iterator[None]:
    """End the open event streams at the first signal to leave: uvicorn waits for them, for ever, before it ends the lifespan.

    It waits as long for what somebody does not read: after GRACE the process ends all the same. Nothing is lost, the store is complete.
    """
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}

    def leave(number: int, frame: FrameType | None) -> None:
        if not stream.closing:
            stream.closing = True
            watchdog = threading.Timer(GRACE, end_process)
            watchdog.daemon = True
            watchdog.start()
        before[signal.Signals(number)](number, frame)

    for number in before:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_process() -> None:
    """Leave without waiting for anybody."""
    log.warning("somebody has not read what was sent: leaving without them")
    os._exit(0)


@cache
def dispatcher_watch() -> DispatcherWatch:
    """The one of this process."""
    return DispatcherWatch(service().config, _stream())


_streams: dict[Service, Stream] = {}


def _stream() -> Stream:
    return _streams.setdefault(service(), Stream(service(), store()))
