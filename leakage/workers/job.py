"""One claimed run on its way: its signs of life, and how it is closed, whatever happens."""

import logging
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from leakage.runs.connections import FULL, is_full
from leakage.runs.device_kinds import on_device
from leakage.runs.endings import OVER, UNBEGUN
from leakage.runs.events import EndEvent
from leakage.runs.run_queue import BEFORE_IT_BEGAN
from leakage.runs.store import Run, Store
from leakage.workers.heartbeat import Heartbeat, YieldedError
from leakage.workers.memory_limit import lift_memory_limit, met_limit

MEMORY = "This needs more memory than one run may use here. Choose a smaller batch, a smaller picture or a narrower model."
log = logging.getLogger(__name__)


class UnbegunError(Exception):
    """A run was stopped, or its time was over, before there was anything to show."""


class Job:
    """A run that this process has claimed. Within `with` it gives signs of life; what goes wrong there fails it with a sentence.

    so_far   what is kept of one that is stopped, in words
    fit      whether this process can play another run: not after an error that nobody expected, above all for want of memory, which
             leaves modules half imported and libraries without what they keep
    """

    def __init__(self, store: Store, run: Run, *, so_far: str) -> None:
        self.store, self.run, self.so_far = store, run, so_far
        self.heartbeat, self.limit, self.runs, self.closed, self.fit = Heartbeat(store, run), 0, 1, False, True

    def __enter__(self) -> "Job":
        with self.telling():
            self.heartbeat.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        if isinstance(error, Exception) and not self.closed:
            self.fail(error)
        self.heartbeat.over.set()
        self.heartbeat.join()

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Fail the job when the block raises an error, and raise it again."""
        try:
            yield
        except Exception as error:
            self.fail(error)
            raise

    def may_take(self, seconds: int, *, runs: int = 1, since: float | None = None) -> None:
        """Limit its time, which began when it was claimed, or at `since` (seconds since 1970); `runs` share a loop and this limit."""
        begun = since or self.run.started or time.time()
        self.limit, self.runs, self.heartbeat.deadline = seconds, runs, time.monotonic() + begun - time.time() + seconds

    def computes_on(self, device: torch.device) -> None:
        """Note where it is computed, if that is another kind of device than was thought when it was asked for."""
        version = on_device(self.run.version, device.type)
        if version != self.run.version:
            self.store.put_version(self.run.id, version)

    @property
    def cut(self) -> str:
        """Why it ends before its time, if it does: stopped, as its message says how, or by its limit."""
        if not self.heartbeat.stopped:
            return "limit" if self.heartbeat.late else ""
        found = self.store.get(self.run.id)
        return (found and found.message) or "stopped"

    def done(self, result: EndEvent, *, whole: bool = True) -> None:
        """Close it with its result. `whole`: this answers all that was asked, so equal requests share it."""
        told = {
            "limit": f"Stopped after {self.limit} s, the limit for {self.who}; {self.so_far}.",
            "stopped": f"Cancelled; {self.so_far}.",
            "over": f"{OVER}; {self.so_far}.",
        }
        message = told.get(self.cut, "")
        status = "cancelled" if self.heartbeat.stopped or not whole else "done"
        self.store.finish(self.run.id, status, message=message, result=result)
        self.closed = True

    @property
    def who(self) -> str:
        """What the time limit is for, in words."""
        return "one run" if self.runs == 1 else f"{self.runs} runs in one loop"

    def fail(self, error: Exception) -> None:
        """Close it with a sentence that a user can act on."""
        if isinstance(error, YieldedError):
            self.store.finish(self.run.id, "yielded")
        elif isinstance(error, UnbegunError):  # nothing went wrong
            self.store.finish(self.run.id, "cancelled", message=BEFORE_IT_BEGAN.get(self.cut, UNBEGUN.format(self.limit)))
        else:
            if met_limit(error):
                lift_memory_limit()
            self.fit = not met_limit(error) and (isinstance(error, ValueError) or is_full(error))
            log.error("run %s failed:\n%s", self.run.id, "".join(traceback.format_exception(error)))
            self.store.finish(self.run.id, "failed", message=sentence(error))
        self.closed = True


def sentence(error: Exception) -> str:
    """Return what went wrong, in a sentence for a user."""
    if is_full(error):
        return FULL
    if met_limit(error):
        return MEMORY
    if isinstance(error, ValueError):
        return str(error)
    return f"The worker met an error that it did not expect ({type(error).__name__}: {error}). The run's frames so far are kept."
