"""The one door for pages: submit, cancel, look, delete. Checks limits; knows no SQL and no torch."""

import math
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from leakage.data import lpips_weights
from leakage.data.checkpoints import find
from leakage.data.images import PictureError, read, sheet
from leakage.data.images import find as find_picture
from leakage.data.inverters import inverters_digest
from leakage.runs import estimates
from leakage.runs.connections import StoreError
from leakage.runs.device_kinds import CPU, on_device
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
from leakage.runs.salvage import open_store
from leakage.runs.store import Caps, Removed, Run, Store
from leakage.runs.upload_codes import UploadCodes
from leakage.runs.upload_limits import check_room
from leakage.settings import Settings, settings
from leakage.spec import catalog as plugins
from leakage.spec.aliases import EARLIER_RUNS
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError
from leakage.spec.tasks import InverterTraining, Ranks, Task, Training

MADE = {Training: "checkpoints", InverterTraining: "inverters"}  # where what a task makes lies, below the home
SEEN = 3600.0  # seconds between two notes that an owner is here
NOT_READY = "The list of attacks and models is still being prepared. Try again in a few seconds."


@dataclass(frozen=True)
class Place:
    """Where a run stands in the queue: 0 is running or finished; `wait` in seconds, None while nothing is known."""

    position: int
    wait: float | None


@dataclass(frozen=True)
class RunRequest:
    """What somebody wants to be run, resolved; `also` names what else on this machine the result depends on."""

    what: Task
    kind: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    also: str = ""


