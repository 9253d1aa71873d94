"""An SQLite file for many threads and processes: connections, transactions, and writes on a full disk."""

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
RESERVE = 2**20  # bytes of the disk that pictures may not use; as many are set aside in a file, so that runs can still be ended and deleted
StoreError = sqlite3.Error  # raised by all methods here: the disk is full, or another process writes for too long
Migration: TypeAlias = Callable[[Connection], None]  # one step from a schema to the next; see migrations.py
T = TypeVar("T")
FULL = "The disk is full: this run could not be kept. Delete some runs (or free some disk) and press Run again."
PATIENCE = 10.0  # seconds that a connection waits for other connections
PRAGMAS = (
    "journal_mode = WAL",
    "wal_autocheckpoint = 128",  # pages: half the reserve, so that the log can be moved into the file even on a full disk
    "synchronous = NORMAL",
    "foreign_keys = ON",
    "secure_delete = ON",  # deleted data is overwritten, whatever SQLite's default is
)
NEWER = (
    "{} was written by a newer version of this program: its schema has the number {}, and this version knows those up to {}. "
    "Update the program, or set LEAKAGE_HOME to another folder."
)
log = logging.getLogger(__name__)


class NewerStoreError(BrokenHomeError):
    """The file was written by a newer version of this program, so this version neither reads nor writes it."""


def set_pragma(db: Connection, pragma: str) -> None:
    """Set a pragma, and wait while another process has the file: of two processes that change to WAL, SQLite refuses one at once."""
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
    """An SQLite file whose schema is created and updated by migrations. Each thread has another connection.

    Args:
        path: the file.
        migrations: the steps of the schema, from an empty file on.
        max_mb: the largest size of the file.
    """

    def __init__(self, path: Path, *, migrations: Sequence[Migration], max_mb: float) -> None:
        self.path, self.pages, self.migrations = path, int(max_mb * 2**20) // PAGE, migrations
        self.reserve = path.with_suffix(".reserve")
        self.local = threading.local()
        self.make_room: Callable[[], bool] = lambda: False  # set by the store, which knows what can be removed
        try:
            self.open()
        except (OSError, sqlite3.Error) as error:
            self.close()
            raise in_plain_words(error, path) or error from None

    def open(self) -> None:
        """Open or create the file and migrate it to the newest schema; on a full disk, use the bytes that were set aside."""
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
        """Return the number of the file's last migration. Raises NewerStoreError if this version does not have that migration."""
        number = int(db.execute("PRAGMA user_version").fetchone()[0])
        if number > len(self.migrations):
            raise NewerStoreError(NEWER.format(self.path, number, len(self.migrations)))
        return number

    def migrate(self, db: Connection) -> None:
        """Execute the migrations that the file has not had yet; another process may have executed them while this process waited."""
        before = self.schema(db)
        for step in self.migrations[before:]:
            step(db)
        db.execute(f"PRAGMA user_version = {len(self.migrations)}")
        if 0 < before < len(self.migrations):
            log.info("%s: schema %d is now %d", self.path, before, len(self.migrations))

    def read(self) -> Connection:
        """Return this thread's connection, opened at the first call."""
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
        """Execute `work` in a transaction; if the store is full, remove old runs and try once more. Return the result of `work`."""
        try:
            with self.write() as db:
                return work(db)
        except StoreError as error:
            if not is_full(error) or not self.make_room():
                raise
        with self.write() as db:
            return work(db)

    def write_using_reserve(self, work: Callable[[Connection], T]) -> T:
        """Execute `work` in a transaction that must succeed on a full disk too, and return its result.

        For writes that make room or report the lack of room: they may use the bytes set aside, and a little more than the store's limit.
        """
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
        """Raise the error of a full disk if `size` more bytes would leave less than RESERVE on the disk."""
        if shutil.disk_usage(self.path.parent).free < RESERVE:
            spare = self.read().execute("PRAGMA freelist_count").fetchone()[0] * PAGE
            if spare < 2 * size:
                raise sqlite3.OperationalError("the disk is nearly full")

    def set_reserve_aside(self) -> None:
        """Set RESERVE bytes aside in a file, for the case that another program fills the disk; do nothing if the disk is nearly full."""
        if not self.reserve.exists() and shutil.disk_usage(self.path.parent).free > 2 * RESERVE:
            try:
                self.reserve.write_bytes(b"\0" * RESERVE)
            except OSError:
                self.reserve.unlink(missing_ok=True)

    def empty_log(self) -> bool:
        """Move the write-ahead log, which may hold deleted data, into the file and empty it; return False while another process reads."""
        with contextlib.suppress(StoreError):
            return bool(self.read().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)
        return False

    def close(self) -> None:
        """Close this thread's connection."""
        if hasattr(self.local, "db"):
            self.local.db.close()
            del self.local.db


def is_full(error: BaseException) -> bool:
    """Return whether a write failed because the disk is full, or because the file has reached its limit."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOSPC
    return isinstance(error, sqlite3.OperationalError) and ("full" in str(error) or "disk I/O" in str(error))
