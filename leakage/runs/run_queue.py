"""The queue of a Store: submitting runs, claiming them in fair order, signs of life, cancelling and finishing."""

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
BEAT = 1.0  # seconds between two stored signs of life of a worker


@dataclass(frozen=True)
class Caps:
    """The largest numbers of runs that may wait or run: of one owner (`own`), and of all owners together (`all`)."""

    own: int
    all: int


class QueueFullError(ValueError):
    """Too many runs: the exceeded cap ("own" or "all"), its `limit`, how many runs are `open`, and how many more were `asked` for."""

    def __init__(self, cap: str, limit: int, open: int, asked: int) -> None:
        super().__init__(f"{cap}: {open} of {limit} are open, {asked} more asked for")
        self.cap, self.limit, self.open, self.asked = cap, limit, open, asked


class RunQueue(EventLog):
    """The part of a Store that many processes use as a queue."""

    models: TrainedModels

    def add(self, run: Run, files: Mapping[str, bytes]) -> None:
        """Queue a run with its files (uploads), even if the store has an equal run."""
        self.ask([(run, files)], anew=True)

    def ask(self, asked: Sequence[Asked], *, anew: bool = False, caps: Caps | None = None) -> list[str]:
        """Queue runs and return their ids. If the store has an equal run that has not failed and was not cancelled, share it instead.

        This is one transaction: all runs are queued or none, and if several owners ask for equal runs at once, a single run is queued.

        Args:
            asked: the runs, with their files.
            anew: whether runs are queued even if the store has equal runs.
            caps: the largest numbers of open runs; None: no limit.

        Raises:
            QueueFullError: there would be more open runs than `caps` allows.
            StoreError: there is no room.
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
        """Claim the next run in fair order for a worker; with `short`, the next short run. Return None if no such run waits."""
        if not self.database.read().execute("SELECT 1 FROM runs WHERE status = 'queued' LIMIT 1").fetchone():
            return None

        def work(db: Connection) -> Run | None:
            order = let_others_first(waiting_in_order(db, short=short), running_runs(db), slots_of(db), short=short)
            return self._begin(db, order[0].id, worker) if order else None

        return self._write_in_any_case(work)

    def claim_also(self, runs: Iterable[str], most: int, worker: str) -> list[Run]:
        """Claim up to `most` of these runs, if they still wait, for a worker that computes them in one loop; return the claimed runs."""
        ids = list(runs)
        return self._write_in_any_case(lambda db: list(islice((begun for run in ids if (begun := self._begin(db, run, worker))), most)))

    def _write_in_any_case(self, work: Callable[[Connection], T]) -> T:
        """Execute `work`, which writes a few bytes, even if the store is full: otherwise a run could neither begin nor report an error."""
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
        """Put a running run back into the queue and delete its events; return whether that was done.

        It is done at most once for a run, apart from the times when it yields, and not if the run was cancelled.
        """
        before = "SELECT 1 FROM events WHERE run = ? AND kind = 'restart' AND json_extract(body, '$.text') != ?"
        return self.database.write_using_reserve(lambda db: not db.execute(before, (run, YIELDED)).fetchone() and _begin_anew(db, run, why))

    def make_way(self) -> list[str]:
        """Ask the long runs of one worker to yield, if one owner has every slot and another owner waits; return their ids."""
        runs = self._yielding(YIELD_AFTER)
        if runs:
            where = "id IN (SELECT value FROM json_each(?)) AND status = 'running' AND cancelled IS NULL"
            values = (time.time(), dumps(runs))
            self.database.write_using_reserve(lambda db: db.execute(f"UPDATE runs SET yields = ? WHERE {where}", values))
        return runs

    def _yielding(self, after: float) -> list[str]:
        """List the ids of runs that should yield to an owner that has waited `after` seconds; none while other runs yield."""
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
        """Store a sign of life of a run, at most once a second; return whether the run should stop, and the number of running runs."""
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
        """Set the version of a run (its code, weights and device as a text): requests share a run of the same digest and version."""
        self.database.write_using_reserve(lambda db: db.execute("UPDATE runs SET version = ? WHERE id = ?", (version, run)))

    def cancel(self, run: str, *, how: str = "stopped") -> None:
        """Ask a running run to stop with its best result so far, or cancel a waiting run at once.

        `how`: "stopped" (by hand) or "over" (the time of its question); a running run has it as its message until its worker finishes it.
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
        """End a running run: store its status, and append the result, if there is one, and a StateEvent. Later calls change nothing.

        A run that yields (status "yielded", or stopped because it was asked to yield) is queued again instead, unless it was cancelled.
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
                (how, message, time.time(), dumps(_row_json(end)) if end else None, run),
            ).rowcount
            if changed:
                if end:
                    append(db, run, end)
                append(db, run, StateEvent(status=how, message=message))
                weigh(db, run)
                measure(db, run, self.database.path.parent)

        self.database.write_using_reserve(work)


def _begin_anew(db: Connection, run: str, why: str) -> bool:
    """Put a running run back into the queue and delete its events; return False if the run is not running, or was cancelled."""
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
    """Add a run's owner to an equal run that has not failed, was not cancelled and has its pictures; return its id, else None."""
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
    of_all = "SELECT COUNT(*) FROM runs WHERE status IN ('queued', 'running')"
    of_owner = f"{of_all} AND id IN (SELECT run FROM holders WHERE owner = ?)"
    for cap, limit, counted in (("own", caps.own, db.execute(of_owner, (owner,))), ("all", caps.all, db.execute(of_all))):
        open_runs = counted.fetchone()[0]
        if open_runs + more > limit:
            raise QueueFullError(cap, limit, open_runs, more)


def _row_json(end: EndEvent) -> dict[str, Any]:
    """Return a result as JSON for the run's row, without the status, which has another column."""
    return {name: value for name, value in end.body().items() if name != "status"}
