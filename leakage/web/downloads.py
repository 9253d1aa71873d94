"""What is drawn for one request, by threads of its own, two at a time, and kept: it costs seconds, and pages come first."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

from leakage.results.exports import Made
from leakage.runs.store import OPEN, Run

T = TypeVar("T", bound=Made | None)
AT_A_TIME = 2
KEPT = 32 * 2**20  # bytes


class Downloads:
    """Makes files two at a time, each once for all who ask for it meanwhile, and keeps the last ones."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(AT_A_TIME, "downloads")
        self.made, self.lock = OrderedDict[Hashable, Any](), Lock()
        self.under_way = dict[Hashable, Future[Any]]()

    async def get(self, key: Hashable | None, make: Callable[[], T]) -> T:
        """What `make` makes, or has made before under this key. A key names the content; without one nothing is kept or shared."""
        if key is None:
            return await asyncio.get_running_loop().run_in_executor(self.threads, _made_by, make)
        with self.lock:
            if kept := self.made.get(key):
                self.made.move_to_end(key)
                return kept  # type: ignore[no-any-return]
            if key not in self.under_way:
                self.under_way[key] = self.threads.submit(self._make, key, make)
            making = self.under_way[key]
        shared: T = await asyncio.shield(asyncio.wrap_future(making))  # who leaves does not take it from those who wait for the same
        return shared

    def _make(self, key: Hashable, make: Callable[[], T]) -> T:
        try:
            found = _made_by(make)
            if isinstance(found, Made) and len(found.data) < KEPT:
                with self.lock:
                    self.made[key] = found
                    while sum(len(one.data) for one in self.made.values()) > KEPT:
                        self.made.popitem(last=False)
            return found
        finally:
            with self.lock:
                del self.under_way[key]


def _made_by(make: Callable[[], T]) -> T:
    """What it makes. A StopIteration would never arrive: asyncio passes on every other fault, and who asked would wait for ever."""
    try:
        return make()
    except StopIteration as error:
        raise RuntimeError("something that belongs to the run is missing") from error


def key_of(runs: Sequence[Run | None], name: str) -> tuple[object, ...] | None:
    """Under what a download is kept; None while one of its runs can still change, or holds an upload, of which nothing is kept."""
    if not runs or any(run is None or not run.shareable or run.status in OPEN for run in runs):
        return None
    return (name, *((run.id, run.finished, run.thinned) for run in runs if run))
