"""No owner keeps the last slot while another owner waits: which waiting run goes first, and which long run yields. No SQL."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from leakage.runs.fair_order import EVERY, SHORT, Waiting, takes_short_runs_only

YIELD_AFTER = 2.0  # seconds of waiting before a run yields: a slot may become free by itself


@dataclass(frozen=True)
class Playing:
    """A running run: its owner, its worker ("slot:process"), when it began, and the seconds that it is expected to take (None: unknown)."""

    id: str
    owner: str
    worker: str
    begun: float
    estimate: float | None

    @property
    def slot(self) -> int:
        return int(self.worker.split(":")[0])

    def is_long(self, now: float) -> bool:
        """Return whether the run is not expected to end within a minute or so."""
        return self.estimate is None or self.estimate > SHORT or now - self.begun > SHORT


def let_others_first(order: Sequence[Waiting], playing: Iterable[Playing], slots: int, *, short: bool) -> list[Waiting]:
    """Return the order in which waiting runs begin in the last free slot, one for `short` runs or one of the others.

    An owner with runs in all other slots comes behind the first run of another owner.
    """
    if slots < 2:
        return list(order)
    loops, usable = _loops(playing, slots, short=short)
    owners = [runs[0].owner for runs in loops.values()]
    first = next((run for run in order if owners.count(run.owner) < usable - 1), None)
    return [first, *(run for run in order if run is not first)] if first else list(order)


def to_yield(playing: Collection[Playing], waiting: Iterable[Waiting], slots: int, now: float, *, after: float = YIELD_AFTER) -> list[str]:
    """Return the runs that yield: those of the worker that began last, when long runs of one owner fill every slot and another owner waits.

    All other workers go on, so that their owner makes progress too. With one slot nothing yields: two owners would take turns for ever.
    """
    every = {short: _loops(playing, slots, short=short) for short in (False, True)} if slots > 1 else {}
    for waiter in waiting if every else ():
        loops, usable = every[waiter.short]
        if len(loops) < usable or now - waiter.created < after:
            continue
        owners = {run.owner for runs in loops.values() for run in runs}
        if len(owners) == 1 and waiter.owner not in owners and all(any(run.is_long(now) for run in runs) for runs in loops.values()):
            return [run.id for run in max(loops.values(), key=lambda runs: min(run.begun for run in runs))]
    return []


def _loops(playing: Iterable[Playing], slots: int, *, short: bool) -> tuple[dict[str, list[Playing]], int]:
    """Return the running runs by worker, in slots that take runs of this kind, and how many such slots there are."""
    loops: dict[str, list[Playing]] = {}
    for run in playing:
        if short or not takes_short_runs_only(run.slot):
            loops.setdefault(run.worker, []).append(run)
    return loops, slots if short else slots - slots // EVERY
