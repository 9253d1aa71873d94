"""The runs, their files and notes, in one SQLite file that is database and queue; their events are in event_log.py."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from leakage.runs.connections import Connection, Database, Row
from leakage.runs.event_log import EventLog, dumps
from leakage.runs.events import EndEvent, StateEvent
from leakage.runs.migrations import MIGRATIONS
from leakage.spec.aliases import names_of

OPEN = ("queued", "running")
BEFORE_IT_BEGAN = {"stopped": "Cancelled before it began.", "over": "The time of its question was over before it began."}
BEAT = 1.0  # seconds between a worker's noted signs of life
End = TypeVar("End", bound=EndEvent)


@dataclass(frozen=True)
class Run:
    """One row: who asked for what, and how it stands. Times are seconds since 1970."""

    id: str
    owner: str
    grp: str | None
    kind: str
    digest: str
    version: str
    experiment: str
    shareable: bool
    estimate: float | None
    created: float
    status: str = "queued"  # running, done, cancelled, failed
    message: str = ""
    started: float | None = None
    finished: float | None = None
    heartbeat: float | None = None
    worker: str | None = None
    cancelled: float | None = None
    result: dict[str, Any] | None = None

    def outcome(self, kind: type[End]) -> End | None:
        """The result as a model, the one that a run of this kind ends with; None without a result."""
        return kind.model_validate(self.result) if self.result else None


@dataclass(frozen=True)
class Label:
    """What an owner calls a run, empty for none; and since when they have it pinned, in seconds since 1970."""

    name: str = ""
    pinned: float | None = None


class Store(EventLog):
    """The runs of one machine. Safe to use from several threads and processes."""

    def __init__(self, path: Path, *, max_mb: int = 4096) -> None:
        super().__init__(Database(path, migrations=MIGRATIONS, max_mb=max_mb))
        self.path = path
        self.close = self.database.close

    # ------------------------------------------------------------ the queue

    def add(self, run: Run, files: Mapping[str, bytes]) -> None:
        """Queue a run with its files (uploads)."""
        self.add_all([(run, files)])

    def add_all(self, runs: Sequence[tuple[Run, Mapping[str, bytes]]]) -> None:
        """Queue several with their files, all of them or none: no worker sees the first before the last."""
        with self.database.write() as db:
            self.database.make_sure_of_room(sum(len(data) for _, files in runs for data in files.values()))
            for run, files in runs:
                values = {**vars(run), "result": None}
                db.execute(f"INSERT INTO runs ({', '.join(values)}) VALUES ({', '.join(':' + name for name in values)})", values)
                db.execute("INSERT INTO holders (run, owner, since) VALUES (?, ?, ?)", (run.id, run.owner, run.created))
                db.executemany(
                    "INSERT INTO files (run, name, data) VALUES (?, ?, ?)", [(run.id, name, data) for name, data in files.items()]
                )
                self._event(db, run.id, StateEvent(status="queued"))

    def share(self, digest: str, version: str, owner: str) -> str | None:
        """The id of a run that answers the same question (not failed, not cancelled); `owner` now holds it too."""

        def work(db: Connection) -> str | None:
            row = db.execute(
                "SELECT id FROM runs WHERE digest = ? AND version = ? AND shareable AND cancelled IS NULL"
                " AND status IN ('queued', 'running', 'done') ORDER BY created LIMIT 1",
                (digest, version),
            ).fetchone()
            if row:
                db.execute(
                    "INSERT INTO holders (run, owner, since) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET since = excluded.since",
                    (row["id"], owner, time.time()),
                )
            return row["id"] if row else None

        return self.database.write_using_reserve(work)

    def claim(self, worker: str) -> Run | None:
        """The next run for `worker`: of the owner with the fewest running runs, the oldest. None when nothing waits."""
        if not self.database.read().execute("SELECT 1 FROM runs WHERE status = 'queued' LIMIT 1").fetchone():
            return None
        with self.database.write() as db:
            row = db.execute(
                "SELECT id FROM runs q WHERE status = 'queued' ORDER BY"
                " (SELECT COUNT(*) FROM runs r WHERE r.status = 'running' AND r.owner = q.owner), created LIMIT 1"
            ).fetchone()
            return self._begin(db, row["id"], worker) if row else None

    def claim_also(self, runs: Iterable[str], most: int, worker: str) -> list[Run]:
        """The first of these runs that still wait, for a worker that plays them beside another: others may claim at the same moment."""
        with self.database.write() as db:
            return list(islice((begun for run in runs if (begun := self._begin(db, run, worker))), most))

    def _begin(self, db: Connection, run: str, worker: str) -> Run | None:
        row = db.execute(
            "UPDATE runs SET status = 'running', started = :now, heartbeat = :now, worker = :worker"
            " WHERE id = :run AND status = 'queued' RETURNING *",
            {"now": time.time(), "worker": worker, "run": run},
        ).fetchone()
        if row:
            self._event(db, run, StateEvent(status="running"))
        return _run(row) if row else None

    def queue(self) -> list[Run]:
        """The waiting runs, oldest first."""
        return self._runs("status = 'queued' ORDER BY created")

    def running(self) -> list[Run]:
        return self._runs("status = 'running' ORDER BY started")

    def beat(self, run: str) -> tuple[bool, int]:
        """A sign of life from the worker, noted once a second; answers (should it stop?, how many runs are running)."""
        db, now = self.database.read(), time.time()
        row = db.execute("SELECT cancelled, heartbeat FROM runs WHERE id = ? AND status = 'running'", (run,)).fetchone()
        if row and now - (row["heartbeat"] or 0.0) >= BEAT:
            with self.database.write() as db:
                db.execute("UPDATE runs SET heartbeat = ? WHERE id = ?", (now, run))
        count = db.execute("SELECT COUNT(*) FROM runs WHERE status = 'running'").fetchone()[0]
        return row is None or row["cancelled"] is not None, count

    def cancel(self, run: str, *, how: str = "stopped") -> None:
        """Ask a running run to stop with the best so far; a waiting one is cancelled at once. `how`: a key of BEFORE_IT_BEGAN.

        A running one has `how` as its message until its worker closes it.
        """

        def work(db: Connection) -> None:
            db.execute(
                "UPDATE runs SET cancelled = ?, message = ? WHERE id = ? AND status IN ('queued', 'running') AND cancelled IS NULL",
                (time.time(), how, run),
            )
            if db.execute(
                "UPDATE runs SET status = 'cancelled', message = ?, finished = ? WHERE id = ? AND status = 'queued'",
                (BEFORE_IT_BEGAN[how], time.time(), run),
            ).rowcount:
                self._event(db, run, StateEvent(status="cancelled", message=BEFORE_IT_BEGAN[how]))

        self.database.write_using_reserve(work)

    def finish(self, run: str, status: str, *, message: str = "", result: EndEvent | None = None) -> None:
        """Close a running run; says so in an EndEvent when there is a result, and in a StateEvent. Later calls change nothing."""
        end = result.model_copy(update={"status": status}) if result else None

        def work(db: Connection) -> None:
            changed = db.execute(
                "UPDATE runs SET status = ?, message = ?, finished = ?, result = ? WHERE id = ? AND status = 'running'",
                (status, message, time.time(), dumps(_of_row(end)) if end else None, run),
            ).rowcount
            if changed:
                if end:
                    self._event(db, run, end)
                self._event(db, run, StateEvent(status=status, message=message))

        self.database.write_using_reserve(work)

    # ------------------------------------------------------------ files

    def put_file(self, run: str, name: str, data: bytes) -> None:
        with self.database.write() as db:
            db.execute("INSERT OR REPLACE INTO files (run, name, data) SELECT id, ?, ? FROM runs WHERE id = ?", (name, data, run))

    def files(self, run: str, prefix: str = "") -> dict[str, bytes]:
        """The run's files whose names begin with `prefix`."""
        rows = self.database.read().execute(
            "SELECT name, data FROM files WHERE run = ? AND substr(name, 1, ?) = ?", (run, len(prefix), prefix)
        )
        return {row["name"]: row["data"] for row in rows}

    # ------------------------------------------------------------ looking and deleting

    def _runs(self, where: str, *values: Any) -> list[Run]:
        return [_run(row) for row in self.database.read().execute(f"SELECT * FROM runs WHERE {where}", values)]

    def get(self, run: str) -> Run | None:
        found = self._runs("id = ?", run)
        return found[0] if found else None

    def held_by(self, owner: str) -> list[Run]:
        """The runs of one owner, newest first."""
        return self._runs("id IN (SELECT run FROM holders WHERE owner = ?) ORDER BY created DESC", owner)

    def equal(self, kind: str, digest: str) -> list[Run]:
        """Every run that asked this, of whatever owner and version; newest first."""
        return self._runs("kind = ? AND digest = ? ORDER BY created DESC", kind, digest)

    def holders(self, run: str) -> list[str]:
        """The owners who asked for this run."""
        return [row["owner"] for row in self.database.read().execute("SELECT owner FROM holders WHERE run = ? ORDER BY since", (run,))]

    def labels(self, owner: str) -> dict[str, Label]:
        """What this owner calls each of their runs, and since when it is pinned: those that have a name or a pin."""
        rows = self.database.read().execute(
            "SELECT run, name, pinned FROM holders WHERE owner = ? AND (name != '' OR pinned IS NOT NULL)", (owner,)
        )
        return {row["run"]: Label(row["name"], row["pinned"]) for row in rows}

    def put_label(self, run: str, owner: str, label: Label) -> None:
        """Name and pin a run that this owner holds."""
        with self.database.write() as db:
            db.execute("UPDATE holders SET name = ?, pinned = ? WHERE run = ? AND owner = ?", (label.name, label.pinned, run, owner))

    def drop(self, run: str, owner: str) -> None:
        """Forget `owner`'s reference; with the last one the run, its frames and its uploads go."""

        def work(db: Connection) -> bool:
            db.execute("DELETE FROM holders WHERE run = ? AND owner = ?", (run, owner))
            return _forget(db, "id = ? AND id NOT IN (SELECT run FROM holders)", run)

        self._delete(work)

    def sweep(self, *, uploads_before: float) -> None:
        """Delete runs with uploads created before that time; keep the rest."""
        self._delete(lambda db: _forget(db, "NOT shareable AND created < ?", uploads_before))

    def _delete(self, work: Callable[[Connection], bool]) -> None:
        if self.database.write_using_reserve(work):
            self.database.empty_log()
        self.database.set_reserve_aside()

    def done_with_timing_key(self, timing_key: str) -> list[Run]:
        """The latest finished runs whose result carries this `timing_key` key (same attack, model and batch)."""
        keys = ", ".join(f"json_extract(result, '$.{name}')" for name in names_of("timing_key"))
        return self._runs(f"status = 'done' AND COALESCE({keys}) = ? ORDER BY finished DESC LIMIT 3", timing_key)

    def note(self, name: str) -> Any:
        """A small fact about this machine, or None."""
        row = self.database.read().execute("SELECT body FROM notes WHERE name = ?", (name,)).fetchone()
        return json.loads(row["body"]) if row else None

    def put_note(self, name: str, body: Any) -> None:
        with self.database.write() as db:
            db.execute("INSERT OR REPLACE INTO notes (name, body) VALUES (?, ?)", (name, dumps(body)))


def _forget(db: Connection, where: str, value: Any) -> bool:
    """Delete runs. Those with uploads are overwritten; answers whether there were any."""
    for shareable in (1, 0):
        # Overwriting takes as much room as it frees, which a full disk may not have: only where it matters.
        db.execute(f"PRAGMA secure_delete = {'OFF' if shareable else 'ON'}")
        gone = db.execute(f"DELETE FROM runs WHERE shareable = {shareable} AND {where}", (value,)).rowcount
    return gone > 0


def _of_row(end: EndEvent) -> dict[str, Any]:
    """The result as the run's row holds it, which has a column for the status."""
    return {name: value for name, value in end.body().items() if name != "status"}


def _run(row: Row) -> Run:
    """The row as a Run, without columns that Run has no field for."""
    values = {field.name: row[field.name] for field in fields(Run)}
    return Run(**{**values, "shareable": bool(values["shareable"]), "result": json.loads(values["result"]) if values["result"] else None})
