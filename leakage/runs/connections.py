"""One SQLite file for many threads and processes: connections, transactions, and what still works on a full disk."""

import contextlib
import errno
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from sqlite3 import Connection, Row
from typing import TypeVar

__all__ = ["Connection", "Database", "Row", "StoreError", "is_full"]

PAGE = 4096  # bytes
RESERVE = 2**20  # bytes of the disk that pictures may not use, and as many set aside in a file: room for last words and for deleting
StoreError = sqlite3.Error  # what any method here may raise: the disk is full, or another process writes for too long
T = TypeVar("T")
FULL = "The disk is full: this run could not be kept. Delete some runs (or free some disk) and press Run again."
PRAGMAS = (
    "journal_mode = WAL",
    "wal_autocheckpoint = 128",  # pages: half the reserve, so that the log can be moved into the file even on a full disk
    "synchronous = NORMAL",
    "foreign_keys = ON",
)


class Database:
    """A file with these tables. Each thread has a connection of its own."""

    def __init__(self, path: Path, *, tables: str, max_mb: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.pages = path, max_mb * 2**20 // PAGE
        self.reserve = path.with_suffix(".reserve")
        self.local = threading.local()
        with self.write() as db:
            if db.execute("PRAGMA user_version").fetchone()[0] == 0:
                for statement in tables.split(";\n"):
                    db.execute(statement)
                db.execute("PRAGMA user_version = 1")
        self.set_reserve_aside()

    def read(self) -> Connection:
        """This thread's connection."""
        if not hasattr(self.local, "db"):
            db = sqlite3.connect(self.path, timeout=10, isolation_level=None)
            db.row_factory = Row
            for pragma in (*PRAGMAS, f"max_page_count = {self.pages}"):
                db.execute(f"PRAGMA {pragma}")
            self.local.db = db
        return self.local.db  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: all of it, or nothing."""
        db = self.read()
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
            db.execute("COMMIT")  # may fail as well, when the disk is full
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def write_using_reserve(self, work: Callable[[Connection], T]) -> T:
        """Write what makes room, or says that there is none: on a full disk into the bytes set aside, and a little beyond the limit."""
        try:
            with self.write() as db:
                return work(db)
        except StoreError as error:
            if not is_full(error):
                raise
            self.reserve.unlink(missing_ok=True)
            pages = self.read().execute("PRAGMA page_count").fetchone()[0]
            self.read().execute(f"PRAGMA max_page_count = {pages + RESERVE // PAGE}")
            try:
                with self.write() as db:
                    return work(db)
            finally:
                self.read().execute(f"PRAGMA max_page_count = {self.pages}")

    def make_sure_of_room(self, size: int) -> None:
        """Fail as on a full disk while there is room for last words: the file must not grow into the disk's last bytes."""
        if shutil.disk_usage(self.path.parent).free < RESERVE:
            spare = self.read().execute("PRAGMA freelist_count").fetchone()[0] * PAGE
            if spare < 2 * size:
                raise sqlite3.OperationalError("the disk is nearly full")

    def set_reserve_aside(self) -> None:
        """Keep some bytes for the day on which somebody else fills the disk; does nothing when it is nearly full already."""
        if not self.reserve.exists() and shutil.disk_usage(self.path.parent).free > 2 * RESERVE:
            try:
                self.reserve.write_bytes(b"\0" * RESERVE)
            except OSError:
                self.reserve.unlink(missing_ok=True)

    def empty_log(self) -> None:
        """Move the write-ahead log into the file and cut it: what was deleted still stands in it."""
        with contextlib.suppress(StoreError):  # somebody reads for very long: it is emptied later
            self.read().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close this thread's connection."""
        if hasattr(self.local, "db"):
            self.local.db.close()
            del self.local.db


def is_full(error: BaseException) -> bool:
    """Whether it was the disk, or the file's own limit, that made a write fail."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOSPC
    return isinstance(error, sqlite3.OperationalError) and ("full" in str(error) or "disk I/O" in str(error))
