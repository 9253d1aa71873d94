"""The dispatcher starts a worker in every slot, replaces dead workers and stops cancelled runs: `python -m leakage.workers.dispatcher`.

It is a separate process; a file lock allows one for each store. It outlives a restart of the web server, and ends by itself when no server
has been alive for a minute and no run is left.
"""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from types import FrameType
from typing import Protocol

from leakage.runs.backoff import Backoff
from leakage.runs.broken_home import BrokenHomeError, in_plain_words
from leakage.runs.connections import StoreError
from leakage.runs.notes import CLUSTER, LOG, SERVER, SLOTS, SPEEDS
from leakage.runs.private_home import keep_private
from leakage.runs.programs import take_lock
from leakage.runs.salvage import remove_kept
from leakage.runs.store import Run, Store
from leakage.runs.upload_codes import UploadCodes
from leakage.settings import Settings, cores, settings
from leakage.workers.catalog_writer import CatalogWriter
from leakage.workers.gpu_slots import assign_gpus, find_gpus, slots_for
from leakage.workers.step_compiler import StepCompiler

TICK = 0.2  # seconds
SILENCE = 30.0  # seconds without a sign of life after which a worker is lost
TERM_AFTER, KILL_AFTER = 5.0, 10.0  # seconds after a cancel that the worker did not obey
LEAVE_AFTER = 60.0  # seconds without a web server and without runs
POLITE = 10  # of 19, the niceness of a worker: where cores are short, pages and their server come first
WORKER = {  # the environment of a worker
    "GOMP_SPINCOUNT": "100000",  # threads that sleep at once halve the speed of their run; threads that never sleep, that of other runs
    "MALLOC_MMAP_THRESHOLD_": str(2**25),  # with its defaults glibc returns the memory of every step to the system
    "MALLOC_TRIM_THRESHOLD_": str(2**28),
}
DAY, HOUR = 24 * 3600.0, 3600.0
AGAIN = "The process that ran this stopped without a word, so it begins anew."
LOST = "worker lost: the process that ran this stopped without a word. Its frames so far are kept. Press Run to try again."
NO_TOKEN = (
    "LEAKAGE_RAY is set, and RAY_AUTH_MODE is not token: anybody with access to the ports of this Ray cluster may run any program on its "
    "machines. docs/scaling.md says how to switch its token on."
)
log = logging.getLogger(__name__)


class Slot(Protocol):
    """A process that can compute runs, on this machine or on another."""

    def computes(self, run: Run) -> bool: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


@dataclass(frozen=True)
class Worker:
    """A worker process in a slot, and the time at which it was started."""

    process: subprocess.Popen[bytes]
    born: float

    def terminate(self) -> None:
        self.process.terminate()

    def kill(self) -> None:
        self.process.kill()

    def computes(self, run: Run) -> bool:
        """Return whether this process claimed the run. An earlier process may have had the same id, so the time is compared too."""
        assert run.worker is not None
        assert run.started is not None
        return run.worker.endswith(f":{self.process.pid}") and run.started >= self.born


