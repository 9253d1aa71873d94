"""The download of LPIPS's backbones, checked by their SHA-256; the smallest is downloaded in the background. No torch."""

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
PATIENCE = 30  # seconds without a response after which a host counts as unreachable
CHUNK = 2**16
SENTENCES = {  # state of the download -> the sentence for pages
    "fetching": "The network that LPIPS needs ({size} MB) is being downloaded from {host}. Runs that begin later have LPIPS.",
    "fetched": "The network that LPIPS needs ({size} MB) was downloaded from {host}; its SHA-256 is right. New runs have LPIPS.",
    "failed": "The network that LPIPS needs ({size} MB) could not be downloaded from {host}. The next start tries again.",
}
SWITCH = "LEAKAGE_LPIPS_FROM=off switches the download off."
log = logging.getLogger(__name__)


def source() -> str:
    """Return the address of the folder with the networks, from LEAKAGE_LPIPS_FROM, or HOST; it ends with a slash."""
    address = os.environ.get("LEAKAGE_LPIPS_FROM", "").strip()
    return HOST if address in ("", OFF) else address.rstrip("/") + "/"


def download(backbone: Backbone, folder: Path) -> Path:
    """Download the file of a network into a folder, which is created if necessary, and return its path.

    The file appears in the folder when it is complete and checked.

    Raises:
        RuntimeError: If the response is too large or has another SHA-256.
        OSError, HTTPException: If there is no response, or the file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    request = urllib.request.Request(source() + backbone.file, headers={"User-Agent": "gradient-leakage-explorer"})
    with NamedTemporaryFile(dir=folder, prefix=".", suffix=".part", delete=False) as file:
        try:
            with closing(urllib.request.urlopen(request, timeout=PATIENCE)) as response:
                while chunk := response.read(CHUNK):
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
    """The download of LPIPS's smallest network, in a daemon thread, so that neither the start nor the end of the process waits for it."""

    state: Literal["idle", "fetching", "fetched", "failed"]
    """The state of the download; "idle" also if no download is needed."""

    def __init__(self) -> None:
        self.state = "idle"
        self.backbone = BACKBONES[-1]
        self.reason = ""

    def begin(self) -> None:
        """Start the download in a thread, unless LEAKAGE_LPIPS_FROM switches it off."""
        if os.environ.get("LEAKAGE_LPIPS_FROM", "").strip() != OFF:
            threading.Thread(target=self.fetch, name="lpips", daemon=True).start()

    def fetch(self) -> None:
        """Download LPIPS's smallest network, and log a failure.

        Nothing is done if this machine has one of the networks or a damaged file with the name of one, or if LPIPS is not installed.
        """
        backbone, _, problems = choose(hub())
        if backbone or problems or not find_spec("lpips"):
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
        """The sentence that pages show beside a run without LPIPS; empty if the state is idle."""
        if self.state == "idle":
            return ""
        host = urlsplit(source()).netloc or source()
        return SENTENCES[self.state].format(size=self.backbone.megabytes, host=host)


@cache
def lpips_download() -> LpipsDownload:
    """Return this process's only LpipsDownload, which is made at the first call and not begun."""
    return LpipsDownload()
