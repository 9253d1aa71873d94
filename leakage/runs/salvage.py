"""Salvage of a damaged store: its readable rows are copied into a new file, and the damaged file is kept beside it."""

import contextlib
import json
import logging
import shutil
import sqlite3
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection

from leakage.runs.broken_home import BrokenHomeError, kind_of
from leakage.runs.connections import PAGE
from leakage.runs.migrations import MIGRATIONS
from leakage.runs.notes import RECORDINGS
from leakage.runs.programs import lock_path, take_lock
from leakage.runs.store import Store
from leakage.settings import Settings

BESIDE = ("", "-wal", "-shm")  # endings of a database and of the files that SQLite keeps beside it
MAGIC, TABLE_PAGES = b"SQLite format 3\0", (5, 13)  # see https://www.sqlite.org/fileformat.html
KEPT = "store.damaged-{}.db"
LOOK = 1.0  # seconds for which a store is checked at a start
SKIPPED = 1_000_000  # numbers of events that are skipped, since browsers may have cached pictures under lost numbers
JSON_COLUMNS = {"runs": ("experiment", "result"), "events": ("body",), "notes": ("body",)}
SAVED = "{} was damaged ({}). {} runs were saved into a new file{}. The damaged one is kept as {}, for {} at most: uploads may be in it."
UNREAD = ", {} of what it held could not be read"
IN_USE = (
    "{} is damaged ({}), and another process of this program uses it (see {}). End that process, which leaves by itself within a minute "
    "when no server runs, and start again: then what can be read is saved."
)
NO_ROOM = "{} is damaged ({}). Saving it needs {} MB of free disk for a copy and a new file, and there are {}. Make room and start again."
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Salvaged:
    """The result of salvaging a store: the path of the damaged file, the damage, the numbers of saved runs and rows, and of lost rows."""

    kept: Path
    why: str
    runs: int
    rows: int
    unread: int

    def words(self, config: Settings) -> str:
        """Return the result as sentences."""
        unread = UNREAD.format(f"{self.unread} rows" if self.unread > 1 else "1 row") if self.unread else ""
        return SAVED.format(config.store, self.why, self.runs, unread, self.kept, config.upload_life)


def open_store(config: Settings) -> Store:
    """Open and return the store of a home; if it is damaged, salvage it first. Raises BrokenHomeError."""
    if salvaged := save_if_damaged(config):
        log.warning("%s", salvaged.words(config))
    return Store(config.store, max_mb=config.store_mb)


def save_if_damaged(config: Settings, *, seconds: float = LOOK) -> Salvaged | None:
    """Check the store of a home for up to `seconds`, and salvage it if it is damaged; return None if no damage was found.

    Raises:
        BrokenHomeError: the store is damaged and cannot be salvaged now.
    """
    why = fault_of(config.store, seconds=seconds) if config.store.is_file() else ""
    if not why:
        return None
    lock = take_lock(config)
    if lock is None:
        raise BrokenHomeError(IN_USE.format(config.store, why, lock_path(config)))
    with lock:
        return _save(config, why)


def fault_of(path: Path, *, seconds: float) -> str:
    """Describe the damage that SQLite finds in a file within `seconds`; "" if it finds none."""
    deadline = time.monotonic() + seconds
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=seconds)) as db:
            db.set_progress_handler(lambda: time.monotonic() > deadline, 100)
            verdict = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
            return "" if verdict == "ok" else verdict.removeprefix("*** in database main ***").strip()
    except sqlite3.Error as error:
        return str(error) if kind_of(error) == "damaged" else ""


