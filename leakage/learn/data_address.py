"""The address of the lessons' data: a folder named by a hash of its content, so that a browser may cache it."""

import hashlib
from functools import cache

from leakage.learn.lessons import FOLDER


@cache
def data_version() -> str:
    """Hash the content of all lessons and recordings, to 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for file in sorted(FOLDER.rglob("*.*")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(FOLDER)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def data_folder(base: str) -> str:
    """Return the address of the folder with lessons and recordings, without the host; `base` is the prefix of all routes, or empty."""
    return f"{base}/api/learn/{data_version()}"