class Dispatcher:
    """The slots of a machine, each with a worker process that computes runs. `gpus`: the memory, in bytes, of each GPU that they share."""

    def __init__(self, config: Settings, gpus: Sequence[int] = ()) -> None:
        self.config, self.gpus = config, assign_gpus(config.slots, gpus)
        self.store = Store(config.store, max_mb=config.store_mb)
        self.slots: dict[str, Worker] = {}
        self.ended: list[Worker] = []
        self.backoffs = {str(number): Backoff() for number in range(config.slots)}
        self.catalog_writer, self.step_compiler = CatalogWriter(config), StepCompiler(config)
        self.leaving = False
        self.note_cluster(config.ray)
        self.swept, self.tidied, self.reserved, self.ticked, self.woke = 0.0, 0.0, 0.0, 0.0, 0.0

    def note_cluster(self, cluster: str) -> None:
        """Store the address of the workers' cluster (empty: this machine); if it has changed, delete the speeds of the machines before."""
        if (self.store.note(CLUSTER) or "") != cluster:
            for name, body in ((CLUSTER, cluster), (SPEEDS, None)):
                self.store.put_note(name, body)

    def loop(self, *, stay: bool) -> None:
        """Call `tick` again and again until `leaving` is set, or, unless `stay`, until there has been no server and no run for a minute."""
        last_needed, trouble = time.time(), ""
        while not self.leaving:
            try:
                self.tick()
                self.rest()
                trouble = ""
                server_alive = time.time() - float(self.store.note(SERVER) or 0) < LEAVE_AFTER
                if stay or server_alive or self.store.queue() or self.store.running():
                    last_needed = time.time()
            except (StoreError, OSError) as error:  # a full disk, no more processes: better times may come
                if str(error) != trouble:
                    log.warning("will look again: %s", in_plain_words(error, self.config.store) or error)
                trouble = str(error)
                time.sleep(TICK)
            if time.time() - last_needed > LEAVE_AFTER:
                self.leaving = True

    def rest(self) -> None:
        """Wait until the next tick."""
        time.sleep(TICK)

    def tick(self) -> None:
        """Fill the slots, look after every run that is computed, and do the housekeeping that is due."""
        now = time.time()
        if now - self.ticked > 10 * TICK:  # the machine slept, and the workers with it
            self.woke = now
        self.ticked = now
        self.fill_slots(now)
        self.catalog_writer.step()
        if way := self.store.make_way():
            log.info("%d long runs of one owner yield a slot: another owner waits", len(way))
        running = self.store.running()
        for run in running:
            self.look_after(run)
        self.step_compiler.step(idle=not running and not self.store.queue())
        if now - self.swept > HOUR:
            self.swept = now
            self.sweep(now)
        if now - self.tidied > 5:
            self.tidied = now
            self.tidy()
        if now - self.reserved > 60:
            self.reserved = now
            self.store.database.set_reserve_aside()

    def fill_slots(self, now: float) -> None:
        """Start a worker in every empty slot, and in every slot in which the worker has ended."""
        for slot, worker in list(self.slots.items()):
            if worker.process.poll() is not None:
                log.warning("worker %s (pid %d) ended with %s", slot, worker.process.pid, worker.process.returncode)
                self.ended.append(self.slots.pop(slot))
                if worker.process.returncode:  # else it makes room for a fresh one: it has measured the machine, or met its limit
                    self.backoffs[slot].ended(now - worker.born)
        for slot, backoff in self.backoffs.items():
            if slot not in self.slots and backoff.may_try:
                self.slots[slot] = self.start(slot)

    def sweep(self, now: float) -> None:
        """Remove what is too old: damaged stores, runs with uploads, runs of absent owners, and codes that delete uploads."""
        old = now - self.config.upload_days * DAY + HOUR  # the next sweep is an hour away, and the page promises whole days
        remove_kept(self.config, before=old)
        self.store.keep_time(now, longest=2 * HOUR)
        self.store.sweep(uploads_before=old, unseen_before=now - self.config.owner_days * DAY)
        UploadCodes(self.store).sweep(before=old)

    def tidy(self) -> None:
        """Make room in the store, remove models that no run needs, and empty the write-ahead log if it holds deleted data."""
        if tidied := self.store.housekeeping.tidy():
            log.info("the store was nearly full: %d old runs were thinned to their answers or removed", tidied)
        self.store.models.remove_unheld()
        self.store.updates.remove_unheld()
        if self.store.note(LOG):
            self.store.empty_log()

    def occupied(self) -> Mapping[str, "Slot"]:
        """Return the workers by the name of their slot."""
        return self.slots

    def start(self, slot: str) -> Worker:
        """Start a worker process for a slot."""
        with self.config.log_file("workers.log").open("ab") as output:
            command = ["nice", "-n", str(POLITE), sys.executable, "-m", "leakage.workers.worker", slot, str(os.getpid())]
            environment = {**os.environ, **WORKER, "LEAKAGE_SLOTS": str(self.config.slots)}
            if self.gpus:
                gpu_slot = self.gpus[int(slot)]
                command.append(str(gpu_slot.fraction))
                environment |= gpu_slot.environment(os.environ)
            born = time.time()
            return Worker(subprocess.Popen(command, env=environment, stdout=output, stderr=output), born)

    def look_after(self, run: Run) -> None:
        """Stop the worker of a run if the worker is silent or ignores a cancel; if the worker has ended, finish or requeue the run."""
        if run.worker is None or run.heartbeat is None:  # the recorded run, while it is being restored
            return
        now = time.time()
        slot, worker = next(((slot, worker) for slot, worker in self.occupied().items() if worker.computes(run)), ("", None))
        if worker:
            self.backoffs[slot].worked()
            stop_requested = run.cancelled or run.yields
            since_cancel = now - stop_requested if stop_requested else 0.0
            if now - max(run.heartbeat, self.woke) > SILENCE or since_cancel > KILL_AFTER:
                worker.kill()
            elif since_cancel > TERM_AFTER:
                worker.terminate()
        # A worker of an earlier dispatcher may still finish its run. It is not killed: another process may have its id by now.
        elif (ended := self.has_ended(run)) or now - run.heartbeat > SILENCE:
            if run.cancelled or (run.yields and ended):
                self.store.finish(run.id, "cancelled", message="Cancelled; what there was until then is kept.")
            elif not (ended and self.config.retry_lost and self.store.requeue(run.id, AGAIN)):  # a silent worker may still write
                self.store.finish(run.id, "failed", message=LOST)

    def has_ended(self, run: Run) -> bool:
        """Return whether the worker of this run has certainly stopped computing it."""
        return any(worker.computes(run) for worker in self.ended)