def _save(config: Settings, why: str) -> Salvaged:
    path = config.store
    size, free = path.stat().st_size, shutil.disk_usage(path.parent).free
    if free < 2 * size + 2**20:
        raise BrokenHomeError(NO_ROOM.format(path, why, 1 + 2 * size // 2**20, free // 2**20))
    kept = path.with_name(KEPT.format(time.strftime("%Y%m%d-%H%M%S", time.gmtime())))
    for end in BESIDE:
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(f"{path}{end}", f"{kept}{end}")
            Path(f"{kept}{end}").chmod(0o600)
    _give_header(path)
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as new:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as old:
            rows, unread = copy_readable(old, new)
        runs = int(new.execute("SELECT COUNT(*) FROM runs").fetchone()[0])
    for end in BESIDE[1:]:
        Path(f"{path}{end}").unlink(missing_ok=True)
    draft.chmod(0o600)
    draft.replace(path)
    return Salvaged(kept, why, runs, rows, unread)


def _give_header(path: Path) -> None:
    """Write the header (the first 100 bytes, with sizes and versions) anew, if it is damaged and the rest looks like a store."""
    with path.open("r+b") as file:
        before = file.read(101)
        if len(before) == 101 and not before.startswith(MAGIC) and before[100] in TABLE_PAGES:
            numbers = (1, path.stat().st_size // PAGE, 0, 0, 1, 4, 0, 0, 1, len(MIGRATIONS), 0, 0)
            file.seek(0)
            file.write(MAGIC + struct.pack(">HBBBBBB12I20x2I", PAGE, 2, 2, 0, 64, 32, 32, *numbers, 1, 3_040_000))


def copy_readable(old: Connection, new: Connection) -> tuple[int, int]:
    """Create the tables in an empty file and copy all readable rows of a damaged file into it; return the numbers of saved and lost rows.

    Rows of lost runs, and rows with invalid JSON, are not copied.
    """
    version = _version(old)
    if version > len(MIGRATIONS):
        raise BrokenHomeError("The store is damaged and of a newer version of this program: save it with that version.")
    new.execute("BEGIN")
    for step in MIGRATIONS[: version or len(MIGRATIONS)]:
        step(new)
    new.execute(f"PRAGMA user_version = {version or len(MIGRATIONS)}")
    new.execute("COMMIT")
    new.execute("PRAGMA foreign_keys = OFF")
    new.execute("BEGIN")
    rows, total = 0, 0
    for (table,) in new.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall():
        columns = [str(column[1]) for column in new.execute(f"PRAGMA table_info({table})")]
        blanks = ", ".join("?" * (len(columns) + 1))
        checked = [columns.index(name) for name in JSON_COLUMNS.get(table, ())]
        saved = 0
        for row in readable_rows(old, table, columns):
            if all(_is_json(row[index + 1]) for index in checked):
                saved += new.execute(f"INSERT OR IGNORE INTO {table} (rowid, {', '.join(columns)}) VALUES ({blanks})", row).rowcount
        rows, total = rows + saved, total + max(saved, _count(old, table))
    rows -= _delete_orphans(new)
    new.execute("DELETE FROM notes WHERE name = ?", (RECORDINGS,))  # recorded runs are then added again, without gaps
    if new.execute("SELECT 1 FROM sqlite_schema WHERE name = 'models'").fetchone():  # the model of a lost run stays on the disk
        new.execute("DELETE FROM models WHERE folder NOT IN (SELECT model_folder FROM runs WHERE model_folder IS NOT NULL)")
    for (last,) in new.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchall():
        new.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'events'", (last + SKIPPED,))
    new.execute("COMMIT")
    return rows, total - rows


def readable_rows(db: Connection, table: str, columns: list[str]) -> Iterator[tuple[object, ...]]:
    """Yield every readable row of a table, its rowid first, and skip unreadable rows."""
    last = 0
    names = ", ".join(("rowid", *columns))
    while True:
        try:
            for row in db.execute(f"SELECT {names} FROM {table} WHERE rowid > ? ORDER BY rowid", (last,)):
                last = row[0]
                yield row
            return
        except sqlite3.OperationalError:
            return  # the table does not exist
        except sqlite3.DatabaseError:
            step = _first_readable(db, table, names, last)
            if step is None:
                return
            last += step


def _first_readable(db: Connection, table: str, names: str, last: int) -> int | None:
    """Return how many rowids after `last` to skip, at the least, so that the next row of a table is readable; None if no row is.

    `names`: the columns to read, as SQL.
    """

    def reads(step: int) -> bool:
        try:
            return db.execute(f"SELECT {names} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT 1", (last + step,)).fetchone() is not None
        except sqlite3.DatabaseError:
            return False

    works = next((2**power for power in range(62) if reads(2**power)), None)
    fails = works // 2 if works else 0
    while works and works - fails > 1:
        middle = (works + fails) // 2
        works, fails = (middle, fails) if reads(middle) else (works, middle)
    return works


def _version(old: Connection) -> int:
    try:
        old.execute("PRAGMA writable_schema = ON")  # so that a truncated file can be read
        old.text_factory = lambda text: text.decode("utf-8", "replace")
        return int(old.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.DatabaseError:
        return 0


def _count(old: Connection, table: str) -> int:
    try:
        return int(old.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])
    except sqlite3.DatabaseError:
        return 0


def _delete_orphans(new: Connection) -> int:
    """Delete rows that refer to lost rows; return the number of deleted rows."""
    count = 0
    while orphans := new.execute("PRAGMA foreign_key_check").fetchall():
        for table, rowid, *_ in orphans:
            count += new.execute(f"DELETE FROM {table} WHERE rowid = ?", (rowid,)).rowcount
    return count


def _is_json(text: object) -> bool:
    if text is None:
        return True
    try:
        json.loads(str(text))
    except (ValueError, RecursionError):
        return False
    return True


def kept_aside(config: Settings) -> list[Path]:
    """List the files of the damaged stores that are kept, with the files that SQLite had beside them."""
    return sorted(config.home.glob(KEPT.format("*") + "*"))


def remove_kept(config: Settings, *, before: float) -> int:
    """Remove files of damaged stores from before a time (seconds since 1970), since uploads may be in them; return the number of files."""
    old = [path for path in kept_aside(config) if path.stat().st_mtime < before]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)
