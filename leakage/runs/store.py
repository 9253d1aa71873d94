"""The runs, their files and notes, in one SQLite file that is database and queue; see run_queue.py, event_log.py and housekeeping.py."""

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from leakage.runs.connections import Connection, Database
from leakage.runs.event_log import dumps
from leakage.runs.housekeeping import Housekeeping, forget, sweep
from leakage.runs.migrations import MIGRATIONS
from leakage.runs.notes import CLOCK, LOG
from leakage.runs.rows import OPEN, Label, Removed, Run
from leakage.runs.run_queue import Caps, QueueFullError, RunQueue
from leakage.runs.trained_models import SHARE, TrainedModels
from leakage.runs.update_sets import UpdateSets
from leakage.spec.aliases import names_of

__all__ = ["OPEN", "Caps", "Label", "QueueFullError", "Removed", "Run", "Store"]
NOTED = 60.0  # seconds between two stored times at which somebody looked at a run


class Store(RunQueue):
    """The runs of a home. Safe to use from several threads and processes."""

    def __init__(self, path: Path, *, max_mb: int = 4096) -> None:
        super().__init__(Database(path, migrations=MIGRATIONS, max_mb=max_mb * (1 - SHARE)))
        self.models = TrainedModels(self.database, max_mb=max_mb)
        self.updates = UpdateSets(self.database)
        self.path = path
        self.close = self.database.close
        self.housekeeping = Housekeeping(self.database)
        self.database.make_room = self.housekeeping.make_room

    # ------------------------------------------------------------ files

    def put_file(self, run: str, name: str, data: bytes) -> None:
        """Store a file of a run, in place of a file of the same name; do nothing if the run was deleted."""
        row = (name, data, run)
        self.database.write_making_room(
            lambda db: db.execute("INSERT OR REPLACE INTO files (run, name, data) SELECT id, ?, ? FROM runs WHERE id = ?", row)
        )

    def files(self, run: str, prefix: str = "") -> dict[str, bytes]:
        """Return the run's files with names that begin with `prefix`."""
        rows = self.database.read().execute(
            "SELECT name, data FROM files WHERE run = ? AND substr(name, 1, ?) = ?", (run, len(prefix), prefix)
        )
        return {row["name"]: row["data"] for row in rows}

    def make_model_room(self, run: str, size: int) -> None:
        """Make room for the model that a run trains, which is about to take `size` bytes. Raises NoModelRoomError."""
        self.models.make_room(run, size)

    # ------------------------------------------------------------ looking and deleting

    def get(self, run: str) -> Run | None:
        """Return the run with this id; None if there is none."""
        return next(iter(self._runs("id = ?", run)), None)

    def held_by(self, owner: str) -> list[Run]:
        """Return the runs of one owner, newest first."""
        return self._runs("id IN (SELECT run FROM holders WHERE owner = ?) ORDER BY created DESC", owner)

    def everything(self) -> list[Run]:
        """Return every run, oldest first."""
        return self._runs("TRUE ORDER BY created")

    def owners(self) -> dict[str, float]:
        """Return when each owner was last seen, in seconds since 1970."""
        return {row["owner"]: row["seen"] for row in self.database.read().execute("SELECT owner, seen FROM owners")}

    def equal(self, kind: str, digest: str) -> list[Run]:
        """Return every run of this kind, such as "attack", and this digest (hash) of its task, of any owner and version, newest first."""
        return self._runs("kind = ? AND digest = ? ORDER BY created DESC", kind, digest)

    def holders(self, run: str) -> list[str]:
        """Return the owners of a run: everybody that has asked for it and not deleted it, in the order in which they asked."""
        return [row["owner"] for row in self.database.read().execute("SELECT owner FROM holders WHERE run = ? ORDER BY since", (run,))]

    def labels(self, owner: str) -> dict[str, Label]:
        """Return the labels of an owner that have a name or a pin, by run."""
        rows = self.database.read().execute(
            "SELECT run, name, pinned FROM holders WHERE owner = ? AND (name != '' OR pinned IS NOT NULL)", (owner,)
        )
        return {row["run"]: Label(row["name"], row["pinned"]) for row in rows}

    def put_label(self, run: str, owner: str, label: Label) -> None:
        """Set the name and the pin of a run for one of its owners."""
        with self.database.write() as db:
            db.execute("UPDATE holders SET name = ?, pinned = ? WHERE run = ? AND owner = ?", (label.name, label.pinned, run, owner))

    def drop(self, run: str, owner: str) -> None:
        """Remove an owner from a run's owners; with the last owner, delete the run, its frames and its uploads."""

        def work(db: Connection) -> bool:
            db.execute("DELETE FROM holders WHERE run = ? AND owner = ?", (run, owner))
            return forget(db, "id = ? AND id NOT IN (SELECT run FROM holders)", (run,)) > 0

        self._delete(work)

    def keep_time(self, now: float, *, longest: float) -> None:
        """Store the time; if it has moved by more than `longest` seconds since the last call, or back, move all owners' last visits too.

        The program did not run meanwhile, or the clock was wrong: only days on which the program runs count as an owner's absence.
        """
        before = self.note(CLOCK)
        moved = now - float(before or now)
        with self.database.write() as db:
            if not 0 <= moved <= longest:
                db.execute("UPDATE owners SET seen = seen + ?", (moved,))
            db.execute("INSERT OR REPLACE INTO notes (name, body) VALUES (?, ?)", (CLOCK, dumps(now)))

    def sweep(self, *, uploads_before: float, unseen_before: float = 0.0) -> None:
        """Remove runs with uploads created before the first time, and runs of owners last seen before the second."""
        self._delete(lambda db: sweep(db, uploads_before, unseen_before))

    def removed(self, run: str) -> Removed | None:
        """Return when and why a run was removed to make room or for its age; None for other runs, also for those that an owner deleted."""
        row = self.database.read().execute("SELECT * FROM removed WHERE run = ?", (run,)).fetchone()
        return Removed(**row) if row else None

    def view(self, runs: Iterable[str]) -> None:
        """Store that somebody looks at these runs, so that within the next hour they are removed last."""
        now = time.time()
        with self.database.write() as db:
            where = "id IN (SELECT value FROM json_each(?)) AND COALESCE(viewed, 0) < ?"
            db.execute(f"UPDATE runs SET viewed = ? WHERE {where}", (now, json.dumps(list(runs)), now - NOTED))

    def see(self, owner: str) -> None:
        """Store that an owner is here now."""
        with self.database.write() as db:
            db.execute(
                "INSERT INTO owners (owner, seen) VALUES (?, ?) ON CONFLICT DO UPDATE SET seen = excluded.seen", (owner, time.time())
            )

    def _delete(self, work: Callable[[Connection], bool]) -> None:
        if self.database.write_using_reserve(work):
            self.empty_log()
        self.models.remove_unheld()
        self.updates.remove_unheld()
        self.database.set_reserve_aside()

    def empty_log(self) -> None:
        """Empty the write-ahead log, which may hold deleted data; if a reader prevents that, store a note, and the dispatcher does it."""
        since = self.note(LOG)
        if not self.database.empty_log():
            self.put_note(LOG, since or time.time())
        elif since:
            self.put_note(LOG, None)

    def done_with_timing_key(self, timing_key: str) -> list[Run]:
        """Return the three latest finished runs with this `timing_key` (same attack, model and batch)."""
        keys = ", ".join(f"json_extract(result, '$.{name}')" for name in names_of("timing_key"))
        return self._runs(f"status = 'done' AND COALESCE({keys}) = ? ORDER BY finished DESC LIMIT 3", timing_key)

    def note(self, name: str) -> Any:
        """Return the note with this name (see notes.py), a small fact about this machine; None if there is none."""
        row = self.database.read().execute("SELECT body FROM notes WHERE name = ?", (name,)).fetchone()
        return json.loads(row["body"]) if row else None

    def put_note(self, name: str, body: Any) -> None:
        """Store a note, in place of the note of the same name."""
        with self.database.write() as db:
            db.execute("INSERT OR REPLACE INTO notes (name, body) VALUES (?, ?)", (name, dumps(body)))
