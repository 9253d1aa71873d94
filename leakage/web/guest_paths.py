"""The addresses that are open to the phones of a class: the page to join, a room's requests, scripts, and pictures of recordings."""

import re

from starlette.types import Scope

GUEST_PATHS = re.compile(
    r"/j(/[^/]*)?"
    r"|/api/class/.+"  # these check the code of the room
    r"|/api/scripts/.+"
    r"|/api/own/[^/]+"
    r"|/api/learn/[^/]+/(runs|grids|thumbnails)/[^/]+\.webp"
)


def is_for_guests(scope: Scope, base: str) -> bool:
    """Return whether a request is for an address that is open to the phones of a class; `base` is the prefix of all addresses."""
    path = scope["path"]
    return scope["type"] == "http" and path.startswith(base) and bool(GUEST_PATHS.fullmatch(path.removeprefix(base)))
