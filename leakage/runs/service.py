"""The one door for pages: submit, cancel, look, delete. Checks limits; knows no SQL and no torch."""

import json
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from leakage.data import lpips_weights
from leakage.data.checkpoints import find
from leakage.runs.connections import StoreError, is_full
from leakage.runs.store import OPEN, RECORDED, Run, Store
from leakage.settings import Settings, settings
from leakage.spec import catalog as plugins
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError
from leakage.spec.tasks import Ranks, Training

MAX_WAITING = 30  # runs one owner may have waiting or running
SPEEDS = "speeds"  # the note in which the workers keep what they measured: model -> seconds per replay at a batch of 1 and of 8
FULL = "The disk is full: this run could not be kept. Delete some runs (or free some disk) and press Run again."
TOO_MANY = "You can have {} runs waiting or running: {} are, and this would be {} more. Let some finish or cancel them first."
NOT_READY = "The list of attacks and models is still being prepared. Try again in a few seconds."
SERVER = "server"  # the note in which the web server says that it is alive


@dataclass(frozen=True)
class Place:
    """Where a run stands in the queue: 0 is running or finished; `wait` in seconds, None while nothing is known."""

    position: int
    wait: float | None


@dataclass(frozen=True)
class Asked:
    """What somebody wants to be run, resolved; `also` names what else on this machine the result depends on."""

    what: Experiment | Training | Ranks
    kind: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    also: str = ""


