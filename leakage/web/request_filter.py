"""What every request must bring before a page or a route sees it, a Host and an Origin that are ours, and what every answer carries."""

import re
from collections.abc import Collection

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leakage.web.hosts import Address, Hosts
from leakage.web.streamlit_page import script_hashes

READING = ("GET", "HEAD", "OPTIONS")
DEFAULT_PORTS = {"http": 80, "https": 443}
STARTS = ("http.response.start", "websocket.http.response.start")
NEEDED = ("health", "host-config", "stream", "upload_file/", "bidi-components/")  # below _stcore/, by Streamlit's pages
LOGIN = re.compile(r"/(auth/login|auth/logout|oauth2callback)/?$")  # by an identity provider, which is not used here
AGENT = "agent/"  # drives the pages without a browser; Streamlit's option server.enableAgentApi
NO_SOCKET = "No live connection is opened here."
NO_HOST = "A request needs one Host header with a name or an address in it."
FOREIGN_HOST = (
    "This server does not answer to the name {!r}. If it is its own, its owner adds it to the environment variable "
    "LEAKAGE_ALLOWED_HOSTS; an IP address works without."
)
FOREIGN_ORIGIN = (
    "Only pages of this server may do that: the request's Origin must equal its Host, port included. "
    "Behind a reverse proxy: let the proxy pass on the Host header."
)


class RequestFilter:
    """Refuses requests for another server and from pages of another one; closes routes that no page needs; adds headers to all answers.

    switched_on   routes of Streamlit below `_stcore/` that are answered as well
    """

    def __init__(self, app: ASGIApp, *, hosts: Hosts, switched_on: Collection[str] = ()) -> None:
        self.app, self.hosts, self.headers, self.switched_on = app, hosts, protecting_headers(), switched_on

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return

        request, opened = HTTPConnection(scope), False

        async def protected(message: Message) -> None:
            nonlocal opened
            if message["type"] == "websocket.close" and not opened:  # the server would refuse by itself, without our headers
                await PlainTextResponse(NO_SOCKET, 403)(scope, receive, protected)
                return
            opened = opened or message["type"] == "websocket.accept"
            if message["type"] in STARTS:
                headers = MutableHeaders(raw=[(name, self.secured(name, value, request)) for name, value in message["headers"]])
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
                message = {**message, "headers": headers.raw}
            await send(message)

        await (self.refusal(request) or self.app)(scope, receive, protected)

    def secured(self, name: bytes, value: bytes, request: HTTPConnection) -> bytes:
        """A header as it goes out: behind TLS every cookie travels by TLS alone, those that Streamlit sets among them."""
        open_cookie = name.lower() == b"set-cookie" and not re.search(rb";\s*secure\b", value, re.IGNORECASE)
        return value + b"; Secure" if open_cookie and is_secure(request) else value

    def refusal(self, request: HTTPConnection) -> Response | None:
        """What is answered to a request that goes no further."""
        named = request.headers.getlist("host")
        host = Address.read(named[0]) if len(named) == 1 else None
        if host is None:
            return PlainTextResponse(NO_HOST, 400)
        if not self.hosts.allow(host):
            return PlainTextResponse(FOREIGN_HOST.format(host.name), 421)
        if request.scope.get("method") not in READING and not from_here(request, host):  # a websocket has no method
            return PlainTextResponse(FOREIGN_ORIGIN, 403)
        if is_closed(request.scope["path"], self.switched_on):
            return PlainTextResponse("There is nothing here.", 404)
        return None


def is_closed(path: str, switched_on: Collection[str] = ()) -> bool:
    """Whether nobody is answered there: all built-in routes of Streamlit that pages do not need, new ones of an update among them."""
    if LOGIN.search(path):
        return True
    _, own, name = path.partition("/_stcore/")
    return bool(own) and not any(name == one or (one.endswith("/") and name.startswith(one)) for one in (*NEEDED, *switched_on))


def from_here(request: HTTPConnection, host: Address) -> bool:
    """Whether it was a page of this very server that sent the request. A browser says so with every request that changes something."""
    origins = request.headers.getlist("origin")
    scheme, separator, rest = origins[0].partition("://") if len(origins) == 1 else ("", "", "")
    origin = Address.read(rest)
    if not separator or origin is None or scheme not in DEFAULT_PORTS or (is_secure(request) and scheme != "https"):
        return False
    usual = DEFAULT_PORTS[scheme]
    return (origin.name, origin.port or usual) == (host.name, host.port or usual)


def is_secure(request: HTTPConnection) -> bool:
    """Whether the visitor came by https: to this server, or to the proxy in front of it."""
    forwarded = request.headers.get("x-forwarded-proto", "").split(",")[0].strip().lower()
    return request.url.scheme in ("https", "wss") or forwarded == "https"


def protecting_headers() -> dict[str, str]:
    """The headers of every answer. The policy is as strict as Streamlit's front end lets it be."""
    policy = {
        "default-src": "'self'",
        "script-src": " ".join(("'self'", "blob:", "'wasm-unsafe-eval'", *script_hashes())),  # its components and messages
        "style-src": "'self' 'unsafe-inline'",  # Streamlit and Plotly write their styles into the page
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "media-src": "'self' data: blob:",
        "connect-src": "'self' data:",  # Streamlit's camera reads its own picture by such an address
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'self'",
    }
    return {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Referrer-Policy": "same-origin",
    }
