"""Connections that say nothing: a deadline for the request's head, a limit for each address and for all, a log that says it once.

Streamlit starts uvicorn, which waits for ever for the first byte of a connection; and where no descriptor is left, asyncio logs a
traceback for every connection that it cannot accept. So this stands between the event loop and uvicorn's protocol of each connection.
"""

import asyncio
import contextlib
import errno
import functools
import logging
import math
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from leakage.web.proxies import NamedProxies, one_visitor
from leakage.web.request_filter import protecting_headers

HEAD_WITHIN = 10.0  # seconds until the head of the first request must be there
SILENT = 64  # connections of one address that have sent no request yet: beyond, the oldest of them are closed, after READ_WITHIN seconds
READ_WITHIN = 1.0  # of a class that opens a page at once, all have asked by then
SPARE = 256  # descriptors kept for the store, pages' files and processes
ENOUGH = 16384  # descriptors: what this process asks of the system at most
EVERY = 60.0  # seconds between two lines of the log that say the same
NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
HEADERS = protecting_headers()
log = logging.getLogger(__name__)


class ConnectionLimits:
    """Knows every open connection and closes what is too many: of one visitor at most `per_address`, of a named proxy any number."""

    def __init__(self, *, per_address: int, proxies: Iterable[str]) -> None:
        self.per_address, self.proxies = per_address, NamedProxies(nowhere, names=proxies)
        self.open = defaultdict[str, dict[LimitedProtocol, None]](dict)  # in the order in which they came
        self.most = descriptors() - SPARE
        self.said: dict[str, float] = {}
        self.trimming: set[str] = set()  # addresses that are looked at in a moment

    def admits(self, one: "LimitedProtocol") -> bool:
        """Note a new connection; whether it may stay. Where one must go, it is rather one that has said nothing."""
        self.open[one.address][one] = None
        here = [] if self.proxies.trusts((one.address, 0)) else self.alive(one.address)
        silent = [other for other in here if other.silent]
        if len(silent) > SILENT and one.address not in self.trimming:
            self.trimming.add(one.address)
            one.loop.call_later(READ_WITHIN, self.trim, one.address)
        if len(here) > self.per_address:
            self.say("%s has %d connections, as many as one address may have (LEAKAGE_CONNECTIONS)", one.address, self.per_address)
            if silent[0] is one:
                return False
            silent[0].close()
        every = [other for address in list(self.open) for other in self.alive(address)] if self.count() > self.most else []
        if len(every) > self.most:
            self.say("there are %d connections in all, as many as this process has descriptors for", self.most)
            if (oldest := next((other for other in every if other.silent), one)) is one:
                return False
            oldest.close()
        return True

    def trim(self, address: str) -> None:
        """Close the oldest connections of an address that have sent no request, where they are too many."""
        self.trimming.discard(address)
        too_many = [one for one in self.alive(address) if one.silent][:-SILENT]
        if too_many:
            self.say("%s has more than %d connections that have sent no request: the oldest are closed", address, SILENT)
        for one in too_many:
            one.close()

    def count(self) -> int:
        """How many connections are known, some of which may have ended."""
        return sum(map(len, self.open.values()))

    def alive(self, address: str) -> list["LimitedProtocol"]:
        """The open connections of an address, the oldest first; those that became websockets do not say when they end."""
        here = self.open[address]
        for one in [one for one in here if one.transport.is_closing()]:
            del here[one]
        return list(here)

    def forget(self, one: "LimitedProtocol") -> None:
        """A connection has ended."""
        here = self.open[one.address]
        here.pop(one, None)
        if not here:
            self.open.pop(one.address, None)

    def say(self, words: str, *values: object) -> None:
        """Log it, unless the same was said within the minute."""
        now = time.monotonic()
        if now - self.said.get(words, -math.inf) > EVERY:
            self.said[words] = now
            log.warning(words, *values)

    def refuse_quietly(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What the loop does with an error that nobody caught: no traceback for each connection that finds no descriptor."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in NO_DESCRIPTOR:
            self.say("no connection can be taken now: %s", error.strerror)
        else:
            loop.default_exception_handler(context)


class LimitedProtocol(asyncio.Protocol):
    """Stands before uvicorn's protocol until a websocket takes the connection over."""

    def __init__(self, inner: Any, limits: ConnectionLimits, loop: asyncio.AbstractEventLoop) -> None:
        self.inner, self.limits, self.loop = inner, limits, loop
        inner.send_400_response = self.refuse  # uvicorn's own carries none of our headers
        self.address = ""
        self.transport: Any = None
        self.deadline: asyncio.TimerHandle | None = None
        self.refused = False

    @property
    def silent(self) -> bool:
        """Whether no whole head of a request has come yet."""
        return self.inner.cycle is None and self.transport.get_protocol() is self

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.address = one_visitor(str((transport.get_extra_info("peername") or ("",))[0]))
        if not self.limits.admits(self):
            self.refused = True
            transport.abort()
            return
        self.deadline = self.loop.call_later(HEAD_WITHIN, self.close_if_silent)
        self.inner.connection_made(transport)

    def refuse(self, words: str) -> None:
        """What comes is no request: say so, and close."""
        headers = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(words)), "connection": "close", **HEADERS}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.transport.write(f"HTTP/1.1 400 Bad Request\r\n{head}\r\n{words}".encode())
        self.transport.close()

    def close_if_silent(self) -> None:
        """Its time is over."""
        if self.silent:
            self.close()

    def close(self) -> None:
        """Without a word: nobody has asked for one."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if not self.refused:
            self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self.refused else self.inner.eof_received()

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self.limits.forget(self)
        if self.deadline:
            self.deadline.cancel()
        if not self.refused:
            self.inner.connection_lost(error)


async def nowhere(_scope: Any, _receive: Any, _send: Any) -> None:
    """No application: here the proxies are only asked for their names."""


def descriptors() -> int:
    """How many files and sockets this process may have open, raised as far as the system lets it, up to ENOUGH."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(soft, wanted)


@contextlib.contextmanager
def limiting(limits: ConnectionLimits) -> Iterator[None]:
    """Every server that the running loop begins to serve with has these limits: uvicorn does that when the lifespan has begun."""
    loop: Any = asyncio.get_running_loop()
    create_server = loop.create_server

    @functools.wraps(create_server)
    async def create_limited(factory: Callable[[], Any], *given: Any, **named: Any) -> Any:
        if named.get("ssl"):
            named = {"ssl_handshake_timeout": HEAD_WITHIN, **named}
        return await create_server(lambda: LimitedProtocol(factory(), limits, loop), *given, **named)

    loop.create_server = create_limited
    loop.set_exception_handler(limits.refuse_quietly)
    try:
        yield
    finally:
        loop.create_server = create_server
        loop.set_exception_handler(None)
