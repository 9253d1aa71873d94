"""The class password: a login page and a link to join; every other request needs the cookie that these two set.

The addresses of rooms need no cookie: the code of a room stands for the password there.
"""

import re
import time
from urllib.parse import parse_qs, quote, urlencode

from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from leakage.frontend.markup import render
from leakage.web.class_key import ClassKey
from leakage.web.guest_paths import is_for_guests
from leakage.web.proxies import visitor_of
from leakage.web.request_filter import is_secure
from leakage.web.throttle import Throttle

COOKIE = "gle_class"
DATA = ("/api/", "/_stcore/", "/static/", "/media/", "/component/")  # addresses that pages fetch; every other address is a page
LOCAL_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]{0,2000}")
MAX_FORM_BYTES = 16384
NO_STORE = {"Cache-Control": "no-store"}
PASSWORD_NEEDED = "This server asks for a password: open its page {}/login in a browser first."
WRONG = "That is not the password. Ask the person who gave you this address."
TOO_OFTEN = "Too many wrong passwords. Try again in {} seconds."
WRONG_LINK = "This link is no longer valid: the password was changed. Ask for the new link, or open {}/login and type the password."


class PasswordGate:
    """Middleware that passes a request on if it has the login cookie; `base` is the prefix of all addresses, such as `/gle`, or empty."""

    def __init__(self, app: ASGIApp, *, key: ClassKey, base: str = "") -> None:
        self.app, self.key, self.base, self.throttle = app, key, base, Throttle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        await (await self.intercept(request, receive) or self.app)(scope, receive, send)

    async def intercept(self, request: HTTPConnection, receive: Receive) -> Response | None:
        """Return the login page, a redirect to it or an error; None if the request may pass."""
        path = request.scope["path"]
        if request.scope["type"] == "http":
            if path == f"{self.base}/login":
                return await self.login(Request(request.scope, receive))
            if path == f"{self.base}/join":
                return self.join(request)
            if path == f"{self.base}/_stcore/health":
                return None
        if self.key.is_cookie(request.cookies.get(COOKIE, "")) or is_for_guests(request.scope, self.base):
            return None
        if request.scope.get("method") in ("GET", "HEAD") and not path.startswith(tuple(self.base + part for part in DATA)):
            query = request.scope["query_string"].decode("latin-1")
            target = {"next": quote(path) + (f"?{query}" if query else "")}
            return RedirectResponse(f"{self.base}/login?{urlencode(target)}", 303, NO_STORE)
        return PlainTextResponse(PASSWORD_NEEDED.format(self.base), 401, NO_STORE)

    async def login(self, request: Request) -> Response:
        """Respond with the login page; if the form was sent, check its password and redirect to the page that was asked for."""
        if request.method != "POST":
            reads = request.method in ("GET", "HEAD")
            return self.page(request.query_params.get("next", "")) if reads else PlainTextResponse("Send the form.", 405)
        text = b""
        async for part in request.stream():
            text += part
            if len(text) > MAX_FORM_BYTES:
                return PlainTextResponse("The form is too long.", 413)
        form = parse_qs(text.decode("utf-8", "replace"))
        target, password = form.get("next", [""])[0], form.get("password", [""])[0]
        address, now = visitor_of(request), time.monotonic()
        if self.key.is_cookie(request.cookies.get(COOKIE, "")):
            return self.let_in(request, self.local_path(target))
        if wait := self.throttle.seconds_to_wait(address, now):
            return self.page(target, TOO_OFTEN.format(wait), 429, {"Retry-After": str(wait)})
        if not self.key.is_password(password):
            self.throttle.record(address, now)
            return self.page(target, WRONG, 403)
        return self.let_in(request, self.local_path(target))

    def join(self, request: HTTPConnection) -> Response:
        """Respond to the link that lets visitors in without the password: set the login cookie if the link's key is right."""
        if not self.key.is_link(request.query_params.get("key", "")):
            return PlainTextResponse(WRONG_LINK.format(self.base), 403, NO_STORE)
        return self.let_in(request, f"{self.base}/")

    def let_in(self, request: HTTPConnection, path: str) -> Response:
        """Redirect to a page and set the cookie, which the browser deletes when it is closed."""
        response = RedirectResponse(path, 303, NO_STORE)
        response.set_cookie(COOKIE, self.key.cookie, path="/", httponly=True, samesite="lax", secure=is_secure(request))
        return response

    def local_path(self, path: str) -> str:
        """Return the path if it belongs to this server, otherwise the first page, so that a link to the login cannot lead elsewhere."""
        return path if LOCAL_PATH.fullmatch(path) and path.startswith(f"{self.base}/") else f"{self.base}/"

    def page(self, target: str, message: str = "", status: int = 200, headers: dict[str, str] | None = None) -> Response:
        """Respond with the login form and a message about what was wrong; `target` is the path to open after the login."""
        page = render("web/login.html.jinja", action=f"{self.base}/login", target=self.local_path(target), message=message)
        return HTMLResponse(page, status, {**NO_STORE, **(headers or {})})
