"""The address of a visitor behind a reverse proxy: X-Forwarded-For is read only from the proxies that LEAKAGE_PROXIES names."""

import contextlib
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import uvicorn.config
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

WRONG = (
    "LEAKAGE_PROXIES must be addresses or networks of reverse proxies, separated by commas, for example 127.0.0.1,172.18.0.0/16; got {!r}."
)
HTTPS = {"http": "https", "ws": "wss"}
VISITOR_BITS = 64  # leading bits of an IPv6 address that identify a visitor; a visitor can choose the others freely


class NamedProxies:
    """Middleware that replaces the address of a reverse proxy, if `names` has it, by the address of the visitor.

    If the header X-Forwarded-For has several addresses, the last is used: the proxy itself has added it, and a visitor may have invented
    the others. Raises ValueError if a name in `names` is no address or network.
    """

    def __init__(self, app: ASGIApp, *, names: Iterable[str]) -> None:
        self.app, self.networks = app, parse_networks(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and self.trusts(scope.get("client")):
            request = HTTPConnection(scope)
            if request.headers.get("x-forwarded-proto", "").strip().lower() == "https":
                scope["scheme"] = HTTPS.get(scope["scheme"], scope["scheme"])
            last = ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
            with contextlib.suppress(ValueError):  # the header is missing or has no address
                scope["client"] = (str(ip_address(last)), 0)
        await self.app(scope, receive, send)

    def trusts(self, client: tuple[str, int] | None) -> bool:
        """Return whether a connection comes from a proxy in `names`; `client` is its address and port."""
        try:
            return client is not None and any(ip_address(client[0]) in network for network in self.networks)
        except ValueError:
            return False


def parse_networks(names: Iterable[str]) -> list[IPv4Network | IPv6Network]:
    """Return the network of each address or network in text form. Raises ValueError if a name is neither."""
    networks = list[IPv4Network | IPv6Network]()
    for name in names:
        try:
            networks.append(ip_network(name))
        except ValueError:
            raise ValueError(WRONG.format(name)) from None
    return networks


def accept_proxies(names: Iterable[str]) -> None:
    """Make the web server read X-Forwarded-For only from proxies in `names`; uvicorn by default reads it from every local process.

    Raises ValueError if a name is no address or network.
    """
    proxies = list(names)
    parse_networks(proxies)
    # uvicorn looks its proxy middleware up in this module when it starts, later than this line; Streamlit has no option for it.
    setattr(uvicorn.config, "ProxyHeadersMiddleware", lambda app, trusted_hosts: NamedProxies(app, names=proxies))  # noqa: B010


def visitor_of(request: HTTPConnection) -> str:
    """Return the text that identifies the visitor of a request: see `visitor_at`."""
    return visitor_at(request.client.host if request.client else "")


def visitor_at(host: str) -> str:
    """Return the text that identifies the visitor at an address: the IPv4 address, or the /64 network of an IPv6 address."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or ip_network((int(address), VISITOR_BITS), strict=False))
