"""What the database says of turns: who waits, who is played, what owners had; so that the fair order can be told and claimed by."""

import time

from leakage.runs import fair_order
from leakage.runs.connections import Connection
from leakage.runs.fair_order import Had, Served, Waiting
from leakage.runs.last_slot import Playing
from leakage.runs.notes import SLOTS


def slots_of(db: Connection) -> int:
    """How many runs are played at a time, as the dispatcher has noted; 0 before there was one."""
    row = db.execute("SELECT body FROM notes WHERE name = ?", (SLOTS,)).fetchone()
    return int(row["body"]) if row else 0


def playing(db: Connection) -> list[Playing]:
    """The runs that workers play."""
    rows = db.execute("SELECT id, owner, worker, started, estimate FROM runs WHERE status = 'running' AND worker IS NOT NULL")
    return [Playing(*row) for row in rows]


def waiting_in_order(db: Connection, *, short: bool = False) -> list[Waiting]:
    """The waiting runs (the short ones) in fair order."""
    waiting = [one for one in waiting_runs(db) if one.short or not short]
    now = time.time()
    return fair_order.in_order(waiting, seconds_had_lately(db, now), now) if waiting else []


def waiting_runs(db: Connection) -> list[Waiting]:
    """The waiting runs, as they came."""
    return [Waiting(*row) for row in db.execute("SELECT id, owner, estimate, created FROM runs WHERE status = 'queued' ORDER BY rowid")]


def seconds_had_lately(db: Connection, now: float) -> dict[str, Had]:
    """What the owners of waiting runs had: of what runs, until it is to end."""
    served = db.execute(
        "SELECT owner, worker, MAX(started, :since),"
        " CASE status WHEN 'running' THEN MAX(:now, started + COALESCE(estimate, :unknown)) ELSE finished END"
        " FROM runs WHERE worker IS NOT NULL AND (status = 'running' OR finished > :since)",
        {"now": now, "unknown": fair_order.UNKNOWN, "since": now - fair_order.WINDOW},
    )
    seconds = fair_order.seconds_had(Served(*row) for row in served)
    began = db.execute(
        "SELECT owner, MAX(started) FROM runs WHERE owner IN (SELECT owner FROM runs WHERE status = 'queued') AND started IS NOT NULL"
        " GROUP BY owner"
    )
    return {owner: Had(seconds.get(owner, 0.0), last) for owner, last in began}
