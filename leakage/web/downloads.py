"""Downloads are made by threads of their own, few at a time, and kept for who asks next: they cost seconds, and pages come first."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from leakage.results.exports import Made
from leakage.runs.store import OPEN, Run

AT_A_TIME = 2
KEPT = 32 * 2**20  # bytes


class Downloads:
    """Makes them, and keeps the last ones of runs that have ended and hold no uploads."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(AT_A_TIME, "downloads")
        self.made, self.lock = OrderedDict[tuple[object, ...], Made](), Lock()

    async def get(self, runs: Sequence[Run | None], name: str, make: Callable[[], Made | None]) -> Made | None:
        """What `make` makes of these runs under this name, or has made before."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, self._get, key_of(runs, name), make)

    def _get(self, key: tuple[object, ...] | None, make: Callable[[], Made | None]) -> Made | None:
        with self.lock:
            if key and (kept := self.made.get(key)):
                self.made.move_to_end(key)
                return kept
        found = make()
        if key and found and len(found.data) < KEPT:
            with self.lock:
                self.made[key] = found
                while sum(len(one.data) for one in self.made.values()) > KEPT:
                    self.made.popitem(last=False)
        return found


def key_of(runs: Sequence[Run | None], name: str) -> tuple[object, ...] | None:
    """Under what a download is kept; None while one of its runs can still change, or holds an upload, of which nothing is kept."""
    if not runs or any(run is None or not run.shareable or run.status in OPEN for run in runs):
        return None
    return (name, *((run.id, run.finished, run.thinned) for run in runs if run))
