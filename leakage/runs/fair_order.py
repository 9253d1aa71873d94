"""The order in which waiting runs begin: by their owners' recent use of slots, their expected time, and their waiting time. No SQL."""

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

WINDOW = 600.0  # seconds over which the use of slots counts as recent
UNKNOWN = 60.0  # seconds assumed for a run without an estimate
SHORT = 60.0  # seconds up to which a run is short
EVERY = 4  # one slot in so many takes only short runs, so that a short run need not wait for a long run


@dataclass(frozen=True)
class Waiting:
    """A waiting run, the seconds that it is expected to take (None: unknown), and when it was queued (seconds since 1970)."""

    id: str
    owner: str
    estimate: float | None
    created: float

    @property
    def expected(self) -> float:
        """The seconds that the run is expected to take; UNKNOWN without an estimate."""
        return UNKNOWN if self.estimate is None else self.estimate

    @property
    def short(self) -> bool:
        """Whether the run is expected to take at most SHORT seconds."""
        return self.estimate is not None and self.estimate <= SHORT


@dataclass(frozen=True)
class Served:
    """A run that had or has a slot: its owner, its worker, its start and its end (of a running run: the expected end)."""

    owner: str
    worker: str
    begun: float
    ended: float


def takes_short_runs_only(slot: int) -> bool:
    """Return whether this slot, counted from 0, takes short runs only: the fourth, the eighth ..."""
    return slot % EVERY == EVERY - 1


@dataclass(frozen=True)
class RecentUse:
    """An owner's recent use of slots in seconds, and when a run of the owner last began, in seconds since 1970 (0: never)."""

    seconds: float = 0.0
    last: float = 0.0


def slot_seconds(served: Iterable[Served]) -> dict[str, float]:
    """Return the seconds for which each owner has used slots; owners whose runs share a loop of a worker divide its seconds equally."""
    seconds, running = dict[str, float](), dict[str, int]()  # `running`: runs of each owner on the worker that is looked at
    moments = sorted((run.worker, at, change, run.owner) for run in served for at, change in ((run.begun, 1), (run.ended, -1)))
    for (_, now, change, owner), (_, then, _, _) in pairwise(moments):
        running[owner] = running.get(owner, 0) + change
        owners = [each for each, count in running.items() if count > 0]
        for each in owners:
            seconds[each] = seconds.get(each, 0.0) + (then - now) / len(owners)
    return seconds


def in_order(waiting: Iterable[Waiting], recent: Mapping[str, RecentUse], now: float) -> list[Waiting]:
    """Return the waiting runs in the order in which they begin if no other runs are queued.

    The next run has the smallest value of: its owner's recent use of slots, plus the run's expected time, minus its waiting time, all in
    seconds. The waiting time counts from when the run was queued, or from when the previous run of its owner began. Runs of one owner keep
    the order in which they were queued, since a comparison queues its runs in the order in which it needs their results.

    Args:
        waiting: the waiting runs.
        recent: the recent use of slots, by owner; an owner that is missing has used none.
        now: the time, in seconds since 1970.
    """
    queues: dict[str, deque[Waiting]] = defaultdict(deque)
    for run in sorted(waiting, key=lambda run: run.created):
        queues[run.owner].append(run)
    use = {owner: recent.get(owner, RecentUse()) for owner in queues}
    heads: list[tuple[float, float, str]] = []

    def put_head(owner: str) -> None:
        if queues[owner]:
            head, used = queues[owner][0], use[owner]
            heapq.heappush(heads, (used.seconds + head.expected + max(head.created, used.last), head.created, owner))

    for owner in queues:
        put_head(owner)
    order = list[Waiting]()
    while heads:
        _, _, owner = heapq.heappop(heads)
        order.append(queues[owner].popleft())
        use[owner] = RecentUse(use[owner].seconds + order[-1].expected, now)
        put_head(owner)
    return order
