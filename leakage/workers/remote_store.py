"""The store of a worker on another machine: each call waits until the dispatcher has fetched it, carried it out and sent the answer.

The transport of the calls is not part of this module. A call stays open until its answer has come: a dispatcher that was restarted
meanwhile fetches it once more, marked as `again`.
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

OF_A_RUN = frozenset(  # calls with the id of a run as their first argument
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
CALLS = OF_A_RUN | {"claim", "claim_also", "get", "queue", "running", "note", "put_note"}
ORPHANED, IDLE_ORPHANED = 600.0, 120.0  # seconds without an answer after which a worker, with a run or without, ends
PAUSE = 0.4  # seconds that a worker waits after it has found no run: every call goes over the network
SEVERAL = 2  # the number of running runs that `beat` returns: a worker has one core, and must not take the others when it runs alone
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Call:
    """A call of a method of the store. `again`: it was fetched before, and may have been carried out."""

    number: int
    name: str
    values: tuple[Any, ...]
    named: dict[str, Any]
    again: bool = False


@dataclass(frozen=True)
class CallAnswer:
    """What the call with this number returned or raised."""

    number: int
    value: Any = None
    error: Exception | None = None


class OpenCalls:
    """The calls of one worker that have no answer yet; safe to use from several threads."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.calls, self.waiting, self.last = dict[int, Call](), dict[int, Future[Any]](), 0

    def ask(self, name: str, *values: Any, **named: Any) -> Any:
        """Make a call and return its answer, or raise its error. End this process if no dispatcher answers for a long time."""
        with self.changed:
            self.last += 1
            number, answer = self.last, Future[Any]()
            self.calls[number], self.waiting[number] = Call(number, name, values, named), answer
            self.changed.notify_all()
        patience = IDLE_ORPHANED if name == "claim" else ORPHANED
        try:
            return answer.result(patience)
        except TimeoutError:
            if answer.done():  # the error is the answer
                raise
            log.error("no dispatcher has answered for %.0f s: leaving", patience)
            os._exit(1)

    def exchange(self, answers: Sequence[CallAnswer], patience: float) -> list[Call]:
        """Deliver answers to the waiting calls; return all open calls as soon as there are any, or nothing after `patience` seconds."""
        with self.changed:
            for answer in answers:
                if waiting := self.waiting.pop(answer.number, None):  # None: the answer has come before
                    del self.calls[answer.number]
                    waiting.set_exception(answer.error) if answer.error else waiting.set_result(answer.value)
            self.changed.wait_for(lambda: self.calls, patience)
            fetched = list(self.calls.values())
            self.calls.update({call.number: replace(call, again=True) for call in fetched})
        return fetched


class RemoteStore:
    """The methods of a Store that a worker uses, as calls to the dispatcher.

    training   the folder of the training that the worker runs; its files are also copied to the store's machine. None: no training
    kept       name of a file of the training -> when the copy on the store's machine was written, in nanoseconds since 1970
    """

    def __init__(self, calls: OpenCalls) -> None:
        self.calls = calls
        self.training: Path | None = None
        self.kept = dict[str, int]()

    def __getattr__(self, name: str) -> Any:
        if name not in CALLS:
            raise AttributeError(name)
        return partial(self.calls.ask, name)

    def claim(self, _worker: str, *, short: bool) -> Run | None:
        """Claim a run, as `Store.claim` does; its start is by the clock of this machine."""
        run: Run | None = self.calls.ask("claim", short=short)
        if run is None:
            time.sleep(PAUSE)
        return run and replace(run, started=time.time())

    def claim_also(self, runs: Sequence[str], most: int, _worker: str) -> list[Run]:
        """Claim waiting runs as well, as `Store.claim_also` does; their start is by the clock of this machine."""
        return [replace(run, started=time.time()) for run in self.calls.ask("claim_also", list(runs), most)]

    def beat(self, run: str) -> tuple[bool, int]:
        """Store a sign of life, as `Store.beat` does; return whether the run should stop, and SEVERAL for any number of running runs."""
        stop, _ = self.calls.ask("beat", run)
        return stop, SEVERAL

    def add_event(self, run: str, event: RunEvent) -> int:
        """Add an event, as `Store.add_event` does. At the end of a round the training's files are sent first, so that they are not lost."""
        if isinstance(event, RoundEvent):
            self._keep_training(run)
        return int(self.calls.ask("add_event", run, event))

    def finish(self, run: str, status: str, *, message: str = "", result: EndEvent | None = None) -> None:
        """Finish a run, as `Store.finish` does. A training's files are sent first, so that its weights are there when its end is read."""
        if status != "failed":  # sending the files may be what has failed
            self._keep_training(run)
        self.calls.ask("finish", run, status, message=message, result=result)

    def _keep_training(self, run: str) -> None:
        if self.training:
            present, fresh = changed_files(self.training, self.kept)
            self.calls.ask("keep_training", run, list(present), fresh)
            self.kept = present

    def close(self) -> None:
        """Do nothing: this store has no open file."""
