"""In which order waiting runs begin: who got less lately comes first, then who asks for less; waiting counts for both. Knows no SQL."""

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
    """What counts of a run that waits: seconds it is to take (None: unknown), and since when it waits (seconds since 1970)."""

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
    """A run that had a slot, or has it: of whom, in which worker, from when to when (of one that runs: until it is to end)."""

    owner: str
    worker: str
    begun: float
    ended: float


def takes_short_runs_only(slot: int) -> bool:
    """Whether this slot, counted from 0, is one of those kept for short runs: the fourth, the eighth ..."""
    return slot % EVERY == EVERY - 1


@dataclass(frozen=True)
class Had:
    """What an owner had: seconds of slots lately, and when a run of theirs last began (0: never)."""

    seconds: float = 0.0
    last: float = 0.0


def seconds_had(served: Iterable[Served]) -> dict[str, float]:
    """Seconds of slots that each owner had; runs that shared a worker's loop count once."""
    had: dict[str, float] = defaultdict(float)
    in_order = sorted(served, key=lambda one: (one.owner, one.worker, one.begun))
    for (owner, _), spans in groupby(in_order, key=lambda one: (one.owner, one.worker)):
        until = 0.0
        for span in spans:
            had[owner] += max(0.0, span.ended - max(span.begun, until))
            until = max(until, span.ended)
    return dict(had)


def in_order(waiting: Iterable[Waiting], had: Mapping[str, Had], now: float) -> list[Waiting]:
    """The order in which they will begin if nothing else is asked for.

    The next is the run with the fewest seconds that its owner had (`had`), plus those that it asks for, minus those that it has waited
    for its turn: since it was asked for, or since the run of its owner before it began. Of one owner, the oldest comes first: a comparison
    asks in the order in which it wants to be answered.
    """
    queues: dict[str, deque[Waiting]] = defaultdict(deque)
    for one in sorted(waiting, key=lambda one: one.created):
        queues[one.owner].append(one)
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
