"""Whose runs they are: the cookie with which a browser comes back, and the name under which the store keeps what is its own."""

import hashlib

COOKIE = "gle_owner"


def owner_of(cookie: str) -> str:
    """The owner in the store. The cookie cannot be found from it: who reads the store can act for nobody."""
    return f"browser {hashlib.sha256(cookie.encode()).hexdigest()}"
