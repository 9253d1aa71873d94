"""The class password: a page that asks for it, a link that needs none, and nothing else for whoever has neither."""

import re
import time
from urllib.parse import parse_qs, quote, urlencode

from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from leakage.frontend.markup import render
from leakage.web.class_key import ClassKey
from leakage.web.proxies import visitor
from leakage.web.request_filter import is_secure
from leakage.web.throttle import Throttle

COOKIE = "gle_class"
DATA = ("/api/", "/_stcore/", "/static/", "/media/", "/component/")  # what pages fetch; all else are pages
OWN_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]{0,2000}")
LONGEST = 16384  # bytes of a filled-in form
UNKEPT = {"Cache-Control": "no-store"}
ASKED = "This server asks for a password: open its page {}/login in a browser first."
WRONG = "That is not the password. Ask whoever gave you this address."
TOO_OFTEN = "Too many wrong passwords. Try again in {} seconds."
WRONG_LINK = "This link is no longer valid: the password was changed. Ask for the new link, or open {}/login and type the password."


class PasswordGate:
    """Lets those in who have the cookie; `base` is the prefix of all addresses, such as `/gle`, or nothing."""

    def __init__(self, app: ASGIApp, *, key: ClassKey, base: str = "") -> None:
        self.app, self.key, self.base, self.throttle = app, key, base, Throttle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        await (await self.answer(request, receive) or self.app)(scope, receive, send)

    async def answer(self, request: HTTPConnection, receive: Receive) -> Response | None:
        """What is answered instead of what was asked for; None: whoever asks may go on."""
        path = request.scope["path"]
        if request.scope["type"] == "http":
            if path == f"{self.base}/login":
                return await self.login(Request(request.scope, receive))
            if path == f"{self.base}/join":
                return self.join(request)
            if path == f"{self.base}/_stcore/health":
                return None
        if self.key.is_cookie(request.cookies.get(COOKIE, "")):
            return None
        if request.scope.get("method") in ("GET", "HEAD") and not path.startswith(tuple(self.base + part for part in DATA)):
            query = request.scope["query_string"].decode("latin-1")
            wanted = {"next": quote(path) + (f"?{query}" if query else "")}
            return RedirectResponse(f"{self.base}/login?{urlencode(wanted)}", 303, UNKEPT)
        return PlainTextResponse(ASKED.format(self.base), 401, UNKEPT)

    async def login(self, request: Request) -> Response:
        """The page, or what a filled-in one leads to."""
        if request.method != "POST":
            known = request.method in ("GET", "HEAD")
            return self.page(request.query_params.get("next", "")) if known else PlainTextResponse("Send the form.", 405)
        text = b""
        async for part in request.stream():
            text += part
            if len(text) > LONGEST:
                return PlainTextResponse("The form is too long.", 413)
        form = parse_qs(text.decode("utf-8", "replace"))
        wanted, given = form.get("next", [""])[0], form.get("password", [""])[0]
        address, now = visitor(request), time.monotonic()
        if self.key.is_cookie(request.cookies.get(COOKIE, "")):
            return self.welcome(request, self.own(wanted))
        if wait := self.throttle.wait(address, now):
            return self.page(wanted, TOO_OFTEN.format(wait), 429, {"Retry-After": str(wait)})
        if not self.key.is_password(given):
            self.throttle.note(address, now)
            return self.page(wanted, WRONG, 403)
        return self.welcome(request, self.own(wanted))

    def join(self, request: HTTPConnection) -> Response:
        """The link to join."""
        if not self.key.is_link(request.query_params.get("key", "")):
            return PlainTextResponse(WRONG_LINK.format(self.base), 403, UNKEPT)
        return self.welcome(request, f"{self.base}/")

    def welcome(self, request: HTTPConnection, path: str) -> Response:
        """On to the page that was asked for, with the cookie, which the browser forgets when it is closed."""
        response = RedirectResponse(path, 303, UNKEPT)
        response.set_cookie(COOKIE, self.key.cookie, path="/", httponly=True, samesite="lax", secure=is_secure(request))
        return response

    def own(self, path: str) -> str:
        """This path, if it is one of ours, else the first page: a link to the login must not lead elsewhere."""
        return path if OWN_PATH.fullmatch(path) and path.startswith(f"{self.base}/") else f"{self.base}/"

    def page(self, wanted: str, message: str = "", status: int = 200, headers: dict[str, str] | None = None) -> Response:
        """The form, with what was wrong."""
        page = render("web/login.html.jinja", action=f"{self.base}/login", wanted=self.own(wanted), message=message)
        return HTMLResponse(page, status, {**UNKEPT, **(headers or {})})
