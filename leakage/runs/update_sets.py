"""The files of recorded updates: each set in a folder of the home, limited for each owner and in all, and deleted with its runs.

Beside the folder of a set lie its drafts (files that are being sent) and, once a run uses the set, its mark.
"""

import hashlib
import math
import os
import re
import secrets
import shutil
import time
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from leakage.runs.connections import Database
from leakage.spec.audit_task import FILE_SET
from leakage.spec.update_card import FILE as CARD

FOLDER = "updates"  # below the home
ROLES = ("before", "after", "difference", "gradient")
KINDS = ("npz", "safetensors")
ARCHIVE = "update.zip"
NAMES = (*(f"{role}.{kind}" for role in ROLES for kind in KINDS), ARCHIVE, CARD)  # all names that a file may have here
MB = 2**20
FILE_MB = 200  # largest size of a file
CARD_MB = 1 / 16  # largest size of a card
OWN_MB = 800  # largest size of the files of one owner, with those that are being sent
ALL_MB = 4000  # largest size of the files of all owners together
SPARE_MB = 500  # of the disk, which stay free for the store
UNUSED = 24 * 3600.0  # seconds after which files that no run has used are deleted
OPEN = 2000  # sets that pages may fill at a time
DRAFT, USED = ".part", ".used"
UNASKED = "No page of this browser has asked for this file. Reload the page, and choose the file again."
NO_LENGTH = "A file needs its length (the header Content-Length), so that it is known whether there is room for it."
TOO_LARGE = "A file may have {} MB. This one has {:.1f} MB."
CARD_TOO_LARGE = "A card (card.json) has less than {:.0f} kB. This file has {:.0f} kB."
OWN_FULL = f"Your recorded updates may hold {OWN_MB} MB together. Delete audits on the page Your runs, or press Delete all mine."
ALL_FULL = "There is no room for this file now. Try again later."
IN_USE = "A run uses these files. Press Choose other files first."


