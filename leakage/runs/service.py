"""What pages call to submit, cancel, find and delete runs. It checks limits and knows no SQL and no torch."""

import math
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np

from leakage.data import lpips_weights
from leakage.data.images import PictureError, read, sheet
from leakage.data.images import find as find_picture
from leakage.data.inverters import inverters_digest
from leakage.runs import estimates
from leakage.runs.audit_log import AuditLog
from leakage.runs.connections import StoreError
from leakage.runs.device_kinds import CPU
from leakage.runs.event_parts import GradientRank
from leakage.runs.events import (
    FrameEvent,
    GradientRankEvent,
    MetaEvent,
    MovedEvent,
    ProgressEvent,
    RankEvent,
    RoundEvent,
    TrainingEvent,
    TurnEvent,
)
from leakage.runs.notes import DEVICE, RECORDED, SLOTS
from leakage.runs.queue_errors import in_words
from leakage.runs.run_labels import Labels
from leakage.runs.run_request import MEASURED, Measurement, RunRequest, version_of_weights
from leakage.runs.salvage import open_store
from leakage.runs.store import Caps, Removed, Run, Store
from leakage.runs.upload_codes import UploadCodes
from leakage.runs.upload_limits import check_room
from leakage.settings import Settings, settings
from leakage.spec import catalog as plugins
from leakage.spec.aliases import EARLIER_RUNS
from leakage.spec.audit_task import AuditTask
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError
from leakage.spec.tasks import InverterTraining, Task, Training

MODEL_FOLDERS = {Training: "checkpoints", InverterTraining: "inverters"}  # the folder of the models that a task trains, below the home
SEEN = 3600.0  # seconds between two stored visits of an owner
FILES_GONE = "The files of this update are gone. Choose them again."
NOT_READY = "The list of attacks and models is still being prepared. Try again in a few seconds."


@dataclass(frozen=True)
class Place:
    """A run's position in the queue (0: running or finished), and the expected wait in seconds (None: unknown)."""

    position: int
    wait: float | None


