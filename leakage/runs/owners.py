"""The owner of runs: the cookie with which a browser comes back, and the name that the store derives from it."""

import hashlib

COOKIE = "gle_owner"


def owner_of(cookie: str) -> str:
    """Return the owner's name in the store, a hash of the cookie, from which nobody can compute the cookie to act for the owner."""
    return f"browser {hashlib.sha256(cookie.encode()).hexdigest()}"
