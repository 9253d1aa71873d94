"""The check of a class password, of the cookie that replaces it, and of the link to join. It needs no web server."""

import contextlib
import hmac
import logging
import os
import secrets
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlencode

from leakage.settings import Settings

BYTES = 32
log = logging.getLogger(__name__)
NO_PASSWORD = "There is no link to join, because there is no class password: start the server with LEAKAGE_PASSWORD set."


class ClassKey:
    """The secrets of the login cookie and of the link to join, on a server that asks a class for a password (LEAKAGE_PASSWORD).

    Both are hashes of the password, keyed with a random key in the home folder.

    A new password or another home folder makes both invalid. Raises RuntimeError if there is no password.
    """

    def __init__(self, config: Settings) -> None:
        if not config.password:
            raise RuntimeError(NO_PASSWORD)
        self.key = home_key(config.home / "class.key")
        self.cookie, self.link = self.hash_password("cookie", config.password), self.hash_password("link", config.password)

    def hash_password(self, use: str, password: str) -> str:
        """Return the HMAC-SHA-256, with the key of the home folder, of a use ("cookie" or "link") and a password, in hexadecimal form."""
        return hmac.new(self.key, f"{use} {password}".encode("utf-8", "replace"), sha256).hexdigest()

    def is_password(self, password: str) -> bool:
        """Return whether a password is right, in a time that does not depend on where it is wrong."""
        return hmac.compare_digest(self.hash_password("cookie", password), self.cookie)

    def is_cookie(self, cookie: str) -> bool:
        """Return whether this is the value of the cookie that the server sets after the right password."""
        return hmac.compare_digest(cookie.encode("utf-8", "replace"), self.cookie.encode())

    def is_link(self, key: str) -> bool:
        """Return whether this is the key in the link that lets visitors in without the password."""
        return hmac.compare_digest(key.encode("utf-8", "replace"), self.link.encode())


def join_path(config: Settings) -> str:
    """Return the link that lets visitors in without the password, as a path on this server. Raises RuntimeError without a password."""
    return f"/join?{urlencode({'key': ClassKey(config).link})}"


def home_key(path: Path) -> bytes:
    """Return the random key in a file, and create the file if necessary; processes that call this at the same time get the same key."""
    with contextlib.suppress(FileNotFoundError):
        if len(key := path.read_bytes()) == BYTES:
            return key
        log.warning("%s is damaged: a new key replaces it, and everybody must enter the password again.", path)
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(secrets.token_bytes(BYTES))
    with contextlib.suppress(FileExistsError):
        os.link(draft, path)  # atomic, and fails if another process has already created the file
    draft.unlink()
    return path.read_bytes()
