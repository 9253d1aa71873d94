"""LPIPS's networks from the host that has them, checked by their SHA-256; the smallest of them in the background. No torch."""

import hashlib
import logging
import os
import threading
import urllib.request
from contextlib import closing, suppress
from functools import cache
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Literal
from urllib.parse import urlsplit

from leakage.data.datasets import data_folder
from leakage.data.lpips_weights import BACKBONES, Backbone, choose, hub

HOST = "https://download.pytorch.org/models/"
OFF = "off"
PATIENCE = 30  # seconds without an answer before a host counts as out of reach
CHUNK = 2**16
TELLS = {
    "fetching": "The network that LPIPS looks through ({size} MB) is being fetched from {host}. Runs that begin after that have LPIPS.",
    "fetched": "The network that LPIPS looks through ({size} MB) has come from {host}; its SHA-256 is right. New runs have LPIPS.",
    "failed": "The network that LPIPS looks through ({size} MB) could not be fetched from {host}. The next start tries again.",
}
SWITCH = "LEAKAGE_LPIPS_FROM=off switches the fetching off."
log = logging.getLogger(__name__)


def source() -> str:
    """The address of the folder with the networks, in the environment variable LEAKAGE_LPIPS_FROM, or HOST; it ends with a slash."""
    named = os.environ.get("LEAKAGE_LPIPS_FROM", "").strip()
    return HOST if named in ("", OFF) else named.rstrip("/") + "/"


def download(backbone: Backbone, folder: Path) -> Path:
    """The file of a network below `folder` (made when missing). It appears there only as a whole.

    Raises RuntimeError when what arrives is too large or does not have the SHA-256 that is expected; OSError, HTTPException when nothing
    arrives, or it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    request = urllib.request.Request(source() + backbone.file, headers={"User-Agent": "gradient-leakage-explorer"})
    with NamedTemporaryFile(dir=folder, prefix=".", suffix=".part", delete=False) as file:
        try:
            with closing(urllib.request.urlopen(request, timeout=PATIENCE)) as answer:
                while chunk := answer.read(CHUNK):
                    size += len(chunk)
                    if size > 2 * backbone.megabytes * 2**20:
                        raise RuntimeError(f"{request.full_url} is larger than the {backbone.megabytes} MB that are expected")
                    digest.update(chunk)
                    file.write(chunk)
            if not digest.hexdigest().startswith(backbone.sha256):
                expected = f"expected is a SHA-256 that begins with {backbone.sha256[:8]}, its content has {digest.hexdigest()[:8]}"
                raise RuntimeError(f"{request.full_url} is not the file that its name says ({expected})")
            file.flush()
            path = folder / backbone.file
            os.replace(file.name, path)
            path.chmod(0o644)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(file.name)
    return path


class LpipsDownload:
    """Fetches the smallest network once, in a thread that holds up neither the start nor the end of its process.

    state   idle while none is needed; then what becomes of it
    """

    def __init__(self) -> None:
        self.state: Literal["idle", "fetching", "fetched", "failed"] = "idle"
        self.backbone = BACKBONES[-1]
        self.reason = ""

    def begin(self) -> None:
        """Fetch it, unless that is switched off."""
        if os.environ.get("LEAKAGE_LPIPS_FROM", "").strip() != OFF:
            threading.Thread(target=self.fetch, name="lpips", daemon=True).start()

    def fetch(self) -> None:
        """Fetch it now, unless a network is here, a damaged one lies in its place, or LPIPS is not installed. A failure is logged once."""
        here, _, damaged = choose(hub())
        if here or damaged or not find_spec("lpips"):
            return
        self.state = "fetching"
        try:
            path = download(self.backbone, data_folder() / "lpips")
        except (OSError, HTTPException, RuntimeError, ValueError) as error:
            self.reason = " ".join(str(error).split())[:200] or type(error).__name__
            self.state = "failed"
            log.warning("%s The reason: %s. %s", self.words, self.reason, SWITCH)
        else:
            self.state = "fetched"
            log.info("%s is in %s.", self.backbone.file, path.parent)

    @property
    def words(self) -> str:
        """What the page says beside a run without LPIPS; nothing where nothing is fetched."""
        if self.state == "idle":
            return ""
        host = urlsplit(source()).netloc or source()
        return TELLS[self.state].format(size=self.backbone.megabytes, host=host)


@cache
def lpips_download() -> LpipsDownload:
    """The one of this process."""
    return LpipsDownload()
