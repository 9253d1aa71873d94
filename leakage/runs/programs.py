"""Which program has its dispatcher at work on a home. Two versions may be started on one: the newer wins.

Of the same folder, the one on the disk is the newer: it was changed. Of two folders it is the one with the higher package version; of
equal ones the program with the latest change among the files that a result depends on.
"""

import contextlib
import fcntl
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from leakage.settings import PACKAGE, ROOT, Settings
from leakage.spec import catalog

NEWER = (
    "A newer version of this program ({}, in {}) is at work on {}. This one starts no runs meanwhile. Open the page of the newer one, "
    "or set LEAKAGE_HOME to another folder."
)


@dataclass(frozen=True, order=True)
class Program:
    """A version of this program; the greater is the newer."""

    release: tuple[int, ...]  # the package's
    changed: int  # when a file that results depend on was changed, in nanoseconds since 1970
    version: str  # of the catalog: equal ones compute the same
    root: str = field(compare=False)  # its folder

    @staticmethod
    def here() -> "Program":
        """Return the program on the disk."""
        changed = max(file.stat().st_mtime_ns for file in catalog.sources())
        return Program(_release(_package_version()), changed, catalog.version(), str(ROOT))

    @staticmethod
    def of(words: str) -> "Program":
        """Read a program from the text of a lock file; that of 0.2.0 holds nothing but the version."""
        version, release, changed, root = [*words.split(maxsplit=3), "0", "0", ""][:4]
        return Program(_release(release), int(changed), version, root)

    @property
    def number(self) -> str:
        """The package's version."""
        return ".".join(map(str, self.release))

    @property
    def words(self) -> str:
        """All of it on one line."""
        return f"{self.version} {self.number} {self.changed} {self.root}"

    def replaces(self, other: "Program") -> bool:
        """Return whether this program takes over from `other`."""
        return self.version != other.version and (self.root == other.root or self > other)


def _package_version() -> str:
    """Read the package's version from the disk: it may have changed since this process began."""
    found = re.search(r'^__version__ = "(.+)"$', (PACKAGE / "__init__.py").read_text(), re.MULTILINE)
    return found[1] if found else "0"


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.split("+")[0])[:3])


# ---------------------------------------------------------------- the lock of the dispatcher


@dataclass(frozen=True)
class Holder:
    """The dispatcher at work: its process id and its program, or None while it is taking over."""

    pid: int
    program: Program | None


def lock_path(config: Settings) -> Path:
    """Return the path of the file that the dispatcher of a home locks."""
    return config.home / "dispatch.lock"


def take_lock(config: Settings) -> IO[str] | None:
    """Become the dispatcher of this home for as long as the returned file is open; return None when there is one already."""
    config.home.mkdir(parents=True, exist_ok=True)
    lock = lock_path(config).open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.truncate(0)
        lock.write(f"{os.getpid()} {Program.here().words}")
        lock.flush()
    except BlockingIOError:
        lock.close()
        return None
    except OSError:  # a full disk
        with contextlib.suppress(OSError):
            lock.close()
        raise
    return lock


def lock_holder(config: Settings) -> Holder | None:
    """Return the process and program of the dispatcher at work, or None."""
    try:
        with lock_path(config).open("r") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                pid, _, words = lock.read().partition(" ")
                return Holder(int(pid), Program.of(words)) if words else Holder(0, None)
    except FileNotFoundError:
        pass
    return None
