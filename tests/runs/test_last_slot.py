"""One owner never holds the last slot while another owner waits: which run is next, and which long run yields."""

import time

import pytest
from store_rows import run

from leakage.runs.events import AttackEnd, RestartEvent
from leakage.runs.fair_order import Waiting
from leakage.runs.last_slot import YIELD_AFTER, Running, let_others_first, to_yield
from leakage.runs.notes import SLOTS
from leakage.runs.run_queue import YIELDED
from leakage.runs.store import Store

NOW = 1000.0
HOUR = 3600.0


def playing(owner: str, slot: int, begun: float, estimate: float | None = HOUR) -> Running:
    return Running(f"{owner}{slot}", owner, f"{slot}:7{slot}", begun, estimate)


def waiting(owner: str, since: float = 10.0, estimate: float | None = HOUR) -> Waiting:
    return Waiting(f"{owner} waits", owner, estimate, NOW - since)


TWO = [playing("a", 0, 100.0), playing("a", 1, 200.0)]


def test_the_run_that_began_last_yields_and_the_others_go_on() -> None:
    assert to_yield(TWO, [waiting("b")], 2, NOW) == ["a1"]


@pytest.mark.parametrize(
    ("others", "slots"),
    [
        ([], 2),
        ([waiting("a")], 2),  # nobody else
        ([waiting("b", since=YIELD_AFTER / 2)], 2),  # a slot may just become free
        ([waiting("b")], 3),  # one is free
        ([waiting("b")], 1),  # two owners in one slot would take turns for ever
    ],
)
def test_nothing_yields_where_nobody_else_waits_or_has_another_slot(others: list[Waiting], slots: int) -> None:
    assert to_yield(TWO[:slots], others, slots, NOW) == []


def test_where_two_owners_have_the_slots_a_third_waits_its_turn() -> None:
    assert to_yield([TWO[0], playing("c", 1, 200.0)], [waiting("b")], 2, NOW) == []


def test_short_runs_need_not_yield_unless_they_take_longer_than_they_said() -> None:
    short = [TWO[0], playing("a", 1, NOW - 30, estimate=50.0)]
    assert to_yield(short, [waiting("b")], 2, NOW) == []
    assert to_yield(short, [waiting("b")], 2, NOW + 31) == ["a1"]


def test_runs_in_one_loop_yield_together() -> None:
    loop = [Running(name, "a", "1:71", 200.0 + number, HOUR) for number, name in enumerate("xyz")]
    assert to_yield([TWO[0], *loop], [waiting("b")], 2, NOW) == ["x", "y", "z"]


def test_of_four_slots_the_one_for_short_runs_does_not_count_for_long_ones() -> None:
    """Slot 3 is free, but takes short runs only: a long run of b waits for one of the three others."""
    three = [playing("a", slot, 100.0 + slot) for slot in range(3)]
    assert to_yield(three, [waiting("b")], 4, NOW) == ["a2"]
    assert to_yield(three, [waiting("b", estimate=20.0)], 4, NOW) == []


def test_the_slot_that_is_left_is_for_somebody_else() -> None:
    order = [waiting("a"), waiting("a"), waiting("b"), waiting("c")]
    assert [one.owner for one in let_others_first(order, TWO[:1], 2, short=False)] == ["b", "a", "a", "c"]
    assert let_others_first(order, [], 2, short=False) == order, "nobody holds the other slot"
    assert let_others_first(order[:2], TWO[:1], 2, short=False) == order[:2], "nobody else waits"


# ---------------------------------------------------------------- in the store


@pytest.fixture
def busy(store: Store) -> Store:
    """Two slots with runs of a, which has one more waiting; and b, which comes after a in the fair order."""
    store.put_note(SLOTS, 2)
    for name in ("a0", "a1", "a2"):
        store.add(run(name, "a", created=time.time() - 100), {})
    for slot in (0, 1):
        assert store.claim(f"{slot}:7{slot}")
        time.sleep(0.01)
    store.add(run("b0", "b", created=time.time() - 10, estimate=HOUR), {})
    return store


def test_a_run_that_yields_stops_begins_anew_and_leaves_its_slot_to_who_waits(busy: Store) -> None:
    assert busy.make_way() == ["a1"]
    assert busy.make_way() == [], "one is enough"
    assert (busy.beat("a0")[0], busy.beat("a1")[0]) == (False, True)
    busy.finish("a1", "cancelled", message="the best so far is shown", result=AttackEnd(seconds=1.0))
    found = busy.get("a1")
    assert found
    assert (found.status, found.started, found.worker, found.yields, found.result) == ("queued", None, None, None, None)
    assert [told.text for told in busy.events_of("a1", RestartEvent)] == [YIELDED]
    claimed = busy.claim("1:71")
    assert claimed
    assert claimed.id == "b0", "not the run that has just yielded, whatever the fair order says"


def test_who_stops_a_run_that_yields_has_it_stopped(busy: Store) -> None:
    busy.make_way()
    busy.cancel("a1")
    busy.finish("a1", "cancelled")
    found = busy.get("a1")
    assert found
    assert found.status == "cancelled"


def test_a_run_that_ends_by_itself_before_it_could_yield_is_done(busy: Store) -> None:
    busy.make_way()
    busy.finish("a1", "done", result=AttackEnd(seconds=1.0))
    found = busy.get("a1")
    assert found
    assert found.status == "done"


def test_a_run_that_yielded_may_yield_again_and_begin_anew_once_when_its_worker_is_lost(busy: Store) -> None:
    for _ in range(2):
        busy.make_way()
        busy.finish("a1", "cancelled")
        assert [one.id for one in busy.claim_also(["a1"], 1, "1:71")] == ["a1"]
    assert busy.requeue("a1", "its worker is gone")
    busy.claim_also(["a1"], 1, "1:71")
    assert not busy.requeue("a1", "its worker is gone")


def test_who_waits_is_not_told_to_wait_for_a_run_that_yields(busy: Store) -> None:
    assert [one.id for one in busy.staying()] == ["a0"]
