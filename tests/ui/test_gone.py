"""A link to a removed run says what became of it; a reduced run says what is missing."""

import numpy as np
from page_visits import Open, fine, words
from sample_events import end, frame, meta

from leakage.data.images import sheet
from leakage.runs.housekeeping import MADE_ROOM, forget
from leakage.runs.service import Service
from leakage.spec.experiment import Experiment


def evicted(door: Service) -> str:
    run = door.submit(Experiment(), "somebody")
    with door.store.database.write() as db:
        forget(db, "id = ?", (run,), why=MADE_ROOM)
    return run


def test_a_link_to_a_run_that_made_room_says_so_in_the_lab_on_compare_and_on_ask(door: Service, visit: Open) -> None:
    run = evicted(door)
    for page, address in (("", {"run": run}), ("pages/compare.py", {"runs": run}), ("pages/ask.py", {"runs": run})):
        at = visit(page, **address)
        fine(at)
        assert f"{MADE_ROOM}, on" in words(at), page


def test_a_link_to_no_run_says_that_it_may_be_incomplete(door: Service, visit: Open) -> None:
    assert "it was deleted, or the link is incomplete" in words(visit(run="nobody"))


def test_a_thinned_run_says_what_is_missing(door: Service, visit: Open) -> None:
    run = door.submit(Experiment(), "somebody")
    door.store.claim("0:1")
    door.store.add_event(run, meta())
    seq = door.store.add_frame(run, frame(1), sheet(np.full((1, 32, 32, 3), 99, np.uint8)))
    door.store.finish(run, "done", result=end(seq))
    assert "Only the result of this run is kept" not in words(visit(run=run))
    with door.store.database.write() as db:
        db.execute("UPDATE runs SET thinned = 1.0 WHERE id = ?", (run,))
    assert "Only the result of this run is kept" in words(visit(run=run))
