"""The room that trained models take: it is limited for each owner and in all, and models are removed with the runs that trained them.

`Run.model_folder` names the folder that a run trains into, below the home. The table `models` has the bytes that each such folder takes or
will take. A folder that no run names is removed. While a worker still uses it, that is put off, and its row stays and counts.
"""

import fcntl
import json
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from leakage.runs.connections import Connection, Database
from leakage.runs.housekeeping import FREE, MADE_ROOM, OLDEST, VIEWED, forget

SHARE = 1 / 8  # fraction of the store's limit for all trained models together; the rest is for the file of runs
OWN = SHARE / 2  # fraction of the store's limit for the trained models of one owner
MB = 2**20
OWN_FULL = (
    "Your trained models would hold {:.1f} MB with this one; {:.1f} MB are allowed. Delete trainings first, on the page Your runs, "
    "or train a smaller model."
)
ALL_FULL = (
    "There is no room for another trained model: with this one all of them would hold {:.1f} MB, and this server keeps {:.1f} MB. "
    "Try again later, or train a smaller model; the administrator of the server can set LEAKAGE_STORE_MB."
)
GONE = "This training was deleted."
UNHELD = "folder NOT IN (SELECT model_folder FROM runs WHERE model_folder IS NOT NULL)"
HELD = "folder IN (SELECT model_folder FROM runs) OR folder IN (SELECT value FROM json_each(:leaving))"  # others are being removed
SUM = f"SELECT COALESCE(SUM(bytes), 0) AS bytes FROM models WHERE folder != :folder AND ({HELD})"
OF_OWNER = " AND folder IN (SELECT model_folder FROM runs JOIN holders ON holders.run = runs.id WHERE holders.owner = :owner)"


class NoModelRoomError(ValueError):
    """There is no room for a trained model; the message says what is allowed, and what to do."""


class TrainedModels:
    """The trained models of a home. `max_mb`: the limit for the models and the store together."""

    def __init__(self, database: Database, *, max_mb: float) -> None:
        self.database, self.home, self.limit = database, database.path.parent, max_mb * MB

    def admit(self, db: Connection, folder: str, owner: str, size: int = 0) -> None:
        """Store that an owner's model in a folder takes `size` bytes, or what the folder has now if that is more.

        If all models together are too large, trainings that nobody has looked at within the hour are deleted, the oldest first.

        Raises:
            NoModelRoomError: there is no room for the model.
        """
        size = max(size, size_of(self.home / folder))
        leaving = [row["folder"] for row in db.execute(f"SELECT folder FROM models WHERE {UNHELD}")]
        values = {"folder": folder, "owner": owner, "leaving": json.dumps(leaving)}
        least = max(size, 1)  # so that a new training is refused at once if there is no room at all
        of_owner = least + _bytes(db, SUM + OF_OWNER, values)
        if of_owner > OWN * self.limit:
            raise NoModelRoomError(OWN_FULL.format(of_owner / MB, OWN * self.limit / MB))
        while (of_all := least + _bytes(db, SUM, values)) > SHARE * self.limit:
            if not _forget_oldest(db, folder, self.limit):
                raise NoModelRoomError(ALL_FULL.format(of_all / MB, SHARE * self.limit / MB))
        db.execute("INSERT INTO models (folder, bytes) VALUES (?, ?) ON CONFLICT DO UPDATE SET bytes = excluded.bytes", (folder, size))

    def make_room(self, run: str, size: int) -> None:
        """Make room for a run's folder, which is about to take `size` bytes. Raises NoModelRoomError, also if the run was deleted."""

        def work(db: Connection) -> None:
            row = db.execute("SELECT model_folder, owner FROM runs WHERE id = ?", (run,)).fetchone()
            if row is None:
                raise NoModelRoomError(GONE)
            self.admit(db, row["model_folder"], row["owner"], size)

        self.database.write_using_reserve(work)
        self.remove_unheld()

    def remove_unheld(self) -> None:
        """Remove the folders that no run names; a folder that a worker still uses is left for the next call."""
        if self.database.read().execute(f"SELECT 1 FROM models WHERE {UNHELD}").fetchone():
            self.database.write_using_reserve(self._remove_unheld)

    def _remove_unheld(self, db: Connection) -> None:
        for row in db.execute(f"SELECT folder FROM models WHERE {UNHELD}").fetchall():
            if _remove_folder(self.home / row["folder"]):
                db.execute("DELETE FROM models WHERE folder = ?", (row["folder"],))

    def total(self) -> tuple[int, int]:
        """Return how many trained models there are, and the bytes that they take."""
        row = self.database.read().execute("SELECT COUNT(*) AS count, COALESCE(SUM(bytes), 0) AS bytes FROM models").fetchone()
        return row["count"], row["bytes"]


def measure(db: Connection, run: str, home: Path) -> None:
    """Store the size of the folder of a run's model, if the run has trained one."""
    row = db.execute("SELECT model_folder FROM runs WHERE id = ?", (run,)).fetchone()
    if row and row["model_folder"]:
        db.execute("UPDATE models SET bytes = ? WHERE folder = ?", (size_of(home / row["model_folder"]), row["model_folder"]))


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder; 0 when there is no such folder."""
    size = 0
    for path in folder.glob("*"):
        with suppress(OSError):  # replaced meanwhile
            size += path.stat().st_size
    return size


def room_for(folder: Path, make_room: Callable[[int], None]) -> Callable[[int], None]:
    """Return a function to call with the number of bytes before they are written into a folder.

    `make_room` is called with the size that the folder will then have.
    """
    return lambda more: make_room(size_of(folder) + more)


def _bytes(db: Connection, query: str, values: dict[str, Any]) -> int:
    return int(db.execute(query, values).fetchone()["bytes"])


def _forget_oldest(db: Connection, but: str, limit: float) -> bool:
    """Delete the least needed run that has trained a model; return whether there was such a run.

    Args:
        db: the connection, in a transaction.
        but: the folder of a model that stays.
        limit: the limit of models and store in bytes; runs of an owner with more than the fraction OWN of it go first.
    """
    row = db.execute(
        f"SELECT id FROM runs WHERE {FREE} AND model_folder IS NOT NULL AND model_folder != :but AND COALESCE(viewed, 0) <= :hour_ago"
        f" ORDER BY {OLDEST} LIMIT 1",
        {"but": but, "hour_ago": time.time() - VIEWED, "quota": OWN * limit},
    ).fetchone()
    return bool(row) and forget(db, "id = :run", {"run": row["id"]}, why=MADE_ROOM) > 0


def _remove_folder(folder: Path) -> bool:
    """Remove a folder, unless a worker has locked it; return whether it is gone."""
    try:
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
    except FileNotFoundError:
        return not folder.exists()
    except OSError:
        return False
    return True
