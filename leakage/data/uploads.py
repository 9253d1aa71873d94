"""The check of uploads: each file is decoded by a separate process with limited time and memory. No torch."""

import subprocess
import sys
import threading

from leakage.data.decoder import MAX_BYTES, REFUSED, TOO_LARGE
from leakage.data.errors import PictureError
from leakage.settings import PACKAGE

NAME = 60  # letters of a file's name that messages repeat
PATIENCE = 15.0  # seconds for a file: its process may use 4 seconds of processor time, and waits for others on a busy machine
AT_ONCE = threading.BoundedSemaphore(2)  # so that the simultaneous uploads of a class do not use all of the memory


def check_upload(data: bytes, name: str) -> bytes:
    """Return an upload as a PNG of its central square: see `decode`, which runs in a separate process.

    Args:
        data: The content of the file.
        name: The name of the file, for messages.

    Raises:
        PictureError: If the file is no allowed picture, or takes too much time or memory; the message is a sentence for pages.
    """
    name = printable(name)[:NAME] or "Your picture"
    if len(data) > MAX_BYTES:  # needs no process
        raise PictureError(TOO_LARGE.format(name, len(data) / 2**20))
    command = [sys.executable, "-m", "leakage.data.decoder"]  # the name goes to stdin, because other users can read arguments
    try:
        with AT_ONCE:
            done = subprocess.run(
                command, input=name.encode() + b"\n" + data, capture_output=True, cwd=PACKAGE.parent, timeout=PATIENCE, check=False
            )
    except OSError as error:
        raise PictureError(f"{name} could not be checked, because this machine is too busy ({error}). Try again in a minute.") from None
    except subprocess.TimeoutExpired:
        raise PictureError(f"{name} could not be decoded in {PATIENCE:.0f} seconds. Save it again as PNG and choose that.") from None
    if done.returncode == REFUSED:
        raise PictureError(done.stdout.decode())
    if done.returncode:
        raise PictureError(f"{name} takes more time or memory to decode than a picture does. Save it again as PNG and choose that.")
    return done.stdout


def printable(name: str) -> str:
    """Return a file's name as a single line, without characters that cannot be printed or that reverse the direction of writing.

    >>> printable("exe\u202egnp.png")
    'exegnp.png'
    """
    return " ".join("".join(letter for letter in name if letter.isprintable()).split())
