"""The cookie that identifies a browser by a random owner id; no script can read it."""

import re
import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leakage.runs.owners import COOKIE
from leakage.web.request_filter import is_secure

PAGES = ("", "ask", "compare", "architecture", "training", "audit", "runs")  # last parts of the paths with which the cookie is set
OWNER_ID = re.compile(r"[A-Za-z0-9_-]{16,64}")
YEAR = 365 * 24 * 3600


class OwnerCookie:
    """Middleware that sets the cookie of the owner id with a page if the browser sent none, or sent one that this program does not make."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].rsplit("/", 1)[-1] not in PAGES:
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        known = OWNER_ID.fullmatch(request.cookies.get(COOKIE, ""))
        secure = "; Secure" if is_secure(request) else ""
        cookie = f"{COOKIE}={secrets.token_urlsafe(16)}; Path=/; Max-Age={YEAR}; HttpOnly; SameSite=Lax{secure}"

        async def send_with_cookie(message: Message) -> None:
            if not known and message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                headers.append("set-cookie", cookie)
                message = {**message, "headers": headers.raw}
            await send(message)

        await self.app(scope, receive, send_with_cookie)
