"""What opens a server with a class password: the password, the cookie that stands for it, and the link to join. Needs no web server."""

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
NONE = "There is no link to join, because there is no class password: start the server with LEAKAGE_PASSWORD set."


class ClassKey:
    """Cookie and link follow from the password and a key in the home: another password, or another home, makes them void."""

    def __init__(self, config: Settings) -> None:
        if not config.password:
            raise RuntimeError(NONE)
        self.key = home_key(config.home / "class.key")
        self.cookie, self.link = self.sign("cookie", config.password), self.sign("link", config.password)

    def sign(self, use: str, password: str) -> str:
        """A name for this password and this use that nobody without the key can make."""
        return hmac.new(self.key, f"{use} {password}".encode("utf-8", "replace"), sha256).hexdigest()

    def is_password(self, given: str) -> bool:
        """Whether it is the password; takes as long whatever is wrong with it."""
        return hmac.compare_digest(self.sign("cookie", given), self.cookie)

    def is_cookie(self, given: str) -> bool:
        """Whether it is the cookie of somebody who knew the password."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.cookie.encode())

    def is_link(self, given: str) -> bool:
        """Whether it is the key of the link to join."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.link.encode())


def join_path(config: Settings) -> str:
    """The link that lets in without the password, as a path on this server. Raises RuntimeError where there is no password."""
    return f"/join?{urlencode({'key': ClassKey(config).link})}"


def home_key(path: Path) -> bytes:
    """The home's random key, made on first use; of several processes that make one at once, all get the same."""
    with contextlib.suppress(FileNotFoundError):
        if len(key := path.read_bytes()) == BYTES:
            return key
        log.warning("%s is damaged: a new key takes its place, so that everybody gives the password once more.", path)
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(secrets.token_bytes(BYTES))
    with contextlib.suppress(FileExistsError):
        os.link(draft, path)  # whole or not at all, and never over another's
    draft.unlink()
    return path.read_bytes()
