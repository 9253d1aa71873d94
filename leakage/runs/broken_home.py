"""Errors of the home folder or its store as sentences: the file, what is wrong with it, and the remedy."""

import errno
import os
import shutil
import sqlite3
from pathlib import Path

from leakage.settings import Settings

ROOM = 65536  # bytes of free disk that SQLite needs to open a file
DO = {
    "damaged": (
        "{0} is damaged ({1}). Its runs can be saved as far as they can be read: end the program, and start it again or run "
        "`python -m leakage admin repair`. The damaged file is kept beside it."
    ),
    "full": "The disk that holds {0} is full ({1}). Make room on it, or set LEAKAGE_HOME to a folder on another disk, and start again.",
    "read-only": "{0} cannot be written ({1}). Let this user write it and its folder, or set LEAKAGE_HOME to a folder of this user.",
    "closed": (
        "{0} cannot be opened ({1}): expected is a folder that this user may write, and in it a file. Move away what is in its place, "
        "or set LEAKAGE_HOME to another folder."
    ),
    "busy": "{0} is held by another process for too long ({1}). Wait until it has finished, or end it, and try again.",
    "disk": "The disk does not read or write {0} ({1}). Look after the disk; a copy of the file on another disk may still be read.",
}
OF_SQLITE = {"CORRUPT": "damaged", "NOTADB": "damaged", "FULL": "full", "READONLY": "read-only", "PERM": "read-only"}
OF_SQLITE |= {"CANTOPEN": "closed", "BUSY": "busy", "LOCKED": "busy", "IOERR": "disk"}
OF_SYSTEM = {errno.ENOSPC: "full", errno.EDQUOT: "full", errno.EROFS: "read-only", errno.EACCES: "read-only", errno.EPERM: "read-only"}
OF_SYSTEM |= {errno.ENOTDIR: "closed", errno.EEXIST: "closed", errno.EISDIR: "closed", errno.EIO: "disk"}


class BrokenHomeError(sqlite3.Error, RuntimeError):
    """The home folder or its store cannot be used; the message says which file, why, and what to do."""


def kind_of(error: BaseException) -> str:
    """Return the kind of an error of the home folder, a key of the sentences in DO such as "full"; "" for an error without a sentence.

    >>> kind_of(OSError(errno.EROFS, "Read-only file system"))
    'read-only'
    """
    if isinstance(error, OSError):
        return OF_SYSTEM.get(error.errno or 0, "")
    name = getattr(error, "sqlite_errorname", "").removeprefix("SQLITE_")
    return OF_SQLITE.get(name.partition("_")[0], "")


def in_plain_words(error: BaseException, path: Path) -> BrokenHomeError | None:
    """Return an error whose message says which file has a problem, which problem, and what to do; None if DO has no sentence for it.

    Args:
        error: an error of the operating system or of SQLite.
        path: the file, unless `error` names a file.
    """
    if isinstance(error, BrokenHomeError):
        return error
    kind = kind_of(error)
    if not kind:
        return None
    if isinstance(error, OSError):
        return BrokenHomeError(DO[kind].format(error.filename2 or error.filename or path, error.strerror))
    if kind == "closed" and path.is_file() and not os.access(path.parent, os.W_OK):  # SQLite could not create a file beside it
        kind = "read-only"
    if kind == "disk" and shutil.disk_usage(path.parent).free < ROOM:  # SQLite reports a full disk with the same error
        kind = "full"
    return BrokenHomeError(DO[kind].format(path, error))


def of_the_store(error: BaseException, config: Settings) -> BrokenHomeError | None:
    """Return an error whose message says which problem the store of a home has, and what to do; None if DO has no sentence for it."""
    return in_plain_words(error, config.store)