def local_dispatcher(config: Settings) -> Dispatcher:
    """Return a dispatcher for this machine: if it has GPUs, and LEAKAGE_SLOTS is not set, with as many slots as fit on the GPUs."""
    gpus = find_gpus()
    if gpus and not os.environ.get("LEAKAGE_SLOTS"):
        config = replace(config, slots=slots_for(gpus, cores()))
    return Dispatcher(config, gpus)


def main(arguments: list[str], make: Callable[[Settings], Dispatcher]) -> int:
    """Take the lock of the home folder, make a dispatcher, write the catalog, and dispatch (for ever with "--stay"); return the status."""
    config = settings()
    lock = take_lock(config)
    if lock is None:
        log.info("another dispatcher is at work on %s", config.home)
        return 0
    dispatcher = make(config)

    def leave(_signal: int, _frame: FrameType | None) -> None:
        dispatcher.leaving = True

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    with lock:
        with suppress(StoreError):  # a full disk: pages take the default
            dispatcher.store.put_note(SLOTS, dispatcher.config.slots)
        dispatcher.catalog_writer.write_and_wait()
        try:
            dispatcher.loop(stay="--stay" in arguments)
        finally:
            dispatcher.step_compiler.end()
    return 0


def command(make: Callable[[Settings], Dispatcher]) -> None:
    """Run `main` as a program, with a log; print errors of the home folder as sentences."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s dispatch %(message)s")
    try:
        keep_private(settings())
        sys.exit(main(sys.argv[1:], make))
    except (BrokenHomeError, OSError) as error:
        if explained := in_plain_words(error, settings().home):
            sys.exit(str(explained))
        raise


def token_warning(config: Settings, environment: Mapping[str, str]) -> str:
    """Return a warning if a Ray cluster is used that asks for no token; "" otherwise."""
    return NO_TOKEN if config.ray and environment.get("RAY_AUTH_MODE") != "token" else ""


if __name__ == "__main__":
    if settings().ray and not find_spec("ray"):
        sys.exit('LEAKAGE_RAY is set, and Ray is not installed here: pip install ".[ray]", or unset LEAKAGE_RAY.')
    if warning := token_warning(settings(), os.environ):
        sys.stderr.write(f"{warning}\n")
    if settings().ray:  # another program takes over this process: only that program imports Ray
        os.execv(sys.executable, [sys.executable, "-m", "leakage.workers.ray_dispatcher", *sys.argv[1:]])
    command(local_dispatcher)
