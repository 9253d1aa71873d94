"""What keeps a store usable: when it gets tight, old runs are thinned to their answers, then go; so do those of long absent owners."""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leakage.runs.connections import PAGE, Connection, Database
from leakage.runs.event_log import thin_pictures
from leakage.runs.notes import RECORDINGS

TIGHT, EASED, URGENT = 0.10, 0.15, 0.05  # of the store: free when tidying begins, free when it ends, free after a write found no room
QUOTA = 0.25  # of the store: what the runs of one owner may take before theirs make room first
VIEWED = 3600.0  # seconds after which a run that was looked at makes room like all others
FEWEST = 16  # pictures between that a running run keeps whatever happens
ROOMY = 64 * 2**20  # bytes of the disk that overwriting a run never takes
REMEMBERED = 10_000  # removed runs of which a link still says what happened
KEPT = f"id NOT IN (SELECT key FROM notes, json_each(notes.body) WHERE notes.name = '{RECORDINGS}')"
FREE = f"status NOT IN ('queued', 'running') AND {KEPT}"
OLDEST = (
    "owner IN (SELECT owner FROM runs GROUP BY owner HAVING SUM(bytes) > :quota) DESC,"
    " EXISTS (SELECT 1 FROM holders WHERE run = id AND pinned IS NOT NULL), COALESCE(viewed, finished)"
)
MADE_ROOM = "it was old, and made room for newer runs on this full server"
UNSEEN = "its owner had not been here for {:.0f} days"
UPLOAD = "it held an uploaded picture, which is kept for {:.0f} days"
BYTES = (
    "(SELECT COALESCE(SUM(LENGTH(png)), 0) FROM frames WHERE run = :run)"
    " + (SELECT COALESCE(SUM(LENGTH(data)), 0) FROM files WHERE run = :run)"
    " + (SELECT COALESCE(SUM(LENGTH(body)), 0) FROM events WHERE run = :run)"
)


