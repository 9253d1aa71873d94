"""The websockets of open pages: a limit for each browser, and short log lines for malformed messages."""

import logging
import time
from collections import defaultdict

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leakage.runs.owners import COOKIE
from leakage.web.proxies import visitor_of

MOST = 40  # open pages of a browser; each needs memory and descriptors
TEXT_IS_NOT_READ = 1003  # the status code with which a websocket is closed: unsupported data (RFC 6455, section 7.4.1)
EVERY = 60.0  # seconds between two equal lines of the log
TOO_MANY = f"This browser has {MOST} pages of this server open already. Close some of them."


class PageSessions:
    """Middleware that limits the open websockets of each browser; browsers without an owner cookie count together by address."""

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.open = app, defaultdict[str, int](int)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        owner = request.cookies.get(COOKIE) or visitor_of(request)
        if self.open.get(owner, 0) >= MOST:
            await PlainTextResponse(TOO_MANY, 429)(scope, receive, send)
            return

        async def receive_binary() -> Message:
            """Receive a message; close the connection if it is text, because pages send binary messages only."""
            message = await receive()
            if message["type"] != "websocket.receive" or message.get("bytes") is not None:
                return message
            await send({"type": "websocket.close", "code": TEXT_IS_NOT_READ})
            return {"type": "websocket.disconnect", "code": TEXT_IS_NOT_READ}

        self.open[owner] += 1
        try:
            await self.app(scope, receive_binary, send)
        finally:
            self.open[owner] -= 1
            if not self.open[owner]:
                del self.open[owner]


class OncePerMinute(logging.Filter):
    """A filter that removes the traceback of every log record, and drops records that repeat within a minute."""

    def __init__(self) -> None:
        super().__init__()
        self.logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, message = time.monotonic(), str(record.msg)
        record.exc_info = None
        if now - self.logged_at.get(message, -EVERY) < EVERY:
            return False
        self.logged_at[message] = now
        return True
