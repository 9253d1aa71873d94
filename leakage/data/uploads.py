"""Uploads as they arrive from strangers: each is decoded in a process with limits, and answered with a PNG or a sentence. No torch."""

import subprocess
import sys
import threading

from leakage.data.decoder import MAX_BYTES, REFUSED
from leakage.data.errors import PictureError
from leakage.settings import PACKAGE

NAME = 60  # letters of a file's name that a sentence repeats
PATIENCE = 15.0  # seconds for one file: its process has 4 of its own, and waits for others on a busy machine
AT_ONCE = threading.BoundedSemaphore(2)  # a class that uploads together must not take all of the memory


def check_upload(data: bytes, name: str) -> bytes:
    """An upload as `decoder.decode` makes it, whatever the file does to what decodes it. Raises PictureError with one sentence."""
    name = printable(name)[:NAME] or "Your picture"
    if len(data) > MAX_BYTES:  # no process for it
        raise PictureError(f"{name} has {len(data) / 2**20:.1f} MB; at most {MAX_BYTES // 2**20} MB are allowed. Upload a smaller copy.")
    command = [sys.executable, "-m", "leakage.data.decoder"]  # the name goes by stdin: others can read arguments
    try:
        with AT_ONCE:
            done = subprocess.run(
                command, input=name.encode() + b"\n" + data, capture_output=True, cwd=PACKAGE.parent, timeout=PATIENCE, check=False
            )
    except OSError as error:
        raise PictureError(f"{name} could not be looked at: this machine is too busy ({error}). Try again in a minute.") from None
    except subprocess.TimeoutExpired:
        raise PictureError(f"{name} could not be decoded in {PATIENCE:.0f} seconds. Save it again as PNG and upload that.") from None
    if done.returncode == REFUSED:
        raise PictureError(done.stdout.decode())
    if done.returncode:
        raise PictureError(f"{name} takes more time or memory to decode than a picture does. Save it again as PNG and upload that.")
    return done.stdout


def printable(name: str) -> str:
    """A file's name in one line, without what cannot be printed or turns the writing round.

    >>> printable("exe\u202egnp.png")
    'exegnp.png'
    """
    return " ".join("".join(letter for letter in name if letter.isprintable()).split())
