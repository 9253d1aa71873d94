"""The queue of a Store: asking, claiming in fair order, signs of life, cancelling, finishing."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from leakage.runs.connections import Connection, StoreError, is_full
from leakage.runs.event_log import EventLog, append, dumps
from leakage.runs.events import EndEvent, RestartEvent, StateEvent
from leakage.runs.housekeeping import weigh
from leakage.runs.last_slot import YIELD_AFTER, let_others_first, to_yield
from leakage.runs.rows import Asked, Run, run_of
from leakage.runs.trained_models import TrainedModels, measure
from leakage.runs.turns import running_runs, slots_of, waiting_in_order, waiting_runs

BEFORE_IT_BEGAN = {"stopped": "Cancelled before it began.", "over": "The time of its question was over before it began."}
YIELDED = "Somebody else was waiting, and runs of yours held every slot: this one lets them go first, and then begins anew."
T = TypeVar("T")
BEAT = 1.0  # seconds between two noted signs of life of a worker


@dataclass(frozen=True)
class Caps:
    """How many runs may wait or run: of one owner, of all together."""

    own: int
    all: int


class QueueFullError(ValueError):
    """A cap would be exceeded: which one (`cap`: "own" or "all"), its `limit`, how many are `open`, how many more were `asked` for."""

    def __init__(self, cap: str, limit: int, open: int, asked: int) -> None:
        super().__init__(f"{cap}: {open} of {limit} are open, {asked} more asked for")
        self.cap, self.limit, self.open, self.asked = cap, limit, open, asked


class RunQueue(EventLog):
    """The part of a Store that is a queue for many processes."""

    models: TrainedModels

    def add(self, run: Run, files: Mapping[str, bytes]) -> None:
        """Queue one run with its files (uploads), even if an equal run is there."""
        self.ask([(run, files)], anew=True)

    def ask(self, asked: Sequence[Asked], *, anew: bool = False, caps: Caps | None = None) -> list[str]:
        """Queue runs and return their ids; instead of an equal run (not failed, not cancelled), the owner shares the one that is there.

        All are queued or none, so that no worker sees the first before the last. It is one transaction: of several owners that ask for
        the same at once, one queues it. `anew`: runs that were there before are not shared.

        Raises QueueFullError, and StoreError when there is no room.
        """

        def work(db: Connection, *, adding: bool = True) -> list[str]:
            ids, fresh = list[str](), dict[str, Asked]()
            for run, files in asked:
                equal = next((id for id, (other, _) in fresh.items() if run.shareable and other.digest == run.digest), None)
                shared = equal or (_share(db, run) if run.shareable and not anew else None)
                if not shared:
                    fresh[run.id] = (run, files)
                ids.append(shared or run.id)
            if fresh and caps:
                _check_caps(db, asked[0][0].owner, len(fresh), caps)
            if fresh and not adding:
                raise full
            self.database.make_sure_of_room(sum(len(data) for _, files in fresh.values() for data in files.values()))
            for run, files in fresh.values():
                self._insert(db, run, files)
            return ids

        try:
            return self.database.write_making_room(work)
        except StoreError as error:
            if not is_full(error):
                raise
            full = error
        return self.database.write_using_reserve(lambda db: work(db, adding=False))

    def _insert(self, db: Connection, run: Run, files: Any) -> None:
        values = {**vars(run), "result": None}
        db.execute(f"INSERT INTO runs ({', '.join(values)}) VALUES ({', '.join(':' + name for name in values)})", values)
        db.execute("INSERT INTO holders (run, owner, since) VALUES (?, ?, ?)", (run.id, run.owner, run.created))
        db.executemany("INSERT INTO files (run, name, data) VALUES (?, ?, ?)", [(run.id, name, data) for name, data in files.items()])
        append(db, run.id, StateEvent(status="queued"))
        if run.model_folder:
            self.models.admit(db, run.model_folder, run.owner)

    # ------------------------------------------------------------ claiming

    def claim(self, worker: str, *, short: bool = False) -> Run | None:
        """Claim the next run for `worker`, in fair order; with `short`, the next short run. Return None when no such run waits."""
        if not self.database.read().execute("SELECT 1 FROM runs WHERE status = 'queued' LIMIT 1").fetchone():
            return None

        def work(db: Connection) -> Run | None:
            order = let_others_first(waiting_in_order(db, short=short), running_runs(db), slots_of(db), short=short)
            return self._begin(db, order[0].id, worker) if order else None

        return self._write_in_any_case(work)

    def claim_also(self, runs: Iterable[str], most: int, worker: str) -> list[Run]:
        """Claim up to `most` of these runs that still wait, for a worker that computes them together."""
        wanted = list(runs)
        return self._write_in_any_case(lambda db: list(islice((begun for run in wanted if (begun := self._begin(db, run, worker))), most)))

    def _write_in_any_case(self, work: Callable[[Connection], T]) -> T:
        """Write a few bytes even into a full store: a run that cannot begin could not even say why."""
        try:
            return self.database.write_making_room(work)
        except StoreError as error:
            if not is_full(error):
                raise
        return self.database.write_using_reserve(work)

    def _begin(self, db: Connection, run: str, worker: str) -> Run | None:
        row = db.execute(
            "UPDATE runs SET status = 'running', started = :now, heartbeat = :now, worker = :worker"
            " WHERE id = :run AND status = 'queued' RETURNING *",
            {"now": time.time(), "worker": worker, "run": run},
        ).fetchone()
        if row:
            append(db, run, StateEvent(status="running"))
        return run_of(row) if row else None

    def requeue(self, run: str, why: str) -> bool:
        """Put a running run back into the queue without its events, and return whether that was done.

        It is done once for a run, not counting times when it yielded, and not for a stopped run.
        """
        before = "SELECT 1 FROM events WHERE run = ? AND kind = 'restart' AND json_extract(body, '$.text') != ?"
        return self.database.write_using_reserve(lambda db: not db.execute(before, (run, YIELDED)).fetchone() and _begin_anew(db, run, why))

    def make_way(self) -> list[str]:
        """Ask the long runs of one slot to yield where one owner has every slot and another owner waits; return those runs."""
        runs = self._yielding(YIELD_AFTER)
        if runs:
            where = "id IN (SELECT value FROM json_each(?)) AND status = 'running' AND cancelled IS NULL"
            values = (time.time(), dumps(runs))
            self.database.write_using_reserve(lambda db: db.execute(f"UPDATE runs SET yields = ? WHERE {where}", values))
        return runs

    def _yielding(self, after: float) -> list[str]:
        """List the runs that should yield to another owner after so many seconds of waiting; none while some yield already."""
        db, now = self.database.read(), time.time()
        if db.execute("SELECT 1 FROM runs WHERE status = 'running' AND yields IS NOT NULL").fetchone():
            return []
        return to_yield(running_runs(db), waiting_runs(db), slots_of(db), now, after=after)

    def staying(self) -> list[Run]:
        """Return the running runs without those that yield to another owner."""
        leaving = self._yielding(0.0)
        return [run for run in self.running() if not run.yields and run.id not in leaving]

    def queue(self) -> list[Run]:
        """Return the waiting runs in the order in which they will begin."""
        order = {run.id: index for index, run in enumerate(waiting_in_order(self.database.read()))}
        return sorted((run for run in self._runs("status = 'queued'") if run.id in order), key=lambda run: order[run.id])

    def _runs(self, where: str, *values: Any) -> list[Run]:
        return [run_of(row) for row in self.database.read().execute(f"SELECT * FROM runs WHERE {where}", values)]

    def running(self) -> list[Run]:
        """Return the running runs, oldest start first."""
        return self._runs("status = 'running' ORDER BY started")

    def beat(self, run: str) -> tuple[bool, int]:
        """Note a sign of life of the worker, once a second; return (whether the run should stop, how many runs are running)."""
        db, now = self.database.read(), time.time()
        row = db.execute(
            "SELECT COALESCE(cancelled, yields) AS stop, heartbeat FROM runs WHERE id = ? AND status = 'running'", (run,)
        ).fetchone()
        if row and now - (row["heartbeat"] or 0.0) >= BEAT:
            with self.database.write() as db:
                db.execute("UPDATE runs SET heartbeat = ? WHERE id = ?", (now, run))
        count = db.execute("SELECT COUNT(*) FROM runs WHERE status = 'running'").fetchone()[0]
        return row is None or row["stop"] is not None, count

    def put_version(self, run: str, version: str) -> None:
        """Set a run's version; from now on equal requests of this version share it."""
        self.database.write_using_reserve(lambda db: db.execute("UPDATE runs SET version = ? WHERE id = ?", (version, run)))

    def cancel(self, run: str, *, how: str = "stopped") -> None:
        """Ask a running run to stop with its best result so far; cancel a waiting one at once. `how`: a key of BEFORE_IT_BEGAN.

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
                append(db, run, StateEvent(status="cancelled", message=BEFORE_IT_BEGAN[how]))

        self.database.write_using_reserve(work)

    def finish(self, run: str, status: str, *, message: str = "", result: EndEvent | None = None) -> None:
        """Close a running run: append an EndEvent when there is a result, and a StateEvent. Later calls change nothing.

        A run that yields ("yielded", or stopped because it was asked to yield) is queued again instead, unless its owner has stopped it.
        """
        end = result.model_copy(update={"status": status}) if result else None

        def work(db: Connection) -> None:
            asked = "SELECT 1 FROM runs WHERE id = ? AND yields IS NOT NULL"
            yields = status == "yielded" or (status == "cancelled" and db.execute(asked, (run,)).fetchone())
            if yields and _begin_anew(db, run, YIELDED):
                return
            how = "cancelled" if yields else status
            changed = db.execute(
                "UPDATE runs SET status = ?, message = ?, finished = ?, result = ? WHERE id = ? AND status = 'running'",
                (how, message, time.time(), dumps(_of_row(end)) if end else None, run),
            ).rowcount
            if changed:
                if end:
                    append(db, run, end)
                append(db, run, StateEvent(status=how, message=message))
                weigh(db, run)
                measure(db, run, self.database.path.parent)

        self.database.write_using_reserve(work)


def _begin_anew(db: Connection, run: str, why: str) -> bool:
    """Put a running run that was not stopped back into the queue without its events; return whether it was one."""
    changed = db.execute(
        "UPDATE runs SET status = 'queued', started = NULL, heartbeat = NULL, worker = NULL, yields = NULL"
        " WHERE id = ? AND status = 'running' AND cancelled IS NULL",
        (run,),
    ).rowcount
    if changed:
        db.execute("DELETE FROM events WHERE run = ? AND kind NOT IN ('state', 'restart')", (run,))  # frames' pictures go with them
        append(db, run, RestartEvent(text=why))
        append(db, run, StateEvent(status="queued"))
    return bool(changed)


def _share(db: Connection, run: Run) -> str | None:
    """Find an equal run (not failed, cancelled or thinned), add this run's owner to its owners, and return its id; None without any."""
    row = db.execute(
        "SELECT id FROM runs WHERE digest = ? AND version = ? AND shareable AND thinned IS NULL AND cancelled IS NULL"
        " AND status IN ('queued', 'running', 'done') ORDER BY created LIMIT 1",
        (run.digest, run.version),
    ).fetchone()
    if row:
        db.execute(
            "INSERT INTO holders (run, owner, since) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET since = excluded.since",
            (row["id"], run.owner, time.time()),
        )
    return row["id"] if row else None


def _check_caps(db: Connection, owner: str, more: int, caps: Caps) -> None:
    held = "SELECT COUNT(*) FROM runs WHERE status IN ('queued', 'running') AND id IN (SELECT run FROM holders WHERE owner = ?)"
    everybodys = "SELECT COUNT(*) FROM runs WHERE status IN ('queued', 'running')"
    for cap, limit, found in (("own", caps.own, db.execute(held, (owner,))), ("all", caps.all, db.execute(everybodys))):
        open_runs = found.fetchone()[0]
        if open_runs + more > limit:
            raise QueueFullError(cap, limit, open_runs, more)


def _of_row(end: EndEvent) -> dict[str, Any]:
    """Return the result as the run's row stores it, without the status, which has a column of its own."""
    return {name: value for name, value in end.body().items() if name != "status"}