class UpdateSets:
    """The sets of files in a home. A set's name is a hash of its owner, a slash, and a random text."""

    def __init__(self, database: Database) -> None:
        self.database, self.folder = database, database.path.parent / FOLDER
        self.opened = OrderedDict[str, None]()  # sets that a page of this process may fill
        self.coming = defaultdict[str, int](int)  # by owner's hash: bytes that are being sent

    # ------------------------------------------------------------ filling

    def open(self, owner: str) -> str:
        """Return the name of a new set, which pages of this owner may fill; nothing is written yet."""
        name = f"{_hash(owner)}/{secrets.token_urlsafe(12)}"
        self.opened[name] = None
        while len(self.opened) > OPEN:
            self.opened.popitem(last=False)
        return name

    def is_open(self, name: str, owner: str) -> bool:
        """Return whether a page of this owner may fill the set."""
        return name in self.opened and name.startswith(f"{_hash(owner)}/")

    def path(self, name: str) -> Path:
        """Return the folder of a set. Raises ValueError if `name` is no set's name."""
        if not re.fullmatch(FILE_SET, name):
            raise ValueError(f"a set of files has a name like 0123456789abcdef/abcdefghijklmnop, got {name!r}")
        return self.folder / name

    def files(self, name: str) -> dict[str, int]:
        """Return the files of a set with their sizes in bytes; none if there is no such set."""
        with suppress(FileNotFoundError):
            return {path.name: path.stat().st_size for path in sorted(self.path(name).iterdir())}
        return {}

    def refusal(self, name: str, owner: str, file: str, length: str) -> tuple[int, str] | None:
        """Return the HTTP status and the sentence with which a file is refused; None if it may be sent.

        Args:
            name: the set.
            owner: the owner of the browser that sends the file.
            file: the name that the file will have here.
            length: its size in bytes, as the header Content-Length says it.
        """
        if file not in NAMES or not self.is_open(name, owner):
            return 403, UNASKED
        if not (length.isascii() and length.isdigit()):
            return 411, NO_LENGTH
        size, limit = int(length), CARD_MB if file == CARD else FILE_MB
        if size > limit * MB:
            return 413, CARD_TOO_LARGE.format(CARD_MB * 1024, size / 1024) if file == CARD else TOO_LARGE.format(FILE_MB, size / MB)
        if self.has_runs(name):
            return 409, IN_USE
        replaced = self.files(name).get(file, 0)
        if self.size_of(_hash(owner)) + size - replaced > OWN_MB * MB:
            return 413, OWN_FULL
        if self.size_of() + size - replaced > ALL_MB * MB or shutil.disk_usage(self.database.path.parent).free < size + SPARE_MB * MB:
            return 503, ALL_FULL
        return None

    @contextmanager
    def receive(self, name: str, file: str, size: int) -> Iterator[IO[bytes]]:
        """Yield a draft to write a file of `size` bytes into; it becomes the file at the end, and is deleted after an error.

        Raises:
            OSError: the disk is full, or the set was deleted meanwhile.
            ValueError: the draft has another size, or a run uses the set.
        """
        target, owner = self.path(name) / file, name.split("/")[0]
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = target.parent.with_name(f"{target.parent.name}.{secrets.token_hex(4)}{DRAFT}")
        self.coming[owner] += size
        try:
            with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as opened:
                yield opened
            if draft.stat().st_size != size:
                raise ValueError(f"{file}: {size} bytes were announced, {draft.stat().st_size} came. Send it again.")
            if self.has_runs(name):  # a run has begun meanwhile
                raise ValueError(IN_USE)
            draft.replace(target)
        finally:
            self.coming[owner] -= size
            draft.unlink(missing_ok=True)
            if not any(target.parent.parent.glob(f"{target.parent.name}/*")):
                _remove(target.parent)

    def remove(self, name: str, file: str) -> None:
        """Delete a file of a set."""
        (self.path(name) / file).unlink(missing_ok=True)

    def size_of(self, owner: str = "*") -> int:
        """Return the bytes of all files of an owner, given by the hash, arrived or being sent; without one, of all owners."""
        size = sum(self.coming.values()) if owner == "*" else self.coming.get(owner, 0)
        for folder, _, files in os.walk(self.folder if owner == "*" else self.folder / owner):  # a set may vanish meanwhile
            for file in files:
                with suppress(FileNotFoundError):
                    size += 0 if file.endswith(DRAFT) else Path(folder, file).stat().st_size
        return size

    # ------------------------------------------------------------ runs, and deleting

    def has_runs(self, name: str) -> bool:
        """Return whether a run uses a set."""
        where = "SELECT 1 FROM runs WHERE kind = 'audit' AND json_extract(experiment, '$.files') = ?"
        return self.database.read().execute(where, (name,)).fetchone() is not None

    def mark_used(self, name: str) -> None:
        """Note that a run uses a set: with its last run, it is deleted."""
        self.path(name).with_name(self.path(name).name + USED).touch(mode=0o600)

    def remove_unheld(self) -> None:
        """Delete the sets whose last run is gone, and files that no run has used for a day."""
        for folder in self.folder.glob("*/*/"):
            used, old = folder.with_name(folder.name + USED), time.time() - UNUSED
            if (used.exists() or _newest(folder) < old) and not self.has_runs(f"{folder.parent.name}/{folder.name}"):
                used.unlink(missing_ok=True)
                _remove(folder)
        for draft in self.folder.glob(f"*/*{DRAFT}"):
            if _newest(draft) < time.time() - UNUSED:
                draft.unlink(missing_ok=True)

    def remove_of(self, owner: str) -> None:
        """Delete all files of an owner that no run uses, those that are being sent too."""
        for name in [name for name in self.opened if self.is_open(name, owner)]:
            del self.opened[name]
        for path in self.folder.glob(f"{_hash(owner)}/*"):
            if not self.has_runs(f"{path.parent.name}/{path.name.split('.')[0]}"):
                path.unlink(missing_ok=True) if path.is_file() else shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            (self.folder / _hash(owner)).rmdir()


def _hash(owner: str) -> str:
    return hashlib.sha256(owner.encode()).hexdigest()[:16]


def _newest(path: Path) -> float:
    """Return when a file, or the newest file in a folder, was last written; infinity if it is gone."""
    try:
        return max(float(entry.stat().st_mtime) for entry in (path, *(path.iterdir() if path.is_dir() else ())))
    except FileNotFoundError:
        return math.inf


def _remove(folder: Path) -> None:
    """Delete a folder, and the owner's folder if it is then empty."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.parent.rmdir()
