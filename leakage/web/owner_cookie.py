"""Gives every browser a random owner, in a cookie that no script can read."""

import re
import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leakage.runs.owners import COOKIE
from leakage.web.request_filter import is_secure

PAGES = ("", "ask", "compare", "architecture", "training", "runs")  # the pages themselves, not the dozens of scripts of each
OURS = re.compile(r"[A-Za-z0-9_-]{16,64}")
YEAR = 365 * 24 * 3600


class OwnerCookie:
    """Sets it with a page where there is none, or one that we cannot have set."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].rsplit("/", 1)[-1] not in PAGES:
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        known = OURS.fullmatch(request.cookies.get(COOKIE, ""))
        secure = "; Secure" if is_secure(request) else ""
        cookie = f"{COOKIE}={secrets.token_urlsafe(16)}; Path=/; Max-Age={YEAR}; HttpOnly; SameSite=Lax{secure}"

        async def marked(message: Message) -> None:
            if not known and message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                headers.append("set-cookie", cookie)
                message = {**message, "headers": headers.raw}
            await send(message)

        await self.app(scope, receive, marked)
