"""The facts that the fair order needs from the database: waiting runs, running runs, and the owners' recent use of slots."""

import time

from leakage.runs import fair_order
from leakage.runs.connections import Connection
from leakage.runs.fair_order import RecentUse, Served, Waiting
from leakage.runs.last_slot import Running
from leakage.runs.notes import SLOTS


def slots_of(db: Connection) -> int:
    """Return how many runs are computed at a time, as the dispatcher has stored it; 0 before there was a dispatcher."""
    row = db.execute("SELECT body FROM notes WHERE name = ?", (SLOTS,)).fetchone()
    return int(row["body"]) if row else 0


def running_runs(db: Connection) -> list[Running]:
    """Return the runs that workers compute."""
    rows = db.execute("SELECT id, owner, worker, started, estimate FROM runs WHERE status = 'running' AND worker IS NOT NULL")
    return [Running(*row) for row in rows]


def waiting_in_order(db: Connection, *, short: bool = False) -> list[Waiting]:
    """Return the waiting runs, or with `short` only the short runs among them, in fair order."""
    waiting = [run for run in waiting_runs(db) if run.short or not short]
    now = time.time()
    return fair_order.in_order(waiting, recent_use(db, now), now) if waiting else []


def waiting_runs(db: Connection) -> list[Waiting]:
    """Return the waiting runs in the order in which they were queued."""
    return [Waiting(*row) for row in db.execute("SELECT id, owner, estimate, created FROM runs WHERE status = 'queued' ORDER BY rowid")]


def recent_use(db: Connection, now: float) -> dict[str, RecentUse]:
    """Return the recent use of slots by owner, for owners of waiting runs; a running run counts until its expected end."""
    served = db.execute(
        "SELECT owner, worker, MAX(started, :since),"
        " CASE status WHEN 'running' THEN MAX(:now, started + COALESCE(estimate, :unknown)) ELSE finished END"
        " FROM runs WHERE worker IS NOT NULL AND (status = 'running' OR finished > :since)",
        {"now": now, "unknown": fair_order.UNKNOWN, "since": now - fair_order.WINDOW},
    )
    seconds = fair_order.slot_seconds(Served(*row) for row in served)
    began = db.execute(
        "SELECT owner, MAX(started) FROM runs WHERE owner IN (SELECT owner FROM runs WHERE status = 'queued') AND started IS NOT NULL"
        " GROUP BY owner"
    )
    return {owner: RecentUse(seconds.get(owner, 0.0), last) for owner, last in began}
