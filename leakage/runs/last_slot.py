"""One owner never holds the last slot while somebody else waits: who is served before them, and which of their long runs yields. No SQL."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from leakage.runs.fair_order import EVERY, SHORT, Waiting, takes_short_runs_only

YIELD_AFTER = 2.0  # seconds that somebody waits before a run yields: a slot may just become free by itself


@dataclass(frozen=True)
class Playing:
    """A run at work: of whom, in which worker ("slot:process"), since when, how many seconds it is to take (None: unknown)."""

    id: str
    owner: str
    worker: str
    begun: float
    estimate: float | None

    @property
    def slot(self) -> int:
        return int(self.worker.split(":")[0])

    def is_long(self, now: float) -> bool:
        """Whether it does not end within a minute or so by itself."""
        return self.estimate is None or self.estimate > SHORT or now - self.begun > SHORT


def let_others_first(order: Sequence[Waiting], playing: Iterable[Playing], slots: int, *, short: bool) -> list[Waiting]:
    """The order in which waiting runs begin in the one slot that is left, of those that take `short` runs only or of all others.

    Whose runs are in all the others, comes behind the first of somebody else.
    """
    if slots < 2:
        return list(order)
    loops, usable = _loops(playing, slots, short=short)
    owners = [runs[0].owner for runs in loops.values()]
    first = next((one for one in order if owners.count(one.owner) < usable - 1), None)
    return [first, *(one for one in order if one is not first)] if first else list(order)


def to_yield(playing: Collection[Playing], waiting: Iterable[Waiting], slots: int, now: float, *, after: float = YIELD_AFTER) -> list[str]:
    """The runs that yield: those in the worker that began last, where long runs of one owner hold every slot and somebody else waits.

    All but one go on, so that whatever comes their owner gets on. Of one slot nothing yields: two who wait in turn would never end.
    """
    every = {short: _loops(playing, slots, short=short) for short in (False, True)} if slots > 1 else {}
    for one in waiting if every else ():
        loops, usable = every[one.short]
        if len(loops) < usable or now - one.created < after:
            continue
        owners = {run.owner for runs in loops.values() for run in runs}
        if len(owners) == 1 and one.owner not in owners and all(any(run.is_long(now) for run in runs) for runs in loops.values()):
            return [run.id for run in max(loops.values(), key=lambda runs: min(run.begun for run in runs))]
    return []


def _loops(playing: Iterable[Playing], slots: int, *, short: bool) -> tuple[dict[str, list[Playing]], int]:
    """What is played by worker, in the slots that take runs of this kind; and how many such slots there are."""
    loops: dict[str, list[Playing]] = {}
    for one in playing:
        if short or not takes_short_runs_only(one.slot):
            loops.setdefault(one.worker, []).append(one)
    return loops, slots if short else slots - slots // EVERY
