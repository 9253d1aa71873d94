"""The dispatcher: keeps warm workers in local slots, notices dead ones, ends what was cancelled. `python -m leakage.workers.dispatcher`.

A process of its own, one per store by file lock. It outlives a restart of the web server, and leaves by itself when no server has been
seen for a while and nothing is left to run.
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
from leakage.spec import catalog
from leakage.workers.gpu_slots import assign_gpus, find_gpus, slots_for

TICK = 0.2  # seconds
SILENCE = 30.0  # a worker that has not been heard of for so long is lost
TERM_AFTER, KILL_AFTER = 5.0, 10.0  # seconds after a cancel that the worker did not obey
LEAVE_AFTER = 60.0  # seconds without a web server and without runs
# In a process of its own: plug-ins bring torch, half a gigabyte that the dispatcher would hold for ever; and they may be broken.
WRITE = "import pathlib, sys; from leakage.workers import plugin_catalog; plugin_catalog.write(pathlib.Path(sys.argv[1]))"
WORKER = {  # the environment of a worker
    "GOMP_SPINCOUNT": "100000",  # threads that sleep at once halve the speed of a run, those that never sleep that of others
    "MALLOC_MMAP_THRESHOLD_": str(2**25),  # glibc gives the memory of one step back, and takes it again in the next, unless told
    "MALLOC_TRIM_THRESHOLD_": str(2**28),
}
DAY, HOUR = 24 * 3600.0, 3600.0
AGAIN = "The process that ran this stopped without a word, so it begins anew."
LOST = "worker lost: the process that ran this stopped without a word. Its frames so far are kept. Press Run to try again."
NO_TOKEN = (
    "LEAKAGE_RAY is set, and RAY_AUTH_MODE is not token: anybody who reaches the ports of this Ray cluster may run any program on its "
    "machines. docs/scaling.md says how to switch its token on."
)
log = logging.getLogger(__name__)


class Slot(Protocol):
    """A process that can compute runs, on this machine or on another."""

    def plays(self, run: Run) -> bool: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


@dataclass(frozen=True)
class Worker:
    """A process in a slot, and when it was started."""

    process: subprocess.Popen[bytes]
    born: float

    def terminate(self) -> None:
        self.process.terminate()

    def kill(self) -> None:
        self.process.kill()

    def plays(self, run: Run) -> bool:
        """Return whether this process claimed the run: a process id alone may have been another's before."""
        assert run.worker is not None
        assert run.started is not None
        return run.worker.endswith(f":{self.process.pid}") and run.started >= self.born


class Dispatcher:
    """Slots and what runs in them. `gpus`: bytes of memory of each GPU that they share."""

    def __init__(self, config: Settings, gpus: Sequence[int] = ()) -> None:
        self.config, self.gpus = config, assign_gpus(config.slots, gpus)
        self.store = Store(config.store, max_mb=config.store_mb)
        self.slots: dict[str, Worker] = {}
        self.ended: list[Worker] = []
        self.backoffs = {str(number): Backoff() for number in range(config.slots)}
        self.listing = Listing(config)
        self.leaving = False
        self.note_cluster(config.ray)
        self.swept, self.tidied, self.reserved, self.ticked, self.woke = 0.0, 0.0, 0.0, 0.0, 0.0

    def note_cluster(self, cluster: str) -> None:
        """Note where the workers are. What was measured of other machines says nothing about these."""
        if (self.store.note(CLUSTER) or "") != cluster:
            for name, body in ((CLUSTER, cluster), (SPEEDS, None)):
                self.store.put_note(name, body)

    def loop(self, *, stay: bool) -> None:
        """Look after the workers until told to leave, or, unless `stay`, until nobody needs the dispatcher."""
        needed, trouble = time.time(), ""
        while not self.leaving:
            try:
                self.tick()
                self.rest()
                trouble = ""
                seen = float(self.store.note(SERVER) or 0)
                if stay or time.time() - seen < LEAVE_AFTER or self.store.queue() or self.store.running():
                    needed = time.time()
            except (StoreError, OSError) as error:  # a full disk, no more processes: better times may come
                if str(error) != trouble:
                    log.warning("will look again: %s", in_plain_words(error, self.config.store) or error)
                trouble = str(error)
                time.sleep(TICK)
            if time.time() - needed > LEAVE_AFTER:
                self.leaving = True

    def rest(self) -> None:
        """Wait for the next tick. After the dispatcher has left, idle workers leave too; busy ones finish first."""
        time.sleep(TICK)

    def tick(self) -> None:
        """Look once after dead workers, empty slots, silent or disobedient runs, and housekeeping."""
        now = time.time()
        if now - self.ticked > 10 * TICK:  # the machine slept, and the workers with it
            self.woke = now
        self.ticked = now
        self.fill_slots(now)
        self.listing.look()
        if way := self.store.make_way():
            log.info("%d long runs of one owner yield a slot: somebody else waits", len(way))
        for run in self.store.running():
            self.look_after(run)
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
        """Start a worker in every slot that has none, or whose worker has ended."""
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
        """Remove what is too old."""
        old = now - self.config.upload_days * DAY + HOUR  # the next look is an hour away, and the page promises whole days
        remove_kept(self.config, before=old)
        self.store.keep_time(now, longest=2 * HOUR)
        self.store.sweep(uploads_before=old, unseen_before=now - self.config.owner_days * DAY)
        UploadCodes(self.store).sweep(before=old)

    def tidy(self) -> None:
        """Keep room in the store, and nothing of what was deleted in the log."""
        if went := self.store.housekeeping.tidy():
            log.info("the store was nearly full: %d old runs were thinned to their answers or removed", went)
        self.store.models.remove_unheld()
        if self.store.note(LOG):
            self.store.empty_log()

    def occupied(self) -> Mapping[str, "Slot"]:
        """Return the workers by their slots."""
        return self.slots

    def start(self, slot: str) -> Worker:
        with self.config.log_file("workers.log").open("ab") as output:
            command = [sys.executable, "-m", "leakage.workers.worker", slot, str(os.getpid())]
            environment = {**os.environ, **WORKER, "LEAKAGE_SLOTS": str(self.config.slots)}
            if self.gpus:
                own = self.gpus[int(slot)]
                command.append(str(own.share))
                environment |= own.environment(os.environ)
            born = time.time()
            return Worker(subprocess.Popen(command, env=environment, stdout=output, stderr=output), born)

    def look_after(self, run: Run) -> None:
        """End a run whose worker is silent or does not obey a cancel; say what became of one whose worker is gone."""
        if run.worker is None or run.heartbeat is None:  # the recorded run, while it is being restored
            return
        now = time.time()
        slot, worker = next(((slot, worker) for slot, worker in self.occupied().items() if worker.plays(run)), ("", None))
        if worker:
            self.backoffs[slot].worked()
            told = run.cancelled or run.yields
            since_cancel = now - told if told else 0.0
            if now - max(run.heartbeat, self.woke) > SILENCE or since_cancel > KILL_AFTER:
                worker.kill()
            elif since_cancel > TERM_AFTER:
                worker.terminate()
        # An earlier dispatcher's worker may still finish its run. Its process is not ours to touch: the number may be anybody's by now.
        elif (ended := self.has_ended(run)) or now - run.heartbeat > SILENCE:
            if run.cancelled or (run.yields and ended):
                self.store.finish(run.id, "cancelled", message="Cancelled; what there was until then is kept.")
            elif not (ended and self.config.retry_lost and self.store.requeue(run.id, AGAIN)):  # a silent worker may still write
                self.store.finish(run.id, "failed", message=LOST)

    def has_ended(self, run: Run) -> bool:
        """Return whether the worker of this run has certainly stopped computing it."""
        return any(gone.plays(run) for gone in self.ended)


