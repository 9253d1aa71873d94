"""Who asks, behind a reverse proxy: only a proxy that LEAKAGE_PROXIES names may say it, by X-Forwarded-For."""

import contextlib
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import uvicorn.config
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

WRONG = (
    "LEAKAGE_PROXIES must be addresses or networks of reverse proxies with commas between them, for example 127.0.0.1,172.18.0.0/16; "
    "got {!r}."
)
HTTPS = {"http": "https", "ws": "wss"}
SITE = 64  # bits of an IPv6 address that one visitor is given: the others may be chosen freely


class NamedProxies:
    """Puts the visitor's address in the place of a named proxy's. Raises ValueError for a name that is no address or network.

    Of several addresses in the header the last is taken, which the proxy itself has added: those before may be made up.
    """

    def __init__(self, app: ASGIApp, *, names: Iterable[str]) -> None:
        self.app, self.networks = app, networks(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and self.trusts(scope.get("client")):
            request = HTTPConnection(scope)
            if request.headers.get("x-forwarded-proto", "").strip().lower() == "https":
                scope["scheme"] = HTTPS.get(scope["scheme"], scope["scheme"])
            last = ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
            with contextlib.suppress(ValueError):  # it says nothing of use
                scope["client"] = (str(ip_address(last)), 0)
        await self.app(scope, receive, send)

    def trusts(self, client: tuple[str, int] | None) -> bool:
        """Whether the connection comes from one of them."""
        try:
            return client is not None and any(ip_address(client[0]) in network for network in self.networks)
        except ValueError:
            return False


def networks(names: Iterable[str]) -> list[IPv4Network | IPv6Network]:
    """What these names stand for. Raises ValueError."""
    found = list[IPv4Network | IPv6Network]()
    for name in names:
        try:
            found.append(ip_network(name))
        except ValueError:
            raise ValueError(WRONG.format(name)) from None
    return found


def believe_only(names: Iterable[str]) -> None:
    """Let the web server believe these proxies and no other: uvicorn by itself believes everything on this machine. Raises ValueError."""
    named = list(names)
    networks(named)
    # The class that it wraps the application in is looked up there, after this module was read; no option of Streamlit reaches it.
    setattr(uvicorn.config, "ProxyHeadersMiddleware", lambda app, trusted_hosts: NamedProxies(app, names=named))  # noqa: B010


def visitor(request: HTTPConnection) -> str:
    """The address that counts as one visitor."""
    return one_visitor(request.client.host if request.client else "")


def one_visitor(host: str) -> str:
    """What counts as one visitor of this address: an IPv4 address itself, or the network of an IPv6 one."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or ip_network((int(address), SITE), strict=False))
