"""Limits on connections: a deadline for the head of the first request, a limit for each address and for all, and short log lines.

uvicorn, which Streamlit starts, waits without a limit for the first byte of a connection. If no descriptor is left, asyncio logs a
traceback for every connection that it cannot accept. `LimitedProtocol` therefore stands between the event loop and uvicorn's protocol.
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

from leakage.web.proxies import NamedProxies, visitor_at
from leakage.web.request_filter import security_headers

HEAD_WITHIN = 10.0  # seconds in which the head of the first request must arrive
SILENT = 64  # connections of an address that may stay open without a request; of more, the oldest are closed after READ_WITHIN seconds
READ_WITHIN = 1.0  # seconds; long enough for a class that opens a page at the same moment
SPARE = 256  # descriptors that stay free for the store, files of pages and processes
ENOUGH = 16384  # most descriptors that this process requests of the system
EVERY = 60.0  # seconds between two equal lines of the log
NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
HEADERS = security_headers()
log = logging.getLogger(__name__)


class ConnectionLimits:
    """All open connections; an address may have at most `per_address` of them, a reverse proxy in `proxies` any number."""

    def __init__(self, *, per_address: int, proxies: Iterable[str]) -> None:
        self.per_address, self.proxies = per_address, NamedProxies(_no_application, names=proxies)
        self.open = defaultdict[str, dict[LimitedProtocol, None]](dict)  # by address, the oldest first
        self.most = raise_descriptor_limit() - SPARE
        self.logged_at: dict[str, float] = {}
        self.trimming: set[str] = set()  # addresses for which `trim` is scheduled

    def admit(self, new: "LimitedProtocol") -> bool:
        """Add a new connection and return whether it may stay; if there are too many, close the oldest that has sent no request."""
        self.open[new.address][new] = None
        same_address = [] if self.proxies.trusts((new.address, 0)) else self.open_connections(new.address)
        silent = [connection for connection in same_address if connection.silent]
        if len(silent) > SILENT and new.address not in self.trimming:
            self.trimming.add(new.address)
            new.loop.call_later(READ_WITHIN, self.trim, new.address)
        if len(same_address) > self.per_address:
            self.warn("%s has %d connections, as many as one address may have (LEAKAGE_CONNECTIONS)", new.address, self.per_address)
            if silent[0] is new:
                return False
            silent[0].close()
        every = [known for address in list(self.open) for known in self.open_connections(address)] if self.count() > self.most else []
        if len(every) > self.most:
            self.warn("there are %d connections in all, as many as this process has descriptors for", self.most)
            if (oldest := next((connection for connection in every if connection.silent), new)) is new:
                return False
            oldest.close()
        return True

    def trim(self, address: str) -> None:
        """Close the oldest connections of an address that have sent no request, except SILENT of them."""
        self.trimming.discard(address)
        too_many = [connection for connection in self.open_connections(address) if connection.silent][:-SILENT]
        if too_many:
            self.warn("%s has more than %d connections that have sent no request: the oldest are closed", address, SILENT)
        for connection in too_many:
            connection.close()

    def count(self) -> int:
        """Return the number of connections of all addresses; some of them may have ended."""
        return sum(map(len, self.open.values()))

    def open_connections(self, address: str) -> list["LimitedProtocol"]:
        """Return the open connections of an address, the oldest first; remove closed websockets, of which `remove` is not told."""
        connections = self.open[address]
        for ended in [connection for connection in connections if connection.transport.is_closing()]:
            del connections[ended]
        return list(connections)

    def remove(self, connection: "LimitedProtocol") -> None:
        """Remove a connection that has ended."""
        connections = self.open[connection.address]
        connections.pop(connection, None)
        if not connections:
            self.open.pop(connection.address, None)

    def warn(self, message: str, *values: object) -> None:
        """Log a warning, unless the same message was logged within the last minute."""
        now = time.monotonic()
        if now - self.logged_at.get(message, -math.inf) > EVERY:
            self.logged_at[message] = now
            log.warning(message, *values)

    def handle_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an exception of the event loop; if no descriptor is left for a new connection, only a line a minute without a traceback."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in NO_DESCRIPTOR:
            self.warn("no connection can be taken now: %s", error.strerror)
        else:
            loop.default_exception_handler(context)


class LimitedProtocol(asyncio.Protocol):
    """The protocol of a connection: it applies the limits and forwards to uvicorn's protocol, until a websocket replaces it."""

    def __init__(self, inner: Any, limits: ConnectionLimits, loop: asyncio.AbstractEventLoop) -> None:
        self.inner, self.limits, self.loop = inner, limits, loop
        inner.send_400_response = self.refuse  # uvicorn's response has no security headers
        self.address = ""
        self.transport: Any = None
        self.deadline: asyncio.TimerHandle | None = None
        self.refused = False

    @property
    def silent(self) -> bool:
        """Whether the connection has not yet sent the complete head of a request."""
        return self.inner.cycle is None and self.transport.get_protocol() is self

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.address = visitor_at(str((transport.get_extra_info("peername") or ("",))[0]))
        if not self.limits.admit(self):
            self.refused = True
            transport.abort()
            return
        self.deadline = self.loop.call_later(HEAD_WITHIN, self.close_if_silent)
        self.inner.connection_made(transport)

    def refuse(self, text: str) -> None:
        """Respond with status 400 and a text to data that is no HTTP request, and close the connection."""
        headers = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(text)), "connection": "close", **HEADERS}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.transport.write(f"HTTP/1.1 400 Bad Request\r\n{head}\r\n{text}".encode())
        self.transport.close()

    def close_if_silent(self) -> None:
        """Close the connection if it has not sent the complete head of a request."""
        if self.silent:
            self.close()

    def close(self) -> None:
        """Close the connection without a response."""
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
        self.limits.remove(self)
        if self.deadline:
            self.deadline.cancel()
        if not self.refused:
            self.inner.connection_lost(error)


async def _no_application(_scope: Any, _receive: Any, _send: Any) -> None:
    """Do nothing; NamedProxies needs an application, but here only its method `trusts` is used."""


def raise_descriptor_limit() -> int:
    """Raise the number of files and sockets that this process may have open, to ENOUGH if the system allows it, and return the number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(soft, wanted)


@contextlib.contextmanager
def limit_connections(limits: ConnectionLimits) -> Iterator[None]:
    """Apply limits to every server that the running event loop creates while the context is open; uvicorn creates its server then."""
    loop: Any = asyncio.get_running_loop()
    create_server = loop.create_server

    @functools.wraps(create_server)
    async def create_limited(factory: Callable[[], Any], *arguments: Any, **options: Any) -> Any:
        if options.get("ssl"):
            options = {"ssl_handshake_timeout": HEAD_WITHIN, **options}
        return await create_server(lambda: LimitedProtocol(factory(), limits, loop), *arguments, **options)

    loop.create_server = create_limited
    loop.set_exception_handler(limits.handle_exception)
    try:
        yield
    finally:
        loop.create_server = create_server
        loop.set_exception_handler(None)
