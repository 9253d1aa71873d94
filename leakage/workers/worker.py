"""A worker: it claims runs and computes them, one after the other: `python -m leakage.workers.worker SLOT DISPATCHER [GPU FRACTION]`."""

import contextlib
import logging
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from leakage.engine.devices import best_device
from leakage.engine.stopping import StoppedError
from leakage.runs.broken_home import BrokenHomeError
from leakage.runs.connections import StoreError
from leakage.runs.events import GradientNormsEnd, HandedModelEnd
from leakage.runs.fair_order import takes_short_runs_only
from leakage.runs.notes import DEVICE, SPEEDS
from leakage.runs.private_home import keep_private
from leakage.runs.store import Run, Store
from leakage.settings import Settings, cores, memory_fraction, settings
from leakage.spec.audit_task import AuditTask
from leakage.spec.experiment import Experiment, Part
from leakage.spec.tasks import GradientNorms, HandedModel, InverterTraining, Ranks, parse_training
from leakage.workers import attack_job, audit_job, handed_job, inverter_job, norms_job, plugin_catalog, rank_job, training_job
from leakage.workers.adapter import play
from leakage.workers.job import Job
from leakage.workers.memory_limit import limit_memory
from leakage.workers.timing import measure

log = logging.getLogger(__name__)


def nothing(_job: Job) -> None:
    """Do nothing: a run on the store's machine has all its files."""


def perform(store: Store, run: Run, device: torch.device, prepare: Callable[[Job], None] = nothing) -> bool:
    """Compute a claimed run and finish it, whatever happens; return whether this process is fit for another run.

    Args:
        store: the store.
        run: the claimed run.
        device: the device to compute on.
        prepare: fetches the files that the run needs.
    """
    kind = KINDS[run.kind]
    job = Job(store, run, so_far=kind.so_far)
    with contextlib.suppress(Exception), job:  # the job has stored the error
        prepare(job)
        kind.perform(job, device)
    return job.fit


def train(job: Job, device: torch.device) -> None:
    """Train a model, with all cores while no other run is computed, and finish the run."""
    job.store_device_kind(device)
    job.limit_time(parse_training(job.run.experiment).max_seconds)
    job.heartbeat.most = cores()
    result = training_job.perform(job.store, job.run, job.heartbeat, device)
    job.done(result, whole=result.checkpoint is not None)


def measure_ranks(job: Job, _device: torch.device) -> None:
    """Measure the ranks of a network's layers and of its gradient, on one core, and finish the run."""
    job.limit_time(job.run.experiment_as(Ranks).max_seconds)
    result = rank_job.perform(job.store, job.run, job.heartbeat)
    job.done(result, whole=result.whole)


def look_at_model(job: Job, _device: torch.device) -> None:
    """Compare the model that a server hands out with the agreed network, and finish the run."""
    task = job.run.experiment_as(HandedModel)
    job.limit_time(task.max_seconds)
    job.done(HandedModelEnd(layers=handed_job.layers(task)))


def measure_norms(job: Job, _device: torch.device) -> None:
    """Measure the norm of the gradient of each picture, on one core, and finish the run; a part of the pictures gives no order."""
    task = job.run.experiment_as(GradientNorms)
    job.limit_time(task.max_seconds)
    try:
        norms = norms_job.norms(task, job.heartbeat)
    except StoppedError:
        norms = {}
    job.done(GradientNormsEnd(norms=norms), whole=bool(norms))


def audit(job: Job, _device: torch.device) -> None:
    """Audit a recorded update, with all cores while no other run is computed, and finish the run."""
    job.limit_time(job.run.experiment_as(AuditTask).max_seconds)
    job.heartbeat.most = cores()
    result = audit_job.perform(job.store, job.run, job.heartbeat)
    job.done(result, whole=result.whole)


def train_attacker(job: Job, _device: torch.device) -> None:
    """Train a network that undoes updates, with all cores while no other run is computed, and finish the run."""
    job.limit_time(job.run.experiment_as(InverterTraining).max_seconds)
    job.heartbeat.most = cores()
    result = inverter_job.perform(job.store, job.run, job.heartbeat)
    job.done(result, whole=result.inverter is not None)


@dataclass(frozen=True)
class Kind:
    """How a kind of run is computed."""

    perform: Callable[[Job, torch.device], None]
    """Computes and finishes the run of a job."""
    so_far: str
    """What is kept of a run that was stopped, in words."""


