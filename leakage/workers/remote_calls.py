"""Calls of the store by workers on other machines, carried out on the store's machine: each call once, and only for the worker's runs."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leakage.runs.events import FrameEvent, RunEvent
from leakage.runs.store import Run, Store
from leakage.settings import Settings
from leakage.workers.cluster_files import NeededFile, keep_training, needed_files, training_folder
from leakage.workers.remote_store import CALLS, OF_A_RUN, Call, CallAnswer

# The result of a call for a run that the worker no longer computes: it was deleted, has ended, or began anew. "beat" stops the worker.
LOST_RUN: dict[str, Any] = {"beat": (True, 0), "add_event": 0, "add_frame": 0, "files": {}, "needed_files": []}


class RemoteCalls:
    """Carries out the calls of all workers, one after the other: only this process writes to the store for them."""

    def __init__(self, store: Store, config: Settings) -> None:
        self.store, self.config = store, config

    def answer(self, worker: str, call: Call) -> CallAnswer:
        """Execute a call of the worker of that name; return the answer, with the error if the store raised one."""
        try:
            return CallAnswer(call.number, self._do(worker, call))
        except Exception as error:
            return CallAnswer(call.number, error=_portable(error))

    def _do(self, worker: str, call: Call) -> Any:
        if call.name not in CALLS:
            raise AttributeError(f"A worker asks the store for {call.name!r}; it may ask for {', '.join(sorted(CALLS))}.")
        if call.name in OF_A_RUN and not self.computes(worker, call.values[0]):
            return LOST_RUN.get(call.name)
        if call.again and (result := self._earlier_result(worker, call)) is not None:
            return result
        methods: dict[str, Callable[..., Any]] = {
            "claim": lambda *, short: self.store.claim(worker, short=short),
            "claim_also": lambda runs, most: self.store.claim_also(runs, most, worker),
            "needed_files": self.needed,
            "read_file": self.read,
            "keep_training": lambda run, present, fresh: keep_training(self.folder(run), present, fresh),
        }
        method = methods[call.name] if call.name in methods else getattr(self.store, call.name)
        return method(*call.values, **call.named)

    def computes(self, worker: str, run: str) -> bool:
        """Return whether this worker computes this run, according to the store."""
        row = self.store.get(run)
        return row is not None and row.status == "running" and row.worker == worker

    def _earlier_result(self, worker: str, call: Call) -> Any:
        """Return the result of a call that an earlier dispatcher has carried out and not answered.

        None if the call was not carried out, or if it may be carried out twice.
        """
        if call.name == "claim":  # a worker that claims a run has no other run
            return next((run for run in self.store.running() if run.worker == worker), None)
        if call.name == "claim_also":
            return [run for run in self.store.running() if run.worker == worker and run.id in call.values[0]] or None
        if call.name in ("add_event", "add_frame"):
            return self._number_of(*call.values[:2])
        return None

    def _number_of(self, run: str, event: RunEvent) -> int | None:
        """Return the number of the run's last event of the same kind as `event`, if it is equal to `event`; None otherwise."""
        last: FrameEvent | RunEvent | None = next(reversed(self.store.events_of(run, type(event))), None)
        return last.seq if last and last.body() == type(event).model_validate(event.body()).body() else None

    def needed(self, run: str) -> list[NeededFile] | None:
        """Return the files that a run reads; None while another worker works on the same training."""
        row = self._row(run)
        if row.kind == "train":
            others = [other for other in self.store.running() if other.kind == "train" and other.id != run]
            if any(training_folder(other, self.config) == self.folder(run) for other in others):
                return None
        return list(needed_files(row, self.config))

    def read(self, run: str, file: NeededFile) -> bytes:
        """Return the content of one of the files that a run reads."""
        return needed_files(self._row(run), self.config)[file].read_bytes()

    def folder(self, run: str) -> Path:
        """Return the folder of a run's training."""
        return training_folder(self._row(run), self.config)

    def _row(self, run: str) -> Run:
        row = self.store.get(run)
        assert row is not None, "computes() has just found it"
        return row


def _portable(error: Exception) -> Exception:
    """Return an error, or a RuntimeError with its message if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except (pickle.PickleError, AttributeError, TypeError):
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
