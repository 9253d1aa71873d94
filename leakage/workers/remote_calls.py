"""What workers on other machines ask of the store, done where the store is: each call once, and for the runs that are theirs alone."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leakage.runs.events import FrameEvent, RunEvent
from leakage.runs.store import Run, Store
from leakage.settings import Settings
from leakage.workers.cluster_files import NeededFile, keep_training, needed_files, training_folder
from leakage.workers.remote_store import CALLS, OF_A_RUN, Call, CallAnswer

# What somebody hears of a run that is no more theirs: it was deleted, has ended, or began anew on another machine. The worker then stops.
NOT_THEIRS: dict[str, Any] = {"beat": (True, 0), "add_event": 0, "add_frame": 0, "files": {}, "needed_files": []}


class RemoteCalls:
    """Does the calls of all workers, one after the other: this process alone writes to the store for them."""

    def __init__(self, store: Store, config: Settings) -> None:
        self.store, self.config = store, config

    def answer(self, worker: str, call: Call) -> CallAnswer:
        """Do a call of the worker of that name. What goes wrong is its answer: it raises there what a Store would have raised."""
        try:
            return CallAnswer(call.number, self._do(worker, call))
        except Exception as error:
            return CallAnswer(call.number, error=_portable(error))

    def _do(self, worker: str, call: Call) -> Any:
        if call.name not in CALLS:
            raise AttributeError(f"A worker asks the store for {call.name!r}; it may ask for {', '.join(sorted(CALLS))}.")
        if call.name in OF_A_RUN and not self.plays(worker, call.values[0]):
            return NOT_THEIRS.get(call.name)
        if call.again and (done := self._done_before(worker, call)) is not None:
            return done
        own: dict[str, Callable[..., Any]] = {
            "claim": lambda *, short: self.store.claim(worker, short=short),
            "claim_also": lambda runs, most: self.store.claim_also(runs, most, worker),
            "needed_files": self.needed,
            "read_file": self.read,
            "keep_training": lambda run, present, fresh: keep_training(self.folder(run), present, fresh),
        }
        method = own[call.name] if call.name in own else getattr(self.store, call.name)
        return method(*call.values, **call.named)

    def plays(self, worker: str, run: str) -> bool:
        """Return whether the store says that this worker computes this run."""
        row = self.store.get(run)
        return row is not None and row.status == "running" and row.worker == worker

    def _done_before(self, worker: str, call: Call) -> Any:
        """Return the result of a call done before an earlier dispatcher could send it; None where it was not done, or may be done twice."""
        if call.name == "claim":  # a worker that asks for a run computes none
            return next((run for run in self.store.running() if run.worker == worker), None)
        if call.name == "claim_also":
            return [run for run in self.store.running() if run.worker == worker and run.id in call.values[0]] or None
        if call.name in ("add_event", "add_frame"):
            return self._number_of(*call.values[:2])
        return None

    def _number_of(self, run: str, event: RunEvent) -> int | None:
        """Return the number of the run's last event of that kind, if it is this event."""
        last: FrameEvent | RunEvent | None = next(reversed(self.store.events_of(run, type(event))), None)
        return last.seq if last and last.body() == type(event).model_validate(event.body()).body() else None

    def needed(self, run: str) -> list[NeededFile] | None:
        """Return the files that this run reads; None while another worker works on the same training."""
        row = self._row(run)
        if row.kind == "train":
            others = [other for other in self.store.running() if other.kind == "train" and other.id != run]
            if any(training_folder(other, self.config) == self.folder(run) for other in others):
                return None
        return list(needed_files(row, self.config))

    def read(self, run: str, file: NeededFile) -> bytes:
        """Read one of these files."""
        return needed_files(self._row(run), self.config)[file].read_bytes()

    def folder(self, run: str) -> Path:
        return training_folder(self._row(run), self.config)

    def _row(self, run: str) -> Run:
        row = self.store.get(run)
        assert row is not None, "plays() has just found it"
        return row


def _portable(error: Exception) -> Exception:
    """Return the error in a form that can be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except (pickle.PickleError, AttributeError, TypeError):
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