class Service:
    """The runs of a home, as pages use them."""

    def __init__(self, store: Store, config: Settings) -> None:
        self.store, self.config, self.labels, self.codes = store, config, Labels(store), UploadCodes(store)
        self.audits, self.updates = AuditLog(store), store.updates
        self.seen: dict[str, float] = {}  # when each owner was last noted as seen

    @property
    def slots(self) -> int:
        """The number of runs that are computed at a time, as the dispatcher has stored it."""
        return int(self.store.note(SLOTS) or self.config.slots)

    def catalog(self) -> Catalog | None:
        """Return the catalog of plug-ins; None while the dispatcher is still writing it."""
        return _catalog(self.config.catalog.stat().st_mtime_ns, self.config) if self.config.catalog.exists() else None

    def submit(self, experiment: Experiment, owner: str, *, uploads: Mapping[str, bytes] | None = None, group: str | None = None) -> str:
        """Queue an experiment, or share an equal run that is already there; return the run's id. Raises SpecError."""
        return self.submit_all([experiment], owner, uploads=uploads, group=group)[0]

    def submit_all(
        self,
        experiments: Sequence[Experiment],
        owner: str,
        *,
        uploads: Mapping[str, bytes] | None = None,
        group: str | None = None,
        anew: bool = False,
    ) -> list[str]:
        """Queue several experiments in one step, so that workers see all or none, and return their runs' ids.

        `uploads`: id of an upload -> its file; `group`: a name for runs of one purpose; `anew`: compute them even if equal runs are
        there. Raises SpecError if an experiment cannot be run; then none is queued.
        """
        requests = [self._request(experiment.resolve(self.ready()), uploads or {}) for experiment in experiments]
        check_room(self.store, owner, [request.files for request in requests])
        return self._queue(requests, owner, group=group, anew=anew)

    def _request(self, resolved: Experiment, uploads: Mapping[str, bytes]) -> RunRequest:
        for source, id in {(picture.source, picture.id) for picture in resolved.pictures}:
            if source != "upload":
                try:
                    find_picture(source, id)
                except PictureError as error:
                    raise SpecError(f"pictures: {error}") from None
        used = [picture.id for picture in resolved.pictures if picture.source == "upload"]
        missing = [id for id in used if id not in uploads]
        if missing:
            raise SpecError(f"pictures: the upload {missing[0]!r} is gone. Choose its file again.")
        files = {f"upload:{id}": uploads[id] for id in used}
        learned = f" {inverters_digest()}" if self.ready().attacks.get(resolved.attack.id).learned else ""
        return RunRequest(resolved, "attack", files, f" {version_of_weights(resolved)} {lpips_weights.available_nets()}{learned}")

    def train(self, task: Training | InverterTraining, owner: str) -> str:
        """Queue a training, or share an equal run that is already there; return the run's id. Raises SpecError."""
        return self._queue([RunRequest(task.resolve(self.ready()), "train" if isinstance(task, Training) else "invert")], owner)[0]

    def audit(self, task: AuditTask, owner: str) -> str:
        """Queue an audit of a recorded update, or return this owner's equal run; return the run's id. Raises SpecError."""
        if not self.updates.files(task.files):
            raise SpecError(FILES_GONE)
        request = RunRequest(task.resolve(self.ready()), "audit")
        equal = self.audits.find_equal(request.task, self.ready().version)
        (run,) = [equal] if equal else self._queue([request], owner)
        self.updates.mark_used(task.files)
        return run

    def measure(self, task: Measurement, owner: str) -> str:
        """Queue a measurement, or share an equal run that is already there; return the run's id. Raises SpecError."""
        return self._queue([RunRequest(task, MEASURED[type(task)])], owner)[0]

    def measurement(self, task: Measurement, owner: str) -> Run | None:
        """Return a finished run, of any owner, that measured this with today's code, else this owner's latest run, else None."""
        known = self.catalog()
        equal = [run for run in self.store.equal(MEASURED[type(task)], task.digest()) if known and run.version == known.version]
        done = (run for run in equal if run.status == "done")
        return next(done, None) or next((run for run in equal if owner in self.store.holders(run.id)), None)

    def ranks(self, run: str) -> dict[str, int | None]:
        """Return what a rank run has measured so far: layer -> rank, None where the layer is too large."""
        return {event.name: event.rank for event in self.store.events_of(run, RankEvent)}

    def gradient_rank(self, run: str) -> GradientRank | None:
        """Return the rank of the whole gradient that a run has measured; None before that."""
        return next((event.measured for event in self.store.events_of(run, GradientRankEvent)), None)

    def turns(self, run: str) -> list[TurnEvent]:
        """Return the layers that a rank run has begun to measure, in order."""
        return self.store.events_of(run, TurnEvent)

    def moved(self, run: str) -> MovedEvent | None:
        """Return how far a rank run has measured the rank of the whole gradient; None before it has begun that."""
        return next(reversed(self.store.events_of(run, MovedEvent)), None)

    def ready(self) -> Catalog:
        """Return the catalog of plug-ins. Raises SpecError while it is not written yet."""
        known = self.catalog()
        if known is None:
            raise SpecError(NOT_READY)
        return known

    def _queue(self, requests: Sequence[RunRequest], owner: str, *, group: str | None = None, anew: bool = False) -> list[str]:
        """Queue each request, or share an equal run; return the ids of all runs."""
        code, best = self.ready().version, self.store.note(DEVICE) or CPU
        runs = [(self._row(request, owner, request.version(code, best, self.config.step), group), request.files) for request in requests]
        with in_words(self.store, self.config):
            return self.store.ask(runs, anew=anew, caps=Caps(self.config.max_waiting, self.config.max_waiting_all))

    def _row(self, request: RunRequest, owner: str, version: str, group: str | None) -> Run:
        task = request.task
        folder = f"{MODEL_FOLDERS[type(task)]}/{task.name}" if isinstance(task, Training | InverterTraining) else None
        return Run(
            id=secrets.token_urlsafe(12),
            owner=owner,
            grp=group,
            kind=request.kind,
            digest=task.digest(),
            version=version,
            experiment=task.model_dump_json(),
            shareable=request.shareable,
            estimate=self.estimate(task),
            created=time.time(),
            model_folder=folder,
        )

    def look(self, run: str) -> Run | None:
        """Return a run by its id, or by the id of a recorded run in an earlier version; None if there is none."""
        return self.store.get(EARLIER_RUNS.get(run, run))

    def removed(self, run: str) -> Removed | None:
        """Return when and why a run was removed to make room or for its age; None for other runs."""
        return self.store.removed(EARLIER_RUNS.get(run, run))

    def see(self, owner: str) -> None:
        """Store, once an hour at most, that this owner is here, so that the owner's runs stay."""
        now = time.monotonic()
        if now - self.seen.get(owner, -math.inf) > SEEN:
            self.seen[owner] = now
            with suppress(StoreError):  # a full disk: the visit is not stored
                self.store.see(owner)

    def mine(self, owner: str) -> list[Run]:
        """Return the runs of this owner: first the pinned runs, in the order of pinning; then the other runs, newest first."""
        return self.labels.in_order(owner, self.store.held_by(owner))

    def recorded(self) -> str | None:
        """Return the id of the recorded run that a newcomer sees first; None when there is none."""
        return self.store.note(RECORDED)  # type: ignore[no-any-return]

    def equal(self, kind: str, digest: str) -> list[Run]:
        """Return every run of this kind, such as "attack", and this digest (hash) of its task, of any owner and version, newest first."""
        return self.store.equal(kind, digest)

    def meta(self, run: str) -> MetaEvent | None:
        """Return the first event of an attack, with the facts that do not change during the run; None before the attack began."""
        return self.store.meta(run)

    def frames(self, run: str) -> list[FrameEvent]:
        """Return the frames of an attack, oldest first."""
        return self.store.frames(run)

    def sheet(self, run: str, frame: int) -> bytes | None:
        """Return the pictures of a frame side by side as PNG, by the frame's sequence number; None when they are not kept."""
        return self.store.frame(run, frame)

    def private(self, run: str) -> bytes | None:
        """Return the private pictures side by side as PNG, also of a waiting run; None if there are none."""
        return self.store.files(run, "private.png").get("private.png") or self._sheet_of_experiment(run)

    def _sheet_of_experiment(self, run: str) -> bytes | None:
        stored = self.look(run)
        if not stored or stored.kind != "attack":
            return None
        experiment, uploads = stored.experiment_as(Experiment), self.store.files(run, "upload:")
        files = [(picture.source, picture.id, uploads.get(f"upload:{picture.id}")) for picture in experiment.pictures]
        try:
            return sheet(np.stack([read(source, id, experiment.size, experiment.channels, file) for source, id, file in files]))
        except PictureError:  # a data set that is no longer on this machine
            return None

    def progress(self, run: str) -> list[TrainingEvent]:
        """Return the events of a training so far, oldest first: ProgressEvent within a round, RoundEvent at its end."""
        return self.store.events_of(run, ProgressEvent, RoundEvent)

    def may_cancel(self, run: str, owner: str) -> bool:
        """Return whether this owner may stop a run: only a sole owner may, since other owners may be watching a shared run."""
        return self.store.holders(run) == [owner]

    def cancel(self, run: str, owner: str, *, how: str = "stopped") -> None:
        """Stop a run if this is its sole owner, and keep its best result. `how`: "stopped", or "over" when its question's time is over."""
        if self.may_cancel(run, owner):
            self.store.cancel(run, how=how)

    def delete(self, run: str, owner: str) -> None:
        """Remove a run from this owner's list. If it has no other owner, stop it and delete its frames, its uploads and its model."""
        self.store.drop(run, owner)

    def delete_all(self, owner: str) -> int:
        """Delete all runs and files of this owner, and return how many runs there were."""
        runs = self.mine(owner)
        for run in runs:
            self.delete(run.id, owner)
        self.updates.remove_of(owner)
        return len(runs)

    def place(self, run: str) -> Place:
        """Return a run's position in the queue, from 1, and its expected wait; position 0 if the run does not wait."""
        return self.places().get(run, Place(0, None))

    def places(self) -> dict[str, Place]:
        """Return the position and expected wait of every waiting run, from one reading of the queue."""
        waiting = self.store.queue()
        waits = estimates.waits(self.store, self.store.staying(), waiting, self.slots) if waiting else []
        return {run.id: Place(position, wait) for position, (run, wait) in enumerate(zip(waiting, waits, strict=True), 1)}

    def estimate(self, task: Task) -> float | None:
        """Estimate the seconds that a task with defaults filled in takes on this machine; None if nothing is known."""
        known = self.catalog()
        return estimates.estimate(self.store, task, known) if known else None


@cache
def service() -> Service:
    """Return the service of this process. Raises BrokenHomeError."""
    return Service(open_store(config := settings()), config)


def store() -> Store:
    """Return the store of this process, for code that serves files and events; pages use the service."""
    return service().store


@cache
def _catalog(_changed: int, config: Settings) -> Catalog | None:
    return plugins.read(config.catalog)
