"""The events of all runs by number, with the pictures of frames: written as models, read as models or as JSON for a page."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from leakage.runs.connections import Connection, Database, Row
from leakage.runs.events import FindingEvent, FrameEvent, MetaEvent, RunEvent, ThinnedEvent
from leakage.runs.thin import log_spaced

MAX_FRAMES = 240  # pictures kept per run
THINNED = 160  # pictures that remain after a run has exceeded MAX_FRAMES
WITH_PICTURES = (FrameEvent.kind_name(), FindingEvent.kind_name())  # kinds of events
E = TypeVar("E", bound=RunEvent)


class EventLog:
    """The part of a Store with the events of runs."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def add_event(self, run: str, event: RunEvent) -> int:
        """Append an event and return its sequence number; 0 when the run has been deleted meanwhile."""
        return self.database.write_making_room(lambda db: append(db, run, event))

    def add_frame(self, run: str, frame: FrameEvent | FindingEvent, png: bytes) -> int:
        """Append a frame, or a finding of an audit, with its contact sheet (its pictures in one PNG).

        Return its sequence number, or 0 if the run has been deleted.

        If the run then has more than MAX_FRAMES sheets, only THINNED of them are kept, evenly spaced on a log scale of the frame's number.
        """

        def work(db: Connection) -> int:
            self.database.make_sure_of_room(len(png))
            seq = append(db, run, frame)
            if seq:
                db.execute("INSERT INTO frames (seq, run, png) VALUES (?, ?, ?)", (seq, run, png))
                if db.execute("SELECT COUNT(*) FROM frames WHERE run = ?", (run,)).fetchone()[0] > MAX_FRAMES:
                    self._thin(db, run)
            return seq

        return self.database.write_making_room(work)

    def _thin(self, db: Connection, run: str) -> None:
        rows = db.execute(
            "SELECT number, seq FROM frames JOIN (SELECT seq, ROW_NUMBER() OVER (ORDER BY seq) AS number FROM events"
            " WHERE run = ? AND kind = 'frame') USING (seq) ORDER BY seq",
            (run,),
        )
        seqs = {row["number"]: row["seq"] for row in rows}  # by the number of a frame among all frames of its run
        thin_pictures(db, run, [seqs[number] for number in log_spaced(list(seqs), THINNED)])

    def events(self, runs: Iterable[str] | None, since: int, *, most: int = -1) -> list[dict[str, Any]]:
        """Return events as JSON for a page: their stored fields, run, seq and kind, and for a frame whether its picture is still kept.

        Args:
            runs: the ids of the runs; None: all runs.
            since: only events with a larger sequence number are returned.
            most: the largest number of events, from the oldest on; -1: no limit.
        """
        ids = None if runs is None else list(runs)
        where = "" if ids is None else f"AND e.run IN ({','.join('?' * len(ids))})"
        return self._read(f"e.seq > ? {where}", since, *(ids or ()), most=most)

    def events_of(self, run: str, *kinds: type[E], most: int = -1) -> list[E]:
        """Return a run's events of these kinds, oldest first: the first `most` of them, or all (-1)."""
        models = {kind.kind_name(): kind for kind in kinds}
        events = self._read(f"e.run = ? AND e.kind IN ({','.join('?' * len(models))})", run, *models, most=most)
        return [models[event["kind"]].model_validate(event) for event in events]

    def _read(self, where: str, *values: Any, most: int = -1) -> list[dict[str, Any]]:
        rows = self.database.read().execute(
            f"SELECT e.*, f.seq AS picture FROM events e LEFT JOIN frames f ON f.seq = e.seq WHERE {where} ORDER BY e.seq LIMIT ?",
            (*values, most),
        )
        return [_json_of(row) for row in rows]

    def newest_frame(self, run: str) -> FrameEvent | None:
        """Return the newest frame of an attack; None before its first frame."""
        row = self.database.read().execute("SELECT MAX(seq) AS seq FROM events WHERE run = ? AND kind = 'frame'", (run,)).fetchone()
        return FrameEvent.model_validate(self._read("e.seq = ?", row["seq"])[0]) if row["seq"] else None

    def frames(self, run: str) -> list[FrameEvent]:
        """Return the frames of an attack, oldest first, whether their pictures are kept or not."""
        return self.events_of(run, FrameEvent)

    def meta(self, run: str) -> MetaEvent | None:
        """Return the first event of an attack, with the facts that do not change during the run; None before the attack began."""
        return next(iter(self.events_of(run, MetaEvent, most=1)), None)

    def last_seq(self) -> int:
        """Return the number of the newest event of all runs."""
        return int(self.database.read().execute("SELECT COALESCE(MAX(seq), 0) FROM events").fetchone()[0])

    def frame(self, run: str, seq: int) -> bytes | None:
        """Return the pictures of a frame side by side as PNG; None when they are not kept."""
        row = self.database.read().execute("SELECT png FROM frames WHERE run = ? AND seq = ?", (run, seq)).fetchone()
        return row["png"] if row else None


def append(db: Connection, run: str, event: RunEvent) -> int:
    """Append an event inside a transaction, and return its sequence number; 0 when there is no such run."""
    row = db.execute(
        "INSERT INTO events (run, kind, body) SELECT id, ?, ? FROM runs WHERE id = ? RETURNING seq", (event.kind, dumps(event.body()), run)
    ).fetchone()
    return int(row["seq"]) if row else 0


def thin_pictures(db: Connection, run: str, keep: Sequence[int]) -> None:
    """Delete the pictures of a run's frames, except of the frames with the sequence numbers `keep`, and append a ThinnedEvent."""
    db.execute("DELETE FROM frames WHERE run = ? AND seq NOT IN (SELECT value FROM json_each(?))", (run, json.dumps(list(keep))))
    append(db, run, ThinnedEvent(kept=tuple(keep)))


def dumps(body: Any) -> str:
    """Return a value as JSON that every browser can read. Raises ValueError for NaN and infinity."""
    return json.dumps(body, allow_nan=False)


def _json_of(row: Row) -> dict[str, Any]:
    body = json.loads(row["body"])
    if row["kind"] in WITH_PICTURES:
        body["picture"] = row["picture"] is not None
    return {**body, "run": row["run"], "seq": row["seq"], "kind": row["kind"]}
