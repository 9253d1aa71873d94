"""What the web server does beside serving pages: our routes, the recorded run, and a dispatcher that is kept alive."""

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from types import FrameType
from typing import Any

from starlette.middleware import Middleware
from starlette.routing import Route

from leakage.learn.restored import restore_all
from leakage.runs.service import Service, service, store
from leakage.settings import ROOT, Settings
from leakage.spec import catalog
from leakage.spec.experiment import SpecError
from leakage.web.class_key import ClassKey, join_path
from leakage.web.hosts import Hosts
from leakage.web.learn_routes import Learning
from leakage.web.owner_cookie import OwnerCookie
from leakage.web.password import PasswordGate
from leakage.web.request_filter import RequestFilter
from leakage.web.routes import Stream

WATCH = 2.0  # seconds between looks at the dispatcher
log = logging.getLogger(__name__)


def routes(base: str = "") -> list[Route]:
    """Our GET routes, below a prefix such as `/gle`."""
    return [*_stream().routes(base), *Learning(service(), base).routes()]


def middleware(base: str = "") -> list[Middleware]:
    """What every request passes, in this order. Raises ValueError where LEAKAGE_ALLOWED_HOSTS holds something else than names."""
    config = service().config
    stack = [Middleware(RequestFilter, hosts=Hosts(config.allowed_hosts)), Middleware(OwnerCookie)]
    if config.password:
        stack.insert(1, Middleware(PasswordGate, key=ClassKey(config), base=base))
        log.warning("Whoever opens %s%s on this server comes in without the password.", base, join_path(config))
    return stack


@contextlib.asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[dict[str, Any]]:
    """While the server runs: poll the store for the open pages, and keep a dispatcher at work."""
    try:
        restore_all(store())
    except SpecError as error:
        log.warning("the Lab opens without its recorded run: %s", error)
    watch = asyncio.create_task(keep_dispatcher(service().config))
    async with _stream().polling():
        with farewell(_stream()):
            yield {}
    watch.cancel()


@contextlib.contextmanager
def farewell(stream: Stream) -> Iterator[None]:
    """End the open event streams at the first signal to leave: uvicorn waits for them, for ever, before it ends the lifespan."""
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}

    def leave(number: int, frame: FrameType | None) -> None:
        stream.closing = True
        before[signal.Signals(number)](number, frame)

    for number in before:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def keep_dispatcher(config: Settings) -> None:
    """Start a dispatcher when there is none; ask one that knows other plug-ins than those on disk to leave."""
    while True:
        holder = lock_holder(config)
        if holder is None:
            try:
                start_dispatcher(config)
            except OSError as error:  # a full disk, no more processes: better times may come
                log.warning("no dispatcher can be started now: %s", error)
        elif holder[1] != catalog.version():
            with contextlib.suppress(ProcessLookupError):
                os.kill(holder[0], signal.SIGTERM)
            await asyncio.sleep(0.5)
            continue
        await asyncio.sleep(WATCH)


def lock_holder(config: Settings) -> tuple[int, str] | None:
    """Process id and plug-in version of the dispatcher at work, or None."""
    try:
        with (config.home / "dispatch.lock").open("r") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                words = lock.read().split()
                return (int(words[0]), words[1]) if len(words) == 2 else (0, catalog.version())
    except FileNotFoundError:
        pass
    return None


def start_dispatcher(config: Settings) -> None:
    """A process of its own, in a session of its own: it outlives this server."""
    config.home.mkdir(parents=True, exist_ok=True)
    with config.log_file("dispatch.log").open("ab") as output:
        subprocess.Popen(
            [sys.executable, "-m", "leakage.workers.dispatcher"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


_streams: dict[Service, Stream] = {}


def _stream() -> Stream:
    return _streams.setdefault(service(), Stream(service(), store()))