class Listing:
    """Has the plug-ins written down, if they are not, in a process of its own; where that fails, ever more seldom again."""

    def __init__(self, config: Settings) -> None:
        self.config, self.backoff = config, Backoff()
        self.missing = catalog.read(config.catalog) is None
        self.process: subprocess.Popen[bytes] | None = None

    def look(self) -> None:
        """Begin, or see how it has ended."""
        if self.process and self.process.poll() is not None:
            self.missing = self.process.returncode != 0
            if self.missing:
                again = f"the next try is in {self.backoff.failed():.0f} s, or at once when a file is corrected"
                log.error("the plug-ins cannot be listed (see above): %s", again)
            self.process = None
        elif self.missing and not self.process and self.backoff.may_try:
            self.process = subprocess.Popen([sys.executable, "-c", WRITE, self.config.catalog])

    def first(self) -> None:
        """Try once, and wait for it: workers begin when the plug-ins are listed."""
        self.look()
        if self.process:
            self.process.wait()
            self.look()


def of_this_machine(config: Settings) -> Dispatcher:
    """Return a dispatcher of workers on this machine: as many as its GPUs have room for, if it has any and no number was set."""
    gpus = find_gpus()
    if gpus and not os.environ.get("LEAKAGE_SLOTS"):
        config = replace(config, slots=slots_for(gpus, cores()))
    return Dispatcher(config, gpus)


def main(arguments: list[str], make: Callable[[Settings], Dispatcher]) -> int:
    """Hold the lock, write the catalog, dispatch."""
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
        dispatcher.listing.first()
        dispatcher.loop(stay="--stay" in arguments)
    return 0


def command(make: Callable[[Settings], Dispatcher]) -> None:
    """Run `main` for the command line, with its log, and print its errors as sentences."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s dispatch %(message)s")
    try:
        keep_private(settings())
        sys.exit(main(sys.argv[1:], make))
    except (BrokenHomeError, OSError) as error:
        if told := in_plain_words(error, settings().home):
            sys.exit(str(told))
        raise


def token_warning(config: Settings, environment: Mapping[str, str]) -> str:
    """Return a warning where a Ray cluster lets in everybody that reaches it; an empty string otherwise."""
    return NO_TOKEN if config.ray and environment.get("RAY_AUTH_MODE") != "token" else ""


if __name__ == "__main__":
    if settings().ray and not find_spec("ray"):
        sys.exit('LEAKAGE_RAY is set, and Ray is not installed here: pip install ".[ray]", or unset LEAKAGE_RAY.')
    if warning := token_warning(settings(), os.environ):
        sys.stderr.write(f"{warning}\n")
    if settings().ray:  # a program of its own, with this process id: this one stays light
        os.execv(sys.executable, [sys.executable, "-m", "leakage.workers.ray_dispatcher", *sys.argv[1:]])
    command(of_this_machine)
