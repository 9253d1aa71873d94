"""Files that take seconds to produce, such as slides: made by two separate threads, so that pages do not wait for them, and cached."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

from leakage.results.exports import Download
from leakage.runs.store import OPEN, Run

T = TypeVar("T", bound=Download | None)
AT_A_TIME = 2
CACHE_BYTES = 32 * 2**20


class Downloads:
    """Files that are made two at a time; simultaneous requests for the same file share the work, and the latest files are cached."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(AT_A_TIME, "downloads")
        self.cache, self.lock = OrderedDict[Hashable, Any](), Lock()
        self.under_way = dict[Hashable, Future[Any]]()

    async def get(self, key: Hashable | None, make: Callable[[], T]) -> T:
        """Return a file from the cache, or let a thread make it.

        Args:
            key: Identifies the content: equal keys mean equal files. None if the file must be neither cached nor shared.
            make: Returns the file; None if there is nothing to download.
        """
        if key is None:
            return await asyncio.get_running_loop().run_in_executor(self.threads, _without_stop_iteration, make)
        with self.lock:
            if cached := self.cache.get(key):
                self.cache.move_to_end(key)
                return cached  # type: ignore[no-any-return]
            if key not in self.under_way:
                self.under_way[key] = self.threads.submit(self._make, key, make)
            future = self.under_way[key]
        file: T = await asyncio.shield(asyncio.wrap_future(future))  # a request that is canceled must not cancel the others
        return file

    def _make(self, key: Hashable, make: Callable[[], T]) -> T:
        try:
            file = _without_stop_iteration(make)
            if isinstance(file, Download) and len(file.data) < CACHE_BYTES:
                with self.lock:
                    self.cache[key] = file
                    while sum(len(cached.data) for cached in self.cache.values()) > CACHE_BYTES:
                        self.cache.popitem(last=False)
            return file
        finally:
            with self.lock:
                del self.under_way[key]


def _without_stop_iteration(make: Callable[[], T]) -> T:
    """Call `make` and return its result; raise RuntimeError for StopIteration, which asyncio cannot pass on to the waiting request."""
    try:
        return make()
    except StopIteration as error:
        raise RuntimeError("something that belongs to the run is missing") from error


def cache_key(runs: Sequence[Run | None], name: str) -> tuple[object, ...] | None:
    """Return the cache key of a download of runs; None if a run is missing, can still change, or contains an uploaded picture."""
    if not runs or any(run is None or not run.shareable or run.status in OPEN for run in runs):
        return None
    return (name, *((run.id, run.finished, run.thinned) for run in runs if run))
