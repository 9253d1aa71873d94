"""A claimed run in a worker: its signs of life, its time limit, and its end, whatever happens."""

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
    """A run was stopped, or its time was over, before it had a first frame."""


class Job:
    """A run that this process has claimed. Inside `with`, signs of life are stored, and an error ends the run with a sentence.

    so_far   what is kept of the run if it is stopped, in words
    fit      whether this process can compute another run: not after an unexpected error, above all lack of memory, which leaves modules
             half imported and libraries in an invalid state
    """

    def __init__(self, store: Store, run: Run, *, so_far: str) -> None:
        self.store, self.run, self.so_far = store, run, so_far
        self.heartbeat, self.limit, self.runs, self.closed, self.fit = Heartbeat(store, run), 0, 1, False, True

    def __enter__(self) -> "Job":
        with self.failing():
            self.heartbeat.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        if isinstance(error, Exception) and not self.closed:
            self.fail(error)
        self.heartbeat.ended.set()
        self.heartbeat.join()

    @contextmanager
    def failing(self) -> Iterator[None]:
        """End the run as failed if the block raises an error, and raise the error again."""
        try:
            yield
        except Exception as error:
            self.fail(error)
            raise

    def limit_time(self, seconds: int, *, runs: int = 1, since: float | None = None) -> None:
        """Limit the time of the run.

        Args:
            seconds: the limit.
            runs: the number of runs that share a loop and this limit.
            since: when the time began, in seconds since 1970; None: when the run was claimed.
        """
        begun = since or self.run.started or time.time()
        self.limit, self.runs, self.heartbeat.deadline = seconds, runs, time.monotonic() + begun - time.time() + seconds

    def store_device_kind(self, device: torch.device) -> None:
        """Store the kind of device on which the run is computed, if it differs from the kind that was assumed at its submission."""
        version = on_device(self.run.version, device.type)
        if version != self.run.version:
            self.store.put_version(self.run.id, version)

    @property
    def cut(self) -> str:
        """Why the run ends early: "limit" (its time limit), "stopped" (by hand) or "over" (the time of its question); "" if it does not."""
        if not self.heartbeat.stopped:
            return "limit" if self.heartbeat.late else ""
        row = self.store.get(self.run.id)
        return (row and row.message) or "stopped"

    def done(self, result: EndEvent, *, whole: bool = True) -> None:
        """Finish the run with its result. `whole`: whether the result is complete, so that equal requests may share it."""
        runs = "one run" if self.runs == 1 else f"{self.runs} runs in one loop"
        messages = {
            "limit": f"Stopped after {self.limit} s, the limit for {runs}; {self.so_far}.",
            "stopped": f"Cancelled; {self.so_far}.",
            "over": f"{OVER}; {self.so_far}.",
        }
        message = messages.get(self.cut, "")
        status = "cancelled" if self.heartbeat.stopped or not whole else "done"
        self.store.finish(self.run.id, status, message=message, result=result)
        self.closed = True

    def fail(self, error: Exception) -> None:
        """Finish the run after an error.

        It is yielded (queued again) if it made room for another owner's run, cancelled if it was stopped or its time was over before its
        first frame, and else failed. All but a yielded run are given a sentence for the user.
        """
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
    """Describe an error in a sentence for a user."""
    if is_full(error):
        return FULL
    if met_limit(error):
        return MEMORY
    if isinstance(error, ValueError):
        return str(error)
    return f"The worker met an error that it did not expect ({type(error).__name__}: {error}). The run's frames so far are kept."
