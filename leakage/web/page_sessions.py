"""The live connections of pages: a limit for each browser, and no traceback in the log for garbage that comes over one."""

import logging
import time
from collections import defaultdict

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leakage.runs.owners import COOKIE
from leakage.web.proxies import visitor

MOST = 40  # of one browser: each is an open page, and holds memory and descriptors
TEXT_IS_NOT_READ = 1003  # the code with which a websocket is closed; RFC 6455, section 7.4.1
EVERY = 60.0  # seconds between two lines of the log that say the same
TOO_MANY = f"This browser has {MOST} pages of this server open already. Close some of them."


class PageSessions:
    """Counts the open websockets of each browser, and of each address the browsers without a cookie."""

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.open = app, defaultdict[str, int](int)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        who = request.cookies.get(COOKIE) or visitor(request)
        if self.open.get(who, 0) >= MOST:
            await PlainTextResponse(TOO_MANY, 429)(scope, receive, send)
            return

        async def binary() -> Message:
            """What comes, but for text, which pages never send: it closes the connection, as if the browser had left."""
            message = await receive()
            if message["type"] != "websocket.receive" or message.get("bytes") is not None:
                return message
            await send({"type": "websocket.close", "code": TEXT_IS_NOT_READ})
            return {"type": "websocket.disconnect", "code": TEXT_IS_NOT_READ}

        self.open[who] += 1
        try:
            await self.app(scope, binary, send)
        finally:
            self.open[who] -= 1
            if not self.open[who]:
                del self.open[who]


class Quiet(logging.Filter):
    """Lets a line of the log pass without its traceback, and the same line once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, words = time.monotonic(), str(record.msg)
        record.exc_info = None
        if now - self.said.get(words, -EVERY) < EVERY:
            return False
        self.said[words] = now
        return True


def quiet(name: str) -> None:
    """Let this logger of Streamlit say once a minute what strangers make it say."""
    logging.getLogger(name).addFilter(Quiet())
