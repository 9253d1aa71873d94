"""The address of the data of the lessons: a folder that is named by its content, so that a browser may keep what lies in it."""

import hashlib
from functools import cache

from leakage.learn.lessons import FOLDER


@cache
def data_version() -> str:
    """Names the content of all lessons and recordings."""
    digest = hashlib.sha256()
    for file in sorted(FOLDER.rglob("*.*")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(FOLDER)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def data_folder(base: str) -> str:
    """The folder, without the host. `base`: the prefix of our routes, such as `/gle`, or nothing."""
    return f"{base}/api/learn/{data_version()}"
