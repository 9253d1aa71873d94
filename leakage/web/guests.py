"""What visitors of a class may see: members the whole program, guests the room that they follow on their phones."""

from ipaddress import ip_address

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from leakage.web.class_key import ClassKey
from leakage.web.guest_paths import is_for_guests
from leakage.web.password import COOKIE

FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
GUESTS_ONLY = "This address is for the class: open {}/j and type the code of the room. The rest of this server is for its teacher."


class GuestGuard:
    """Middleware that refuses guests everything but the addresses of rooms.

    A member uses this computer itself, or has the cookie of the class password; everybody else is a guest. A connection through
    a proxy never counts as one from this computer.
    """

    def __init__(self, app: ASGIApp, *, key: ClassKey | None = None, base: str = "") -> None:
        self.app, self.key, self.base = app, key, base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self.may_pass(HTTPConnection(scope)):
            await self.app(scope, receive, send)
        else:
            await PlainTextResponse(GUESTS_ONLY.format(self.base), 403, {"Cache-Control": "no-store"})(scope, receive, send)

    def may_pass(self, request: HTTPConnection) -> bool:
        """Return whether a request comes from a member, or asks for an address that is open to guests."""
        member = is_at_this_computer(request) or (self.key is not None and self.key.is_cookie(request.cookies.get(COOKIE, "")))
        return member or is_for_guests(request.scope, self.base)


def is_at_this_computer(request: HTTPConnection) -> bool:
    """Return whether a connection comes from this computer, and from no proxy on it."""
    if request.client is None or any(name in request.headers for name in FORWARDED):
        return False
    try:
        address = ip_address(request.client.host)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback
