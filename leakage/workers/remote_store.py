"""The store as a worker on another machine has it: each call waits until the dispatcher has fetched it, done it and sent its answer.

Knows nothing of what carries the calls. A call stays open until its answer has come: a dispatcher that was started again meanwhile fetches
it once more, and is told so.
"""

import logging
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from leakage.runs.events import EndEvent, RoundEvent, RunEvent
from leakage.runs.store import Run
from leakage.workers.cluster_files import changed_files

OF_A_RUN = frozenset(
    {
        "beat",
        "put_version",
        "add_event",
        "add_frame",
        "put_file",
        "files",
        "finish",
        "needed_files",
        "read_file",
        "keep_training",
        "make_model_room",
    }
)
CALLS = OF_A_RUN | {"claim", "claim_also", "get", "queue", "running", "note", "put_note"}  # the first argument of OF_A_RUN is its id
ORPHANED, IDLE_ORPHANED = 600.0, 120.0  # seconds without an answer after which a worker, with a run or without, gives its place back
PAUSE = 0.4  # seconds that a worker waits, which has found no run, before it asks again: a question goes over the network
SEVERAL = 2  # runs at work, as each is told: it was given one core, and may not take more however idle they look
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Call:
    """A method of the store with its arguments. `again`: it was fetched before, and may have been done."""

    number: int
    name: str
    values: tuple[Any, ...]
    named: dict[str, Any]
    again: bool = False


@dataclass(frozen=True)
class CallAnswer:
    """What the call of that number returned, or raised."""

    number: int
    value: Any = None
    error: Exception | None = None


class OpenCalls:
    """The calls of one worker that have no answer yet; safe to use from several threads."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.calls, self.waiting, self.last = dict[int, Call](), dict[int, Future[Any]](), 0

    def ask(self, name: str, *values: Any, **named: Any) -> Any:
        """Make a call, and wait for its answer. Ends this process where nobody answers: there is no dispatcher, and no new one comes."""
        with self.changed:
            self.last += 1
            number, answer = self.last, Future[Any]()
            self.calls[number], self.waiting[number] = Call(number, name, values, named), answer
            self.changed.notify_all()
        patience = IDLE_ORPHANED if name == "claim" else ORPHANED
        try:
            return answer.result(patience)
        except TimeoutError:
            if answer.done():  # it was the answer
                raise
            log.error("no dispatcher has answered for %.0f s: leaving", patience)
            os._exit(1)

    def exchange(self, answers: Sequence[CallAnswer], patience: float) -> list[Call]:
        """Hand out answers, and fetch all open calls as soon as there are any, within `patience` seconds."""
        with self.changed:
            for answer in answers:
                if waiting := self.waiting.pop(answer.number, None):  # else it has come before
                    del self.calls[answer.number]
                    waiting.set_exception(answer.error) if answer.error else waiting.set_result(answer.value)
            self.changed.wait_for(lambda: self.calls, patience)
            fetched = list(self.calls.values())
            self.calls.update({call.number: replace(call, again=True) for call in fetched})
        return fetched


class RemoteStore:
    """What a worker uses of a Store.

    training   the folder of the training that it runs, whose files are kept where the store is, too
    """

    def __init__(self, calls: OpenCalls) -> None:
        self.calls = calls
        self.training: Path | None = None
        self.kept = dict[str, int]()  # which of its files the other side has: name -> when it was written, in nanoseconds

    def __getattr__(self, name: str) -> Any:
        if name not in CALLS:
            raise AttributeError(name)
        return partial(self.calls.ask, name)

    def claim(self, _worker: str, *, short: bool) -> Run | None:
        """See Store. Its time runs by the clock of this machine."""
        run: Run | None = self.calls.ask("claim", short=short)
        if run is None:
            time.sleep(PAUSE)
        return run and replace(run, started=time.time())

    def claim_also(self, runs: Sequence[str], most: int, _worker: str) -> list[Run]:
        """See Store."""
        return [replace(run, started=time.time()) for run in self.calls.ask("claim_also", list(runs), most)]

    def beat(self, run: str) -> tuple[bool, int]:
        """See Store; but as if it were never alone."""
        stop, _ = self.calls.ask("beat", run)
        return stop, SEVERAL

    def add_event(self, run: str, event: RunEvent) -> int:
        """See Store. What a training has written until the end of a round is sent first: the round is kept if a process is killed."""
        if isinstance(event, RoundEvent):
            self._keep_training(run)
        return int(self.calls.ask("add_event", run, event))

    def finish(self, run: str, status: str, *, message: str = "", result: EndEvent | None = None) -> None:
        """See Store. What a training has written is sent first, so that its weights are there when its end is read."""
        if status != "failed":  # else that may be what has failed
            self._keep_training(run)
        self.calls.ask("finish", run, status, message=message, result=result)

    def _keep_training(self, run: str) -> None:
        if self.training:
            present, fresh = changed_files(self.training, self.kept)
            self.calls.ask("keep_training", run, list(present), fresh)
            self.kept = present

    def close(self) -> None:
        """Do nothing: nothing is open here."""
