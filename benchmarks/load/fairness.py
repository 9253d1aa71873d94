"""Waiting times of a class in the fair order and in that of version 0.3 (the oldest run of the owner with fewest running runs).

Simulated with the program's order on a simulated clock, in which every run takes its estimate.
"""

import heapq
import itertools
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leakage.runs.fair_order import WINDOW, RecentUse, Served, Waiting, in_order, slot_seconds, takes_short_runs_only

Chooser = Callable[[list[Waiting], list[Served], float], str]


@dataclass(frozen=True)
class Crowd:
    """Visitors with their runs, and the visitors whose waiting time is measured."""

    name: str
    runs: list[Waiting]
    looked_at: str  # how the owners' names begin


def ask_at_once(owner: str, count: int, seconds: float, at: float) -> list[Waiting]:
    """Return so many runs of an owner, queued at the same time."""
    return [Waiting(f"{owner}/{number}", owner, seconds, at + number * 1e-6) for number in range(count)]


def ask_one_after_the_other(who: str, owners: int, count: int, seconds: float, at: float = 0.0) -> list[Waiting]:
    """Return so many runs of several owners, a tenth of a second after each other."""
    return list(itertools.chain(*(ask_at_once(f"{who} {owner}", count, seconds, at + owner / 10) for owner in range(owners))))


CROWDS = (
    Crowd(
        "2 students with 24 runs of 30 s; a third asks for one",
        ask_one_after_the_other("busy", 2, 24, 30.0) + ask_at_once("third", 1, 30.0, 60.0),
        "third",
    ),
    Crowd(
        "30 students with 24 runs of 30 s; another asks for one",
        ask_one_after_the_other("busy", 30, 24, 30.0) + ask_at_once("late", 1, 30.0, 60.0),
        "late",
    ),
    Crowd(
        "30 long runs of 280 s, then 20 short ones of 20 s",
        ask_one_after_the_other("long", 30, 1, 280.0) + ask_one_after_the_other("short", 20, 1, 20.0, 60.0),
        "short",
    ),
    Crowd("30 students with 8 runs of 20 s", ask_one_after_the_other("student", 30, 8, 20.0), "student"),
)


def fair(waiting: list[Waiting], served: list[Served], now: float) -> str:
    """Return the next run by the store's order."""
    lately = [Served(one.owner, one.worker, max(one.begun, now - WINDOW), one.ended) for one in served if one.ended > now - WINDOW]
    seconds = slot_seconds(lately)
    had = {one.owner: RecentUse(seconds.get(one.owner, 0.0), one.begun) for one in served}  # in the order in which they began
    return in_order(waiting, had, now)[0].id


def fewest_running(waiting: list[Waiting], served: list[Served], now: float) -> str:
    """Return the next run by the order of version 0.3."""
    running = [one.owner for one in served if one.begun <= now < one.ended]
    return min(waiting, key=lambda one: (running.count(one.owner), one.created)).id


def simulate(crowd: Crowd, choose: Chooser, slots: int, *, short_slots: bool) -> dict[str, Any]:
    """Seconds that those looked at wait, and how many runs of others end before the first of theirs begins."""
    free = [(0.0, slot) for slot in range(slots)]
    todo, served, waits, ended_before = list(crowd.runs), list[Served](), list[float](), 0
    while todo:
        now, slot = heapq.heappop(free)
        waiting = [one for one in todo if one.created <= now and (one.short or not (short_slots and takes_short_runs_only(slot)))]
        if not waiting:
            later = [one.created for one in todo if one.created > now]
            heapq.heappush(free, (min(later, default=now + 1.0), slot))
            continue
        chosen = choose(waiting, served, now)
        run = next(one for one in todo if one.id == chosen)
        todo.remove(run)
        if run.owner.startswith(crowd.looked_at):
            ended_before = ended_before if waits else sum(one.ended <= now for one in served)
            waits.append(now - run.created)
        served.append(Served(run.owner, str(slot), now, now + run.expected))
        heapq.heappush(free, (now + run.expected, slot))
    return {"mean_wait_s": statistics.mean(waits), "longest_wait_s": max(waits), "ended_before": ended_before}


def measure() -> list[dict[str, Any]]:
    """Simulate every crowd on 2 and on 4 slots, in both orders."""
    orders: dict[str, tuple[Chooser, bool]] = {"before": (fewest_running, False), "fair": (fair, True)}
    return [
        {"crowd": crowd.name, "slots": slots, "order": name, **simulate(crowd, choose, slots, short_slots=short)}
        for crowd in CROWDS
        for slots in (2, 4)
        for name, (choose, short) in orders.items()
    ]
