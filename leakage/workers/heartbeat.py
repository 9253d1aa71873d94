"""The signs of life of a run, and whether it should stop."""

import contextlib
import logging
import math
import os
import threading
import time

import torch

from leakage.runs.connections import StoreError
from leakage.runs.store import Run, Store

STUCK = "Stopped in the middle of a step that took too long to wait for; what came before it is kept."
PATIENCE = 10.0  # seconds a step may take after the run should have stopped
log = logging.getLogger(__name__)


class YieldedError(Exception):
    """The run gives its slot to another owner's run. Nothing of it is kept, so its frames need not be scored."""


class Heartbeat(threading.Thread):
    """A thread that stores a run's signs of life, and learns whether the run should stop and whether other runs are being computed.

    The run calls it at every step, so a call must be cheap.
    """

    def __init__(self, store: Store, run: Run) -> None:
        super().__init__(daemon=True)
        self.store, self.run_id = store, run.id
        self.deadline = math.inf
        self.stopped, self.alone, self.ended, self.late = False, True, threading.Event(), False
        self.most, self.last_words, self.yields = 1, STUCK, False

    def run(self) -> None:
        stop_seen = math.inf  # when the request to stop was first seen
        while not self.ended.wait(0.25):
            with contextlib.suppress(StoreError, MemoryError):  # the run itself reports a full disk and lack of memory
                self.stopped, running = self.store.beat(self.run_id)
                self.alone = running <= 1
                if self.stopped and math.isinf(stop_seen):
                    row = self.store.get(self.run_id)
                    stop_seen, self.yields = time.monotonic(), bool(row and row.yields and not row.cancelled)
                if time.monotonic() > min(stop_seen, self.deadline) + PATIENCE:  # a run can stop by itself only between two steps
                    log.error("run %s is stuck in one step: leaving", self.run_id)
                    self.store.finish(self.run_id, "cancelled", message=STUCK if self.stopped else self.last_words)
                    os._exit(1)
        self.store.close()

    def __call__(self) -> bool:
        """Return whether the run should stop; also set torch's number of threads: `most` if no other run is computed, else one."""
        threads = self.most if self.alone else 1
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        return self.should_stop()

    def should_stop(self) -> bool:
        """Return whether the run should stop, without setting torch's number of threads. Raises YieldedError if the run yields its slot."""
        if self.yields:
            raise YieldedError
        self.late = time.monotonic() > self.deadline
        return self.stopped or self.late