class Service:
    """What pages may ask for."""

    def __init__(self, store: Store, config: Settings) -> None:
        self.store, self.config = store, config

    def catalog(self) -> Catalog | None:
        """The plug-ins as data; None while the dispatcher is still writing them down."""
        return _catalog(self.config.catalog.stat().st_mtime_ns, self.config) if self.config.catalog.exists() else None

    def submit(self, experiment: Experiment, owner: str, *, uploads: Mapping[str, bytes] | None = None, group: str | None = None) -> str:
        """Queue an experiment and answer the run's id; an equal experiment that somebody already asked for is shared.

        Raises SpecError when the experiment cannot be run.
        """
        return self.submit_all([experiment], owner, uploads=uploads, group=group)[0]

    def submit_all(
        self, experiments: Sequence[Experiment], owner: str, *, uploads: Mapping[str, bytes] | None = None, group: str | None = None
    ) -> list[str]:
        """The same for several, so that no worker sees the first before the last: what can share a loop then does.

        Raises SpecError when one of them cannot be run; then none is queued.
        """
        return self._queue(
            [self._asked(experiment.resolve(self._ready()), uploads or {}) for experiment in experiments], owner, group=group
        )

    def _asked(self, resolved: Experiment, uploads: Mapping[str, bytes]) -> Asked:
        used = [picture.id for picture in resolved.pictures if picture.source == "upload"]
        missing = [id for id in used if id not in uploads]
        if missing:
            raise SpecError(f"pictures: the upload {missing[0]!r} is gone. Choose its file again.")
        files = {f"upload:{id}": uploads[id] for id in used}
        return Asked(resolved, "attack", files, f" {_weights(resolved)} {lpips_weights.found()}")

    def train(self, training: Training, owner: str) -> str:
        """Queue a training and answer the run's id; an equal one that somebody already asked for is shared. Raises SpecError."""
        return self._queue([Asked(training.resolve(self._ready()), "train")], owner)[0]

    def measure(self, ranks: Ranks, owner: str) -> str:
        """Queue the measurement of a network's ranks, or share it, as a training. Raises SpecError."""
        return self._queue([Asked(ranks, "rank")], owner)[0]

    def measurement(self, ranks: Ranks, owner: str) -> Run | None:
        """A finished run of anybody that measured these ranks by today's code, else this owner's latest, however it stands."""
        known = self.catalog()
        equal = [run for run in self.store.equal("rank", ranks.digest()) if known and run.version == known.version]
        done = (run for run in equal if run.status == "done")
        return next(done, None) or next((run for run in equal if owner in self.store.holders(run.id)), None)

    def ranks(self, run: str) -> dict[str, int | None]:
        """What such a run has measured so far: layer -> rank, None where it is too large."""
        return {event["name"]: event["rank"] for event in self.events(run) if event["kind"] == "rank"}

    def _ready(self) -> Catalog:
        known = self.catalog()
        if known is None:
            raise SpecError(NOT_READY)
        return known

    def _queue(self, asked: Sequence[Asked], owner: str, *, group: str | None = None) -> list[str]:
        """Queue what cannot be shared; the ids of all."""
        ids, fresh, equal = list[str](), list[tuple[Run, Mapping[str, bytes]]](), dict[str, str]()
        for one in asked:
            version, digest = self._ready().version + one.also, one.what.digest()
            shared = None if one.files else equal.get(digest) or self.store.share(digest, version, owner)
            if not shared:
                fresh.append((self._row(one, owner, version, group), one.files))
            ids.append(shared or fresh[-1][0].id)
            equal[digest] = ids[-1]
        waiting = sum(run.status in OPEN for run in self.store.held_by(owner))
        if fresh and waiting + len(fresh) > MAX_WAITING:
            raise SpecError(TOO_MANY.format(MAX_WAITING, waiting, len(fresh)))
        try:
            self.store.add_all(fresh)
        except StoreError as error:
            if is_full(error):
                raise SpecError(FULL) from None
            raise
        return ids

    def _row(self, asked: Asked, owner: str, version: str, group: str | None) -> Run:
        return Run(
            id=secrets.token_urlsafe(12),
            owner=owner,
            grp=group,
            kind=asked.kind,
            digest=asked.what.digest(),
            version=version,
            experiment=asked.what.model_dump_json(),
            shareable=not asked.files,
            estimate=self.estimate(asked.what),
            status="queued",
            message="",
            created=time.time(),
            started=None,
            finished=None,
            heartbeat=None,
            worker=None,
            cancelled=None,
            result=None,
        )

    def look(self, run: str) -> Run | None:
        return self.store.get(run)

    def mine(self, owner: str) -> list[Run]:
        return self.store.held_by(owner)

    def recorded(self) -> str | None:
        """The id of the recorded run, which a newcomer sees first."""
        return self.store.note(RECORDED)  # type: ignore[no-any-return]

    def meta(self, run: str) -> dict[str, Any] | None:
        """What does not change while a run plays; None before it began."""
        return self.store.meta(run)

    def may_cancel(self, run: str, owner: str) -> bool:
        """Only who holds a run alone may stop it: others may be watching the same one."""
        return self.store.holders(run) == [owner]

    def cancel(self, run: str, owner: str) -> None:
        """Stop a run that this owner holds alone and keep the best so far."""
        if self.may_cancel(run, owner):
            self.store.cancel(run)

    def delete(self, run: str, owner: str) -> None:
        """Drop this owner's reference; the last one removes run, frames, uploads and what was trained. It is stopped first."""
        found = self.look(run)
        self.store.drop(run, owner)
        if found and found.kind == "train" and not self.store.equal(found.kind, found.digest):
            shutil.rmtree(self.config.checkpoints / Training.model_validate_json(found.experiment).name, ignore_errors=True)

    def delete_all(self, owner: str) -> int:
        """Delete everything this owner holds; answers how many runs that were."""
        runs = self.mine(owner)
        for run in runs:
            self.delete(run.id, owner)
        return len(runs)

    def events(self, run: str, since: int = 0) -> list[dict[str, Any]]:
        return self.store.events([run], since)

    def place(self, run: str) -> Place:
        """Position in the queue and the wait that finished runs and estimates suggest."""
        waiting, running = self.store.queue(), self.store.running()
        ids = [other.id for other in waiting]
        if run not in ids:
            return Place(0, None)
        position = ids.index(run) + 1
        left = [max(0.0, (r.estimate or 0) - (time.time() - (r.started or time.time()))) for r in running]
        ahead = [r.estimate or 0 for r in waiting[: position - 1]]
        known = all(r.estimate is not None for r in (*running, *waiting[: position - 1]))
        return Place(position, sum(left + ahead) / self.config.slots if known else None)

    def estimate(self, experiment: Experiment | Training | Ranks) -> float | None:
        """Seconds this (resolved) experiment will take on this machine; None when nothing is known.

        What the same attack on the same model took lately, else what the workers measured when they were idle. Ranks: by their sizes.
        """
        if isinstance(experiment, Ranks):
            return experiment.seconds
        known = self.catalog()
        if known is None or isinstance(experiment, Training):
            return None
        steps = planned(experiment)
        lately = [
            r.result["seconds"] / planned(Experiment.model_validate_json(r.experiment))
            for r in self.store.done_like(like(experiment))
            if r.result
        ]
        if lately:
            return float(steps * sorted(lately)[len(lately) // 2])
        entry = known.get("model", experiment.model.id)
        speeds = (self.store.note(SPEEDS) or {}).get(entry.id)
        if not speeds or any(
            experiment.model.fields.get(field.name, field.default) != field.default
            for field in entry.fields
            if field.type != "str" or field.syntax  # a word out of a menu changes little
        ):
            return None
        load = len(experiment.pictures) * experiment.size**2 / 32**2  # in pictures of 32 x 32
        one, eight = speeds
        per_replay = max(one + (eight - one) * (load - 1) / 7, one / 2)
        return steps * known.get("attack", experiment.attack.id).evaluations_per_step * float(per_replay)


def _weights(experiment: Experiment) -> str:
    """How the sha256 of the trained weights begins: a result must not be taken for one of other weights of the same name."""
    return find(experiment.checkpoint)[1].sha256[:12] if experiment.checkpoint else "untrained"


def planned(experiment: Experiment) -> float:
    """Passes over the batch that the attack will replay at most: steps (or 1), for every start, times the client's own epochs."""
    fields = experiment.attack.fields
    epochs = experiment.protocol.fields.get("epochs", 1) if experiment.assume.adaptive else 1
    return max(1.0, float(fields.get("steps", 1)) * float(fields.get("starts", 1)) * float(epochs))


def like(experiment: Experiment) -> str:
    """Runs with equal keys take about equally long per step: who imitates local steps takes longer."""
    imitated = (experiment.protocol.model_dump(), experiment.aggregation and experiment.aggregation.model_dump())
    return json.dumps(
        [
            *(experiment.attack.id, experiment.model.model_dump(), experiment.batch_norm),
            *(*imitated, experiment.assume.adaptive),
            *(len(experiment.pictures), experiment.size, experiment.channels),
        ],
        sort_keys=True,
    )


@cache
def service() -> Service:
    """The service of this process."""
    config = settings()
    return Service(Store(config.store, max_mb=config.store_mb), config)


@cache
def _catalog(_changed: int, config: Settings) -> Catalog | None:
    return plugins.read(config.catalog)
