"""The last free slot is kept for another owner, if one waits: which waiting run goes first, and which long runs yield. No SQL."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from leakage.runs.fair_order import EVERY, SHORT, Waiting, takes_short_runs_only

YIELD_AFTER = 2.0  # seconds of waiting before a run yields: a slot may become free by itself


@dataclass(frozen=True)
class Running:
    """A running run: its owner, its worker ("slot:process"), when it began, and the seconds that it is expected to take (None: unknown)."""

    id: str
    owner: str
    worker: str
    begun: float
    estimate: float | None

    @property
    def slot(self) -> int:
        """The number of the worker's slot."""
        return int(self.worker.split(":")[0])

    def is_long(self, now: float) -> bool:
        """Return whether the run is expected to take more than SHORT seconds, has taken more already, or has no estimate."""
        return self.estimate is None or self.estimate > SHORT or now - self.begun > SHORT


def let_others_first(order: Sequence[Waiting], running: Iterable[Running], slots: int, *, short: bool) -> list[Waiting]:
    """Return the waiting runs in the order in which they begin in a free slot: no owner takes all slots while another owner waits.

    Args:
        order: the waiting runs in fair order.
        running: the running runs.
        slots: the number of slots.
        short: whether the free slot is one that takes only short runs.
    """
    if slots < 2:
        return list(order)
    loops, usable = _group_by_worker(running, slots, short=short)
    owners = [runs[0].owner for runs in loops.values()]
    first = next((run for run in order if owners.count(run.owner) < usable - 1), None)
    return [first, *(run for run in order if run is not first)] if first else list(order)


def to_yield(running: Collection[Running], waiting: Iterable[Waiting], slots: int, now: float, *, after: float = YIELD_AFTER) -> list[str]:
    """Return the ids of runs that should yield: if one owner's long runs fill all slots and another waits, those of the latest worker.

    The other runs go on, so that their owner makes progress too. With a single slot no run yields: two owners would take turns for ever.

    Args:
        running: the running runs.
        waiting: the waiting runs.
        slots: the number of slots.
        now: the time, in seconds since 1970.
        after: the seconds that a run of another owner must have waited.
    """
    by_length = {short: _group_by_worker(running, slots, short=short) for short in (False, True)} if slots > 1 else {}
    for waiter in waiting if by_length else ():
        loops, usable = by_length[waiter.short]
        if len(loops) < usable or now - waiter.created < after:
            continue
        owners = {run.owner for runs in loops.values() for run in runs}
        if len(owners) == 1 and waiter.owner not in owners and all(any(run.is_long(now) for run in runs) for runs in loops.values()):
            return [run.id for run in max(loops.values(), key=lambda runs: min(run.begun for run in runs))]
    return []


def _group_by_worker(running: Iterable[Running], slots: int, *, short: bool) -> tuple[dict[str, list[Running]], int]:
    """Return the running runs by worker, and the number of slots: of all slots with `short`, else only of slots that take long runs too."""
    loops: dict[str, list[Running]] = {}
    for run in running:
        if short or not takes_short_runs_only(run.slot):
            loops.setdefault(run.worker, []).append(run)
    return loops, slots if short else slots - slots // EVERY