KINDS = {
    "attack": Kind(attack_job.perform, attack_job.SO_FAR),
    "train": Kind(train, "the same training, asked for again, goes on from its last full round"),
    "invert": Kind(train_attacker, "nothing of it is kept"),
    "rank": Kind(measure_ranks, "the ranks so far are shown"),
    "audit": Kind(audit, "what was found so far is shown"),
    "handed": Kind(look_at_model, "nothing of it is kept"),
    "norms": Kind(measure_norms, "nothing of it is kept"),
}


def limit_gpu(device: torch.device, fraction: float) -> None:
    """Limit this process to a fraction of the GPU's memory, 0 to 1, so that a run that needs more fails without harm to other runs."""
    if device.type == "cuda":
        torch.cuda.set_per_process_memory_fraction(fraction)  # of the current device, which is `device`


def claim(store: Store, worker: str, *, short: bool) -> Run | None:
    """Claim the next run, or with `short` the next short run; None if there is none, or if the store cannot be written."""
    try:
        return store.claim(worker, short=short)
    except StoreError as error:
        log.warning("no run can be claimed now: %s", error)
        time.sleep(1)
        return None


def chores(store: Store, slot: str, device: torch.device) -> Iterator[bool]:
    """Do the work of an idle worker in pieces, so that no run waits for all of it, and yield True after each piece.

    First, every worker computes one step of an attack, so that no user waits for libraries that are loaded at first use. Then the worker in
    the first slot measures the speed of this machine, if that was never done, and ends its process. Errors are logged.
    """
    try:
        short = Part(id="idlg", fields={"steps": 1, "restarts": 1})
        deque(play(Experiment(attack=short).resolve(plugin_catalog.describe())), maxlen=0)
        yield True
        if slot == "0" and not store.note(SPEEDS):
            speeds = {}
            for name, seconds in measure(device):
                speeds[name] = seconds
                yield True
            store.put_note(SPEEDS, speeds)
            sys.exit()  # a process that has run many models is 6 % slower ever after: the dispatcher starts a fresh one
    except Exception:
        log.error("this machine could not be measured:\n%s", traceback.format_exc())


def note_device(store: Store, device: torch.device) -> None:
    """Record the kind of device that the store's workers compute on; forget the measured speeds where another kind was recorded before.

    Results are shared only between runs of one kind of device, and the next experiments that are submitted ask for results of this kind.
    """
    known = store.note(DEVICE)
    if known != device.type:
        store.put_note(DEVICE, device.type)
        if known or device.type != "cpu":
            store.put_note(SPEEDS, None)


def main(config: Settings, slot: str, dispatcher: int, fraction: float) -> None:
    """Claim and compute runs until the dispatcher has ended.

    Args:
        config: the settings.
        slot: the name of the worker's slot.
        dispatcher: the process id of the dispatcher.
        fraction: the fraction of the GPU's memory, 0 to 1, that this process may fill.
    """
    store = Store(config.store, max_mb=config.store_mb)
    device = best_device()
    if device.type == "cpu":
        limit_memory(config.memory_mb)
        torch.set_num_threads(min(torch.get_num_threads(), cores()))  # torch sees the machine's cores, not the container's quota
    limit_gpu(device, fraction)
    work(store, f"{slot}:{os.getpid()}", device, going=lambda: os.getppid() == dispatcher)


def work(
    store: Store,
    worker: str,
    device: torch.device,
    *,
    going: Callable[[], bool],
    prepare: Callable[[Job], None] = nothing,
) -> None:
    """Claim and compute runs while `going()` returns True, and do the chores when idle.

    Args:
        store: the store.
        worker: the name of this worker, which begins with the name of its slot and a colon.
        device: the device to compute on.
        going: returns whether the worker should go on.
        prepare: fetches the files that a run needs and that are not on this machine.
    """
    slot = worker.split(":")[0]
    if slot == "0":
        note_device(store, device)
    idle_since, todo = time.monotonic(), chores(store, slot, device)
    while going():
        run = claim(store, worker, short=takes_short_runs_only(int(slot)))
        if run:
            if not perform(store, run, device, prepare):
                log.warning("run %s left this process unfit for other runs: the next run gets a fresh process", run.id)
                sys.exit()
            idle_since = time.monotonic()
        elif time.monotonic() - idle_since < 1 or not next(todo, False):
            time.sleep(0.1)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s worker %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the web server; the dispatcher ends its workers itself
    try:
        keep_private(settings())
        config, fractions = settings(), [float(word) for word in sys.argv[3:]]
        main(config, sys.argv[1], int(sys.argv[2]), *(fractions or [memory_fraction(config.slots)]))
    except BrokenHomeError as error:
        sys.exit(str(error))
