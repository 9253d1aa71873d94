"""Housekeeping of a store: when it is nearly full, old runs are thinned to their answers and then removed. Expired runs are removed too."""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leakage.runs.connections import PAGE, Connection, Database
from leakage.runs.event_log import thin_pictures
from leakage.runs.notes import RECORDINGS

TIGHT, EASED, URGENT = 0.10, 0.15, 0.05  # free fraction of the store: when tidying begins, when it ends, and after a write found no room
QUOTA = 0.25  # fraction of the store that the runs of one owner may take; above, this owner's runs make room first
VIEWED = 3600.0  # seconds for which a run that was looked at is removed only after all others
FEWEST = 16  # pictures of intermediate frames that a running run always keeps
ROOMY = 64 * 2**20  # bytes of free disk with which deleted runs can be overwritten
REMEMBERED = 10_000  # removed runs for which a page still says why they were removed
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
    """Makes room in a store. Waiting, running and recorded runs stay; only running runs may lose pictures of intermediate frames."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def free(self) -> float:
        """Return the fraction of the store that is free."""
        read = self.database.read()
        pages, spare = (read.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
        return float(1 - (pages - spare) / self.database.pages)

    def tidy(self) -> int:
        """Make room if less than TIGHT of the store is free; return the number of runs that were thinned or removed."""
        count = 0
        if self.free() < TIGHT:
            while self.free() < EASED and self.database.write_using_reserve(free_one):
                count += 1
        return count

    def make_room(self) -> bool:
        """Make room at once, for a write that found none; return whether more of the store is free than before."""
        before = self.free()
        while self.free() < URGENT and self.database.write_using_reserve(lambda db: free_one(db) or _thin_running(db)):
            pass
        return self.free() > before


def sweep(db: Connection, uploads_before: float, unseen_before: float) -> bool:
    """Remove runs with uploads created before a time, and runs of owners last seen before a time; return whether a run was removed."""
    now = time.time()
    why = UPLOAD.format((now - uploads_before) / 86400)
    count = forget(db, f"NOT shareable AND created < :then AND {KEPT}", {"then": uploads_before}, why=why)
    db.execute(
        "DELETE FROM holders WHERE since < :then AND owner NOT IN (SELECT owner FROM owners WHERE seen >= :then)"
        f" AND run IN (SELECT id FROM runs WHERE {FREE})",
        {"then": unseen_before},
    )
    db.execute("DELETE FROM owners WHERE seen < ? AND owner NOT IN (SELECT owner FROM holders)", (unseen_before,))
    unheld = f"{FREE} AND id NOT IN (SELECT run FROM holders)"
    return count + forget(db, unheld, {}, why=UNSEEN.format((now - unseen_before) / 86400)) > 0


def free_one(db: Connection) -> bool:
    """Delete the pictures of the least needed run, or the run; return whether there was such a run.

    First come runs that nobody looked at within the hour, then all others. Among these, the oldest attack without uploads keeps only
    the picture of its final guess, since the others can be computed again. If all such attacks are thinned already, a run without an
    owner is removed, else the oldest run. Runs of an owner with more than the fraction QUOTA of the store come first, pinned runs last.
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


def _thin_running(db: Connection) -> bool:
    """Delete every other picture of the running run with the most pictures; return False if no running run has more than FEWEST."""
    row = db.execute(
        "SELECT run, COUNT(*) AS count FROM frames WHERE run IN (SELECT id FROM runs WHERE status = 'running' AND worker IS NOT NULL)"
        " GROUP BY run ORDER BY count DESC LIMIT 1"
    ).fetchone()
    if not row or row["count"] <= FEWEST:
        return False
    seqs = [frame["seq"] for frame in db.execute("SELECT seq FROM frames WHERE run = ? ORDER BY seq", (row["run"],))]
    thin_pictures(db, row["run"], [*seqs[:-1:2], seqs[-1]])
    return True


def weigh(db: Connection, run: str) -> None:
    """Store how many bytes a run takes."""
    db.execute(f"UPDATE runs SET bytes = {BYTES} WHERE id = :run", {"run": run})


def forget(db: Connection, where: str, values: dict[str, Any] | Sequence[Any], *, why: str = "") -> int:
    """Delete and overwrite runs, and return their number.

    Args:
        db: the connection, in a transaction.
        where: the SQL condition for the runs.
        values: the values of its parameters.
        why: the reason, which pages show for links to these runs; empty: nothing is shown.
    """
    if why:
        experiment = "CASE WHEN shareable THEN experiment END"
        db.execute(f"INSERT OR REPLACE INTO removed SELECT id, {time.time()}, '{why}', {experiment} FROM runs WHERE {where}", values)
        db.execute("DELETE FROM removed WHERE run NOT IN (SELECT run FROM removed ORDER BY at DESC LIMIT ?)", (REMEMBERED,))
    count = db.execute(f"DELETE FROM runs WHERE shareable = 0 AND {where}", values).rowcount
    # Overwriting takes as much room as it frees. On a nearly full disk, shareable runs, without private uploads, are not overwritten.
    if shutil.disk_usage(Path(db.execute("PRAGMA database_list").fetchone()["file"]).parent).free < ROOMY:
        db.execute("PRAGMA secure_delete = OFF")
    count += db.execute(f"DELETE FROM runs WHERE shareable = 1 AND {where}", values).rowcount
    db.execute("PRAGMA secure_delete = ON")
    return count
