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
    """The run lets somebody else go first: nothing of it is kept, so nothing of it need be scored."""


class Heartbeat(threading.Thread):
    """Signs of life every second; knows whether to stop and how many threads this run may use. Asked at every step, so it must be cheap."""

    def __init__(self, store: Store, run: Run) -> None:
        super().__init__(daemon=True)
        self.store, self.run_id = store, run.id
        self.deadline = math.inf
        self.stopped, self.alone, self.over, self.late = False, True, threading.Event(), False
        self.most, self.last_words, self.yields = 1, STUCK, False

    def run(self) -> None:
        told = math.inf  # when it was told to stop
        while not self.over.wait(0.25):
            with contextlib.suppress(StoreError, MemoryError):  # a full disk is reported by the frames, want of memory by the run
                self.stopped, running = self.store.beat(self.run_id)
                self.alone = running <= 1
                if self.stopped and math.isinf(told):
                    found = self.store.get(self.run_id)
                    told, self.yields = time.monotonic(), bool(found and found.yields and not found.cancelled)
                if time.monotonic() > min(told, self.deadline) + PATIENCE:  # only between two steps can a run stop by itself
                    log.error("run %s is stuck in one step: leaving", self.run_id)
                    self.store.finish(self.run_id, "cancelled", message=STUCK if self.stopped else self.last_words)
                    os._exit(1)
        self.store.close()

    def __call__(self) -> bool:
        """Return whether the run should stop; also set torch's number of threads: `most` for a lone run, else one."""
        threads = self.most if self.alone else 1
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        return self.should_stop()

    def should_stop(self) -> bool:
        """Return whether the run should stop, while it is prepared: the number of threads stays. Raises YieldedError where it yields."""
        if self.yields:
            raise YieldedError
        self.late = time.monotonic() > self.deadline
        return self.stopped or self.late
