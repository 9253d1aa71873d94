"""The fair order of the queue: by recent use, by estimated seconds, and by waiting time."""

import itertools
import time

import pytest
from store_rows import run

from leakage.runs.fair_order import EVERY, RecentUse, Served, Waiting, in_order, slot_seconds, takes_short_runs_only
from leakage.runs.store import Store

NOW = 100.0


def waiting(owner: str, *created: float, estimate: float | None = 10.0) -> list[Waiting]:
    return [Waiting(f"{owner}{number}", owner, estimate, when) for number, when in enumerate(created)]


def order(*queues: list[Waiting], **had: float) -> list[str]:
    return [one.id for one in in_order(itertools.chain(*queues), {owner: RecentUse(seconds) for owner, seconds in had.items()}, NOW)]


def test_two_with_many_runs_let_a_third_with_one_in_between() -> None:
    """Equal runs of 10 s: a and b have one each before c, which came a second later; then they take turns."""
    assert order(waiting("a", *[0.0] * 3), waiting("b", *[0.5] * 3), waiting("c", 1.0)) == ["a0", "b0", "c0", "a1", "b1", "a2", "b2"]


def test_who_got_much_waits_until_waiting_outweighs_it() -> None:
    """a has had 30 s: its run comes before one that was asked for more than 30 s later, not before one of 29 s later."""
    assert order(waiting("a", 0.0), waiting("b", 29.0), a=30.0) == ["b0", "a0"]
    assert order(waiting("a", 0.0), waiting("b", 31.0), a=30.0) == ["a0", "b0"]


def test_what_asks_for_less_comes_first_and_an_unknown_time_counts_as_a_minute() -> None:
    asked = [waiting(name, 0.0, estimate=seconds) for name, seconds in (("a", 61.0), ("b", None), ("c", 59.0))]
    assert order(*asked) == ["c0", "b0", "a0"]


def test_only_the_wait_for_its_turn_counts() -> None:
    """a queued many runs an hour ago and one has just begun: b, which came a minute ago, is before the next run of a."""
    hour_ago, minute_ago = NOW - 3600, NOW - 60
    found = in_order([*waiting("a", hour_ago, hour_ago), *waiting("b", minute_ago)], {"a": RecentUse(10.0, NOW - 1)}, NOW)
    assert [one.id for one in found] == ["b0", "a0", "a1"]


def test_runs_of_one_owner_stay_in_their_order_whatever_they_take() -> None:
    assert order([*waiting("a", 1.0, 2.0, estimate=500.0), *waiting("a", 3.0, estimate=1.0)]) == ["a0", "a1", "a0"]


def test_runs_in_one_loop_count_once_and_those_in_two_workers_twice() -> None:
    served = [Served("a", "w", 0.0, 10.0), Served("a", "w", 0.1, 10.0), Served("a", "v", 0.0, 10.0), Served("a", "w", 20.0, 25.0)]
    assert slot_seconds([*served, Served("b", "w", 10.0, 20.0)]) == {"a": 25.0, "b": 10.0}


def test_owners_that_share_a_loop_divide_its_seconds() -> None:
    """Ten seconds of two runs of a and one of b; c comes later, to another worker and then into the loop."""
    loop = [Served("a", "w", 0.0, 10.0), Served("a", "w", 0.0, 10.0), Served("b", "w", 0.0, 10.0)]
    assert slot_seconds(loop) == {"a": 5.0, "b": 5.0}
    assert slot_seconds([*loop, Served("c", "v", 0.0, 3.0), Served("c", "w", 4.0, 10.0)]) == {"a": 4.0, "b": 4.0, "c": 5.0}


def test_one_slot_in_four_takes_short_runs() -> None:
    assert [takes_short_runs_only(slot) for slot in range(2 * EVERY)] == [False, False, False, True] * 2


def test_a_slot_for_short_runs_passes_over_long_ones_and_those_of_unknown_length(store: Store) -> None:
    now = time.time()
    for name, estimate in (("long", 61.0), ("unknown", None), ("short", 60.0)):
        store.add(run(name, name, estimate=estimate, created=now), {})
    assert [claimed.id for claimed in iter(lambda: store.claim("3:1", short=True), None)] == ["short"]


def test_the_place_that_is_told_is_the_order_in_which_they_begin(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr("leakage.runs.run_queue.time.time", lambda: now)  # all begin at once
    for number in range(40):
        owner = f"owner {number % 7}"
        store.add(run(str(number), owner, estimate=float(1 + number * 37 % 90), created=now - number % 11), {})
    told = [one.id for one in store.queue()]
    workers = itertools.count()  # one for each: what shares a worker counts once
    begun = [claimed.id for claimed in iter(lambda: store.claim(f"{next(workers)}:1"), None)]
    assert begun == told


def test_what_ended_more_than_ten_minutes_ago_counts_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr("leakage.runs.run_queue.time.time", lambda: now)
    store.add(run("old", "a", created=now - 2000), {})
    store.claim("0:1")
    store.finish("old", "done")
    for ended, later, first in ((590.0, 5, "b"), (590.0, 20, "a"), (610.0, 5, "a")):  # of 1,000 s: 10 of them are in the window, or none
        with store.database.write() as db:
            db.execute("UPDATE runs SET started = ?, finished = ? WHERE id = 'old'", (now - ended - 1000, now - ended))
        store.add(run(f"a {ended}", "a", created=now), {})
        store.add(run(f"b {ended}", "b", created=now + later), {})
        assert next(one.owner for one in store.queue()) == first
        for name in ("a", "b"):
            store.drop(f"{name} {ended}", name)
