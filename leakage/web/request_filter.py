"""The check of every request's Host and Origin headers, the routes that stay closed, and the security headers of every response."""

import re
from collections.abc import Collection

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leakage.web.hosts import Address, Hosts
from leakage.web.streamlit_page import script_hashes

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
DEFAULT_PORTS = {"http": 80, "https": 443}
RESPONSE_STARTS = ("http.response.start", "websocket.http.response.start")
NEEDED = ("health", "host-config", "stream", "upload_file/", "bidi-components/")  # routes below /_stcore/ that Streamlit's pages use
LOGIN = re.compile(r"/(auth/login|auth/logout|oauth2callback)/?$")  # Streamlit's routes for an identity provider, which is not used here
AGENT = "agent/"  # Streamlit's interface that drives pages without a browser (option server.enableAgentApi)
NO_SOCKET = "This address does not open a live connection."
NO_HOST = "A request needs exactly one Host header, which contains a name or an address."
FOREIGN_HOST = (
    "This server does not answer to the name {!r}. If the name belongs to this server, add it to the environment variable "
    "LEAKAGE_ALLOWED_HOSTS; an IP address works without this setting."
)
FOREIGN_ORIGIN = (
    "Only pages of this server may do that: the request's Origin must equal its Host, port included. "
    "If the server is behind a reverse proxy, let the proxy pass on the Host header."
)


class RequestFilter:
    """Middleware that refuses requests to or from another host and routes that no page needs, and adds security headers to every response.

    `enabled_routes` are routes of Streamlit below /_stcore/ that stay open although no page needs them.
    """

    def __init__(self, app: ASGIApp, *, hosts: Hosts, enabled_routes: Collection[str] = ()) -> None:
        self.app, self.hosts, self.headers, self.enabled_routes = app, hosts, security_headers(), enabled_routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return

        request, accepted = HTTPConnection(scope), False

        async def send_with_headers(message: Message) -> None:
            nonlocal accepted
            if message["type"] == "websocket.close" and not accepted:  # uvicorn's own refusal would lack the security headers
                await PlainTextResponse(NO_SOCKET, 403)(scope, receive, send_with_headers)
                return
            accepted = accepted or message["type"] == "websocket.accept"
            if message["type"] in RESPONSE_STARTS:
                headers = MutableHeaders(raw=[(name, self.secure_cookie(name, value, request)) for name, value in message["headers"]])
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
                message = {**message, "headers": headers.raw}
            await send(message)

        await (self.refusal(request) or self.app)(scope, receive, send_with_headers)

    def secure_cookie(self, name: bytes, value: bytes, request: HTTPConnection) -> bytes:
        """Return the value of a response header; a cookie that is set over https, also by Streamlit, gets the attribute Secure."""
        insecure = name.lower() == b"set-cookie" and not re.search(rb";\s*secure\b", value, re.IGNORECASE)
        return value + b"; Secure" if insecure and is_secure(request) else value

    def refusal(self, request: HTTPConnection) -> Response | None:
        """Return the error response to a request that is not allowed; None if the request may pass."""
        hosts = request.headers.getlist("host")
        host = Address.parse(hosts[0]) if len(hosts) == 1 else None
        if host is None:
            return PlainTextResponse(NO_HOST, 400)
        if not self.hosts.allow(host):
            return PlainTextResponse(FOREIGN_HOST.format(host.name), 421)
        if request.scope.get("method") not in SAFE_METHODS and not is_same_origin(request, host):  # a websocket has no method
            return PlainTextResponse(FOREIGN_ORIGIN, 403)
        if is_closed(request.scope["path"], self.enabled_routes):
            return PlainTextResponse("There is nothing here.", 404)
        return None


def is_closed(path: str, enabled_routes: Collection[str] = ()) -> bool:
    """Return whether a path is a built-in route of Streamlit that no page needs, such as a route that a later version adds."""
    if LOGIN.search(path):
        return True
    _, separator, name = path.partition("/_stcore/")
    routes = (*NEEDED, *enabled_routes)
    return bool(separator) and not any(name == route or (route.endswith("/") and name.startswith(route)) for route in routes)


def is_same_origin(request: HTTPConnection, host: Address) -> bool:
    """Return whether a page of this server sent the request: whether the only Origin header names the same host and port.

    Browsers send this header with every request that can change something.
    """
    origins = request.headers.getlist("origin")
    scheme, separator, rest = origins[0].partition("://") if len(origins) == 1 else ("", "", "")
    origin = Address.parse(rest)
    if not separator or origin is None or scheme not in DEFAULT_PORTS or (is_secure(request) and scheme != "https"):
        return False
    default = DEFAULT_PORTS[scheme]
    return (origin.name, origin.port or default) == (host.name, host.port or default)


def is_secure(request: HTTPConnection) -> bool:
    """Return whether the visitor uses https, to this server or to the reverse proxy in front of it."""
    forwarded = request.headers.get("x-forwarded-proto", "").split(",")[0].strip().lower()
    return request.url.scheme in ("https", "wss") or forwarded == "https"


def security_headers() -> dict[str, str]:
    """Return the headers of every response, by name. The content security policy is as strict as Streamlit's front end allows."""
    policy = {
        "default-src": "'self'",
        "script-src": " ".join(("'self'", "blob:", "'wasm-unsafe-eval'", *script_hashes())),  # Streamlit's components and messages
        "style-src": "'self' 'unsafe-inline'",  # Streamlit and Plotly write their styles into the page
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "media-src": "'self' data: blob:",
        "connect-src": "'self' data:",  # Streamlit's camera widget fetches the picture that it took from a data address
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
