"""Eight runs of an hour of one browser and a request of a second browser: real workers, two slots."""

import pytest
from home_processes import LONG, QUICK, Place, another, until

from leakage.runs.events import RestartEvent
from leakage.runs.run_queue import YIELDED

pytestmark = pytest.mark.processes


def test_a_second_browser_begins_soon_behind_eight_runs_of_an_hour(dispatcher: Place) -> None:
    """It had not begun after 75 s: the first browser's runs held both slots until they ended."""
    hours = [another(LONG, 700 + number).model_copy(update={"max_seconds": 3600}) for number in range(8)]
    mine = dispatcher.service.submit_all(hours, "first")
    try:
        until(lambda: sum(len(dispatcher.frames(run)) > 1 for run in mine) == 2, what="both slots are taken")
        began = {run: dispatcher.look(run).started for run in mine}
        theirs = dispatcher.submit(another(QUICK, 750), "second")
        place = dispatcher.service.place(theirs)
        assert (place.position, place.wait) == (1, 0.0), "what it is told of its wait"
        until(lambda: dispatcher.status(theirs) != "queued", within=60, what="the second browser begins")
        assert dispatcher.finished(theirs).status == "done"
        kept = [run for run in mine if began[run] and dispatcher.look(run).started == began[run]]
        assert len(kept) == 1, "one of the first browser's goes on as if nothing were"
        (yielded,) = (run for run in mine if began[run] and run not in kept)
        assert [told.text for told in dispatcher.store.events_of(yielded, RestartEvent)] == [YIELDED]
        until(lambda: sum(dispatcher.status(run) == "running" for run in mine) == 2, what="the slot is theirs again")
    finally:
        for run in mine:
            dispatcher.store.cancel(run)
        until(lambda: not dispatcher.store.running(), what="all have ended")
