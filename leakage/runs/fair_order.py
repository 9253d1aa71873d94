"""The order in which waiting runs begin: by what their owners had lately, what they ask for, and how long they wait. No SQL."""

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

WINDOW = 600.0  # seconds that are "lately"
UNKNOWN = 60.0  # seconds that a run without an estimate is taken for
SHORT = 60.0  # seconds: one slot in four takes runs up to this long only, so that none of them waits behind long ones alone
EVERY = 4


@dataclass(frozen=True)
class Waiting:
    """A waiting run: the seconds that it is expected to take (None: unknown), and since when it waits (seconds since 1970)."""

    id: str
    owner: str
    estimate: float | None
    created: float

    @property
    def asks(self) -> float:
        return UNKNOWN if self.estimate is None else self.estimate

    @property
    def short(self) -> bool:
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
class Had:
    """An owner's recent share of the slots: seconds lately, and when a run of theirs last began (0: never)."""

    seconds: float = 0.0
    last: float = 0.0


def seconds_had(served: Iterable[Served]) -> dict[str, float]:
    """Return the seconds of slots that each owner had; runs that shared a worker's loop count once."""
    had: dict[str, float] = defaultdict(float)
    in_order = sorted(served, key=lambda run: (run.owner, run.worker, run.begun))
    for (owner, _), spans in groupby(in_order, key=lambda run: (run.owner, run.worker)):
        until = 0.0
        for span in spans:
            had[owner] += max(0.0, span.ended - max(span.begun, until))
            until = max(until, span.ended)
    return dict(had)


def in_order(waiting: Iterable[Waiting], had: Mapping[str, Had], now: float) -> list[Waiting]:
    """Return the waiting runs in the order in which they begin if no others are queued.

    The next run has the smallest sum of the seconds that its owner had (`had`) and those that it asks for, minus those that it has waited
    for its turn: since it was queued, or since the previous run of its owner began. Among runs of one owner the oldest comes first, since
    a comparison queues its runs in the order in which it wants their results.
    """
    queues: dict[str, deque[Waiting]] = defaultdict(deque)
    for run in sorted(waiting, key=lambda run: run.created):
        queues[run.owner].append(run)
    spent = {owner: had.get(owner, Had()) for owner in queues}
    heads: list[tuple[float, float, str]] = []

    def put_head(owner: str) -> None:
        if queues[owner]:
            head, before = queues[owner][0], spent[owner]
            heapq.heappush(heads, (before.seconds + head.asks + max(head.created, before.last), head.created, owner))

    for owner in queues:
        put_head(owner)
    order = list[Waiting]()
    while heads:
        _, _, owner = heapq.heappop(heads)
        order.append(queues[owner].popleft())
        spent[owner] = Had(spent[owner].seconds + order[-1].asks, now)
        put_head(owner)
    return order
