"""The program that computes the runs of a home. If two versions are started on one home, the newer version takes over.

If both have the same folder, the version on the disk is the newer. Otherwise it is the program with the higher package version, or, if
these are equal, with the latest change among the files on which results depend.
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

    release: tuple[int, ...]
    """The numbers of the package's version."""
    changed: int
    """When a file on which results depend was last changed, in nanoseconds since 1970."""
    version: str
    """The version of the catalog; programs with equal versions compute the same results."""
    root: str = field(compare=False)
    """The folder of the program."""

    @staticmethod
    def here() -> "Program":
        """Return the version of this program that its files have now; they may have changed since this process began."""
        changed = max(file.stat().st_mtime_ns for file in catalog.sources())
        return Program(_release(_package_version()), changed, catalog.version(), str(ROOT))

    @staticmethod
    def of(words: str) -> "Program":
        """Return the program that the text of a lock file names; version 0.2.0 wrote only `version` into it."""
        version, release, changed, root = [*words.split(maxsplit=3), "0", "0", ""][:4]
        return Program(_release(release), int(changed), version, root)

    @property
    def number(self) -> str:
        """The package's version."""
        return ".".join(map(str, self.release))

    @property
    def words(self) -> str:
        """The text for a lock file, from which `of` reads the program."""
        return f"{self.version} {self.number} {self.changed} {self.root}"

    def replaces(self, other: "Program") -> bool:
        """Return whether this program takes over from `other`."""
        return self.version != other.version and (self.root == other.root or self > other)


def _package_version() -> str:
    """Return the package's version on the disk, which may have changed since this process began."""
    match = re.search(r'^__version__ = "(.+)"$', (PACKAGE / "__init__.py").read_text(), re.MULTILINE)
    return match[1] if match else "0"


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.split("+")[0])[:3])


# ---------------------------------------------------------------- the lock of the dispatcher


@dataclass(frozen=True)
class Holder:
    """The dispatcher of a home: its process id and its program; the program is None while the dispatcher is taking over."""

    pid: int
    program: Program | None


def lock_path(config: Settings) -> Path:
    """Return the path of the file that the dispatcher of a home locks."""
    return config.home / "dispatch.lock"


def take_lock(config: Settings) -> IO[str] | None:
    """Lock a home for this process as its dispatcher, until the returned file is closed; return None if another dispatcher has it."""
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
    """Return the process and program of the home's dispatcher; None if there is no dispatcher."""
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