class Service:
    """What pages may ask for."""

    def __init__(self, store: Store, config: Settings) -> None:
        self.store, self.config, self.labels, self.codes = store, config, Labels(store), UploadCodes(store)
        self.seen: dict[str, float] = {}  # when each owner was last noted to be here

    @property
    def slots(self) -> int:
        """How many runs are played at a time, as the dispatcher says, which has counted the GPUs."""
        return int(self.store.note(SLOTS) or self.config.slots)

    def catalog(self) -> Catalog | None:
        """The plug-ins as data; None while the dispatcher is still writing them down."""
        return _catalog(self.config.catalog.stat().st_mtime_ns, self.config) if self.config.catalog.exists() else None

    def submit(self, experiment: Experiment, owner: str, *, uploads: Mapping[str, bytes] | None = None, group: str | None = None) -> str:
        """Queue an experiment and answer the run's id; an equal one that somebody already asked for is shared. Raises SpecError."""
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
        """The same for several, so that no worker sees the first before the last: what can share a loop then does.

        `anew`: they are computed even where equal ones are there. Raises SpecError when one of them cannot be run; then none is queued.
        """
        requests = [self._request(experiment.resolve(self.ready()), uploads or {}) for experiment in experiments]
        check_room(self.store, owner, [one.files for one in requests])
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
        return RunRequest(resolved, "attack", files, f" {_weights(resolved)} {lpips_weights.available_nets()}{learned}")

    def train(self, task: Training | InverterTraining, owner: str) -> str:
        """Queue a training and answer the run's id; an equal one that somebody already asked for is shared. Raises SpecError."""
        return self._queue([RunRequest(task.resolve(self.ready()), "train" if isinstance(task, Training) else "invert")], owner)[0]

    def measure(self, ranks: Ranks, owner: str) -> str:
        """Queue the measurement of a network's ranks, or share it, as a training. Raises SpecError."""
        return self._queue([RunRequest(ranks, "rank")], owner)[0]

    def measurement(self, ranks: Ranks, owner: str) -> Run | None:
        """A finished run of anybody that measured these ranks by today's code, else this owner's latest, however it stands."""
        known = self.catalog()
        equal = [run for run in self.store.equal("rank", ranks.digest()) if known and run.version == known.version]
        done = (run for run in equal if run.status == "done")
        return next(done, None) or next((run for run in equal if owner in self.store.holders(run.id)), None)

    def ranks(self, run: str) -> dict[str, int | None]:
        """What such a run has measured so far: layer -> rank, None where it is too large."""
        return {told.name: told.rank for told in self.store.events_of(run, RankEvent)}

    def gradient_rank(self, run: str) -> GradientRank | None:
        """What it has measured of the whole gradient, if it has."""
        return next((told.measured for told in self.store.events_of(run, GradientRankEvent)), None)

    def turns(self, run: str) -> list[TurnEvent]:  # the layers to which such a run has turned
        return self.store.events_of(run, TurnEvent)

    def moved(self, run: str) -> MovedEvent | None:
        """How far it is with the whole gradient; None before it has turned to it."""
        return next(reversed(self.store.events_of(run, MovedEvent)), None)

    def ready(self) -> Catalog:
        """The plug-ins as data. Raises SpecError, with a sentence, while there are none yet."""
        known = self.catalog()
        if known is None:
            raise SpecError(NOT_READY)
        return known

    def _queue(self, requests: Sequence[RunRequest], owner: str, *, group: str | None = None, anew: bool = False) -> list[str]:
        """Queue what cannot be shared; the ids of all."""
        version, best = self.ready().version, self.store.note(DEVICE) or CPU
        devices = [CPU if one.kind == "rank" else best for one in requests]  # ranks are measured on the CPU, whatever else is there
        versions = [on_device(version + one.also, device) for one, device in zip(requests, devices, strict=True)]
        asked = [(self._row(one, owner, own, group), one.files) for one, own in zip(requests, versions, strict=True)]
        with in_words(self.store, self.config):
            return self.store.ask(asked, anew=anew, caps=Caps(self.config.max_waiting, self.config.max_waiting_all))

    def _row(self, request: RunRequest, owner: str, version: str, group: str | None) -> Run:
        return Run(
            id=secrets.token_urlsafe(12),
            owner=owner,
            grp=group,
            kind=request.kind,
            digest=request.what.digest(),
            version=version,
            experiment=request.what.model_dump_json(),
            shareable=not request.files,
            estimate=self.estimate(request.what),
            created=time.time(),
            model_folder=f"{MADE[type(request.what)]}/{request.what.name}"
            if isinstance(request.what, Training | InverterTraining)
            else None,
        )

    def look(self, run: str) -> Run | None:
        return self.store.get(EARLIER_RUNS.get(run, run))

    def removed(self, run: str) -> Removed | None:
        """What became of a run that was removed to make room or for its age."""
        return self.store.removed(EARLIER_RUNS.get(run, run))

    def see(self, owner: str) -> None:
        """This owner is here: their runs stay. Noted once an hour at most."""
        now = time.monotonic()
        if now - self.seen.get(owner, -math.inf) > SEEN:
            self.seen[owner] = now
            with suppress(StoreError):  # on a full disk the day goes by unnoted
                self.store.see(owner)

    def mine(self, owner: str) -> list[Run]:
        """The runs of this owner: those pinned, as they were pinned one after the other; then the newest first."""
        return self.labels.in_order(owner, self.store.held_by(owner))

    def recorded(self) -> str | None:
        """The id of the recorded run, which a newcomer sees first."""
        return self.store.note(RECORDED)  # type: ignore[no-any-return]

    def equal(self, kind: str, digest: str) -> list[Run]:
        """Every run that asked this, of whatever owner and version; newest first."""
        return self.store.equal(kind, digest)

    def meta(self, run: str) -> MetaEvent | None:
        """What does not change while an attack plays; None before it began."""
        return self.store.meta(run)

    def frames(self, run: str) -> list[FrameEvent]:
        """The frames of an attack, oldest first."""
        return self.store.frames(run)

    def sheet(self, run: str, frame: int) -> bytes | None:
        """The contact sheet of a frame, by its number; None where it is not kept."""
        return self.store.frame(run, frame)

    def private(self, run: str) -> bytes | None:
        """The contact sheet of the private pictures, also of a run that waits; None where there are none."""
        return self.store.files(run, "private.png").get("private.png") or self._asked(run)

    def _asked(self, run: str) -> bytes | None:
        found = self.look(run)
        if not found or found.kind != "attack":
            return None
        asked, uploads = Experiment.model_validate_json(found.experiment), self.store.files(run, "upload:")
        given = [(picture.source, picture.id, uploads.get(f"upload:{picture.id}")) for picture in asked.pictures]
        try:
            return sheet(np.stack([read(source, id, asked.size, asked.channels, upload) for source, id, upload in given]))
        except PictureError:  # of a data set that is gone since
            return None

    def progress(self, run: str) -> list[TrainingEvent]:
        """What a training has told so far, within rounds and at their ends (RoundEvent); oldest first."""
        return self.store.events_of(run, ProgressEvent, RoundEvent)

    def may_cancel(self, run: str, owner: str) -> bool:
        """Only who holds a run alone may stop it: others may be watching the same one."""
        return self.store.holders(run) == [owner]

    def cancel(self, run: str, owner: str, *, how: str = "stopped") -> None:
        """Stop a run that this owner holds alone and keep the best so far; `how`: by hand (stopped), or as its question's time is over."""
        if self.may_cancel(run, owner):
            self.store.cancel(run, how=how)

    def delete(self, run: str, owner: str) -> None:
        """Drop this owner's reference; the last one removes run, frames, uploads and what was trained. It is stopped first."""
        self.store.drop(run, owner)

    def delete_all(self, owner: str) -> int:
        """Delete everything this owner holds; answers how many runs that were."""
        runs = self.mine(owner)
        for run in runs:
            self.delete(run.id, owner)
        return len(runs)

    def place(self, run: str) -> Place:
        """Position in the queue, and the wait that the pace of what runs and estimates suggest."""
        return self.places().get(run, Place(0, None))

    def places(self) -> dict[str, Place]:
        """Where every run that waits stands, from one reading of the queue."""
        waiting = self.store.queue()
        waits = estimates.waits(self.store, self.store.staying(), waiting, self.slots) if waiting else []
        return {run.id: Place(place, wait) for place, (run, wait) in enumerate(zip(waiting, waits, strict=True), 1)}

    def estimate(self, task: Task) -> float | None:
        """Seconds that this (resolved) experiment will take on this machine; None when nothing is known."""
        known = self.catalog()
        return estimates.estimate(self.store, task, known) if known else None


def _weights(experiment: Experiment) -> str:
    """How the sha256 of the trained weights begins: a result must not be taken for one of other weights of the same name."""
    return find(experiment.checkpoint)[1].sha256[:12] if experiment.checkpoint else "untrained"


@cache
def service() -> Service:
    """The service of this process. Raises BrokenHomeError."""
    return Service(open_store(config := settings()), config)


def store() -> Store:
    """The store behind it, for what serves files and events; pages ask the service."""
    return service().store


@cache
def _catalog(_changed: int, config: Settings) -> Catalog | None:
    return plugins.read(config.catalog)
