"""One SQLite file for many threads and processes: connections, transactions, and what still works on a full disk."""

import contextlib
import errno
import logging
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from sqlite3 import Connection, Row
from typing import TypeAlias, TypeVar

from leakage.runs.broken_home import BrokenHomeError, in_plain_words

__all__ = ["Connection", "Database", "Migration", "NewerStoreError", "Row", "StoreError", "is_full"]

PAGE = 4096  # bytes
RESERVE = 2**20  # bytes of the disk that pictures may not use, and as many set aside in a file: room for last words and for deleting
StoreError = sqlite3.Error  # what any method here may raise: the disk is full, or another process writes for too long
Migration: TypeAlias = Callable[[Connection], None]  # one step from a schema to the next; see migrations.py
T = TypeVar("T")
FULL = "The disk is full: this run could not be kept. Delete some runs (or free some disk) and press Run again."
PATIENCE = 10.0  # seconds that a connection waits for others
PRAGMAS = (
    "journal_mode = WAL",
    "wal_autocheckpoint = 128",  # pages: half the reserve, so that the log can be moved into the file even on a full disk
    "synchronous = NORMAL",
    "foreign_keys = ON",
    "secure_delete = ON",  # what is deleted is overwritten, whatever the library was built to do
)
NEWER = (
    "{} was written by a newer version of this program: its schema has the number {}, and this version knows those up to {}. "
    "Update the program, or set LEAKAGE_HOME to another folder."
)
log = logging.getLogger(__name__)


class NewerStoreError(BrokenHomeError):
    """The file belongs to a newer version of this program, which may mean other things by it: it is neither read nor written."""


def set_pragma(db: Connection, pragma: str) -> None:
    """Set a pragma, and wait while another process has the file: of two processes that change it to WAL, SQLite refuses one at once."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            db.execute(f"PRAGMA {pragma}")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


class Database:
    """A file that these migrations have made, or brought up to date. Each thread has a connection of its own."""

    def __init__(self, path: Path, *, migrations: Sequence[Migration], max_mb: float) -> None:
        self.path, self.pages, self.migrations = path, int(max_mb * 2**20) // PAGE, migrations
        self.reserve = path.with_suffix(".reserve")
        self.local = threading.local()
        self.make_room: Callable[[], bool] = lambda: False  # set by the store: it knows what can go
        try:
            self.open()
        except (OSError, sqlite3.Error) as error:
            self.close()
            raise in_plain_words(error, path) or error from None

    def open(self) -> None:
        """Open the file, or make it, and bring it up to date; on a full disk with the bytes that were set aside."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            version = self.schema(self.read())
        except StoreError as error:
            if not is_full(error) or not self.reserve.exists():
                raise
            self.reserve.unlink(missing_ok=True)
            version = self.schema(self.read())
        if version < len(self.migrations):
            self.write_using_reserve(self.migrate)
        self.set_reserve_aside()

    def schema(self, db: Connection) -> int:
        """Return the number of the last migration that the file has seen. Raises NewerStoreError for one that this version lacks."""
        number = int(db.execute("PRAGMA user_version").fetchone()[0])
        if number > len(self.migrations):
            raise NewerStoreError(NEWER.format(self.path, number, len(self.migrations)))
        return number

    def migrate(self, db: Connection) -> None:
        """Take the steps that are left: none, where another process took them while this one waited for the lock."""
        before = self.schema(db)
        for step in self.migrations[before:]:
            step(db)
        db.execute(f"PRAGMA user_version = {len(self.migrations)}")
        if 0 < before < len(self.migrations):
            log.info("%s: schema %d is now %d", self.path, before, len(self.migrations))

    def read(self) -> Connection:
        """Return this thread's connection."""
        if not hasattr(self.local, "db"):
            db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
            try:
                self.schema(db)
                for pragma in (*PRAGMAS, f"max_page_count = {self.pages}"):
                    set_pragma(db, pragma)
            except BaseException:
                db.close()
                raise
            db.row_factory = Row
            self.local.db = db
        return self.local.db  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction: all of its statements take effect, or none."""
        db = self.read()
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
            db.execute("COMMIT")  # may fail as well, when the disk is full
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def write_making_room(self, work: Callable[[Connection], T]) -> T:
        """Write what may find no room; then old runs make some, and it is written again."""
        try:
            with self.write() as db:
                return work(db)
        except StoreError as error:
            if not is_full(error) or not self.make_room():
                raise
        with self.write() as db:
            return work(db)

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

    def empty_log(self) -> bool:
        """Move the write-ahead log into the file and cut it: what was deleted still stands in it. False while somebody reads: try again."""
        with contextlib.suppress(StoreError):
            return bool(self.read().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)
        return False

    def close(self) -> None:
        """Close this thread's connection."""
        if hasattr(self.local, "db"):
            self.local.db.close()
            del self.local.db


def is_full(error: BaseException) -> bool:
    """Return whether a write failed because the disk, or the file up to its own limit, is full."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOSPC
    return isinstance(error, sqlite3.OperationalError) and ("full" in str(error) or "disk I/O" in str(error))