class Housekeeping:
    """Makes room in a store. Never touches a run that waits, runs or is recorded, but for pictures between of running ones."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def free(self) -> float:
        """Return which fraction of the store is free."""
        read = self.database.read()
        pages, spare = (read.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
        return float(1 - (pages - spare) / self.database.pages)

    def tidy(self) -> int:
        """Make room when the store is tight; answers how many runs were thinned or removed."""
        done = 0
        if self.free() < TIGHT:
            while self.free() < EASED and self.database.write_using_reserve(free_one):
                done += 1
        return done

    def make_room(self) -> bool:
        """Make room at once, for a write that found none; answers whether there is more of it."""
        before = self.free()
        while self.free() < URGENT and self.database.write_using_reserve(lambda db: free_one(db) or _thin_a_running_one(db)):
            pass
        return self.free() > before


def sweep(db: Connection, uploads_before: float, unseen_before: float) -> bool:
    """Remove runs with uploads from before the first time, and runs of owners last seen before the second; return whether any was."""
    now = time.time()
    why = UPLOAD.format((now - uploads_before) / 86400)
    gone = forget(db, f"NOT shareable AND created < :then AND {KEPT}", {"then": uploads_before}, why=why)
    db.execute(
        "DELETE FROM holders WHERE since < :then AND owner NOT IN (SELECT owner FROM owners WHERE seen >= :then)"
        f" AND run IN (SELECT id FROM runs WHERE {FREE})",
        {"then": unseen_before},
    )
    db.execute("DELETE FROM owners WHERE seen < ? AND owner NOT IN (SELECT owner FROM holders)", (unseen_before,))
    unheld = f"{FREE} AND id NOT IN (SELECT run FROM holders)"
    return gone + forget(db, unheld, {}, why=UNSEEN.format((now - unseen_before) / 86400)) > 0


def free_one(db: Connection) -> bool:
    """Thin, or else remove, the run that is missed least; return whether there was one.

    First come runs that nobody looked at within the hour. Of shareable attacks, which can be computed again, only the answer stays, from
    the oldest on; then runs without an owner are removed, and then the oldest. After that the same is done with runs that were looked at.
    Runs of an owner with more than their quota come first, pinned ones last.
    """
    values = {"quota": QUOTA * _limit(db), "hour_ago": time.time() - VIEWED}
    for viewed in ("<=", ">"):
        where = f"{FREE} AND COALESCE(viewed, 0) {viewed} :hour_ago"
        thinnable = f"SELECT id FROM runs WHERE {where} AND kind = 'attack' AND shareable AND thinned IS NULL ORDER BY {OLDEST} LIMIT 1"
        if row := db.execute(thinnable, values).fetchone():
            _thin_to_answer(db, row["id"])
            return True
        held = "EXISTS (SELECT 1 FROM holders WHERE run = id)"
        if row := db.execute(f"SELECT id FROM runs WHERE {where} ORDER BY {held}, {OLDEST} LIMIT 1", values).fetchone():
            forget(db, "id = :run", {"run": row["id"]}, why=MADE_ROOM)
            return True
    return False


def _limit(db: Connection) -> int:
    return int(db.execute("PRAGMA max_page_count").fetchone()[0]) * PAGE


def _thin_to_answer(db: Connection, run: str) -> None:
    rows = db.execute("SELECT seq FROM frames WHERE run = ? ORDER BY seq", (run,)).fetchall()
    answer = db.execute("SELECT json_extract(result, '$.answer') FROM runs WHERE id = ?", (run,)).fetchone()[0]
    seqs = [row["seq"] for row in rows]
    thin_pictures(db, run, [seq for seq in seqs if seq == answer] or seqs[-1:])
    db.execute("UPDATE runs SET thinned = ? WHERE id = ?", (time.time(), run))
    weigh(db, run)


def _thin_a_running_one(db: Connection) -> bool:
    """Remove every other picture of the running run that has most, if it has many: else it would end for want of room."""
    row = db.execute(
        "SELECT run, COUNT(*) AS count FROM frames WHERE run IN (SELECT id FROM runs WHERE status = 'running' AND worker IS NOT NULL)"
        " GROUP BY run ORDER BY count DESC LIMIT 1"
    ).fetchone()
    if not row or row["count"] <= FEWEST:
        return False
    seqs = [kept["seq"] for kept in db.execute("SELECT seq FROM frames WHERE run = ? ORDER BY seq", (row["run"],))]
    thin_pictures(db, row["run"], [*seqs[:-1:2], seqs[-1]])
    return True


def weigh(db: Connection, run: str) -> None:
    """Note how many bytes a run takes."""
    db.execute(f"UPDATE runs SET bytes = {BYTES} WHERE id = :run", {"run": run})


def forget(db: Connection, where: str, values: dict[str, Any] | Sequence[Any], *, why: str = "") -> int:
    """Delete runs, overwritten; answers how many. `why`: links to them say so from now on."""
    if why:
        kept = "CASE WHEN shareable THEN experiment END"
        db.execute(f"INSERT OR REPLACE INTO removed SELECT id, {time.time()}, '{why}', {kept} FROM runs WHERE {where}", values)
        db.execute("DELETE FROM removed WHERE run NOT IN (SELECT run FROM removed ORDER BY at DESC LIMIT ?)", (REMEMBERED,))
    gone = db.execute(f"DELETE FROM runs WHERE shareable = 0 AND {where}", values).rowcount
    # Overwriting takes as much room as it frees. A disk that is nearly full may not have it: then not where everybody may see the pictures.
    if shutil.disk_usage(Path(db.execute("PRAGMA database_list").fetchone()["file"]).parent).free < ROOMY:
        db.execute("PRAGMA secure_delete = OFF")
    gone += db.execute(f"DELETE FROM runs WHERE shareable = 1 AND {where}", values).rowcount
    db.execute("PRAGMA secure_delete = ON")
    return gone
