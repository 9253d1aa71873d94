"""The dispatcher: keeps warm workers in local slots, notices dead ones, ends what was cancelled. `python -m leakage.runs.dispatch`.

A process of its own, one per store by file lock. It outlives a restart of the web server, and leaves by itself when no server has been
seen for a while and nothing is left to run.
"""

import fcntl
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from leakage import catalog
from leakage.runs.service import SERVER
from leakage.runs.store import Run, Store
from leakage.settings import Settings, settings

TICK = 0.2  # seconds
SILENCE = 30.0  # a worker that has not been heard of for so long is lost
TERM_AFTER, KILL_AFTER = 5.0, 10.0  # seconds after a cancel that the worker did not obey
LEAVE_AFTER = 60.0  # seconds without a web server and without runs
KEEP_UPLOADS = 7 * 24 * 3600.0
LOST = "worker lost: the process that ran this stopped without a word. Its frames so far are kept. Press Run to try again."
log = logging.getLogger(__name__)


class Dispatcher:
    """Slots and what runs in them."""

    def __init__(self, config: Settings) -> None:
        self.config = config
        self.store = Store(config.store, max_mb=config.store_mb)
        self.slots: dict[str, subprocess.Popen[bytes]] = {}
        self.leaving = False
        self.swept = 0.0

    def loop(self, *, stay: bool) -> None:
        """Tick until told to leave, or, unless `stay`, until nobody needs us."""
        needed = time.time()
        while not self.leaving:
            self.tick()
            seen = float(self.store.note(SERVER) or 0)
            if stay or time.time() - seen < LEAVE_AFTER or self.store.queue() or self.store.running():
                needed = time.time()
            if time.time() - needed > LEAVE_AFTER:
                self.leaving = True
            time.sleep(TICK)  # on leaving, idle workers see that their parent is gone and go too; busy ones finish first

    def tick(self) -> None:
        """Once around: dead workers, empty slots, silent or disobedient runs, housekeeping."""
        for slot, process in list(self.slots.items()):
            if process.poll() is not None:
                log.warning("worker %s (pid %d) ended with %s", slot, process.pid, process.returncode)
                del self.slots[slot]
        for number in range(self.config.slots):
            if str(number) not in self.slots:
                self.slots[str(number)] = self.start(str(number))
        for run in self.store.running():
            self.look_after(run)
        if time.time() - self.swept > 3600:
            self.swept = time.time()
            self.store.sweep(uploads_before=time.time() - KEEP_UPLOADS)
            self.store.set_reserve_aside()

    def start(self, slot: str) -> subprocess.Popen[bytes]:
        # Waiting threads of one worker must not take the core of another: no spinning.
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
        with log_file(self.config.home, "workers.log").open("ab") as output:
            return subprocess.Popen([sys.executable, "-m", "leakage.runs.worker", slot], env=environment, stdout=output, stderr=output)

    def look_after(self, run: Run) -> None:
        """End a run whose worker is silent or does not obey a cancel; say what became of one whose worker is gone."""
        assert run.worker is not None
        now, pid = time.time(), int(run.worker.split(":")[1])
        since_cancel = now - run.cancelled if run.cancelled else 0.0
        try:
            if now - (run.heartbeat or now) > SILENCE or since_cancel > KILL_AFTER:
                os.kill(pid, signal.SIGKILL)
            elif since_cancel > TERM_AFTER:
                os.kill(pid, signal.SIGTERM)
            else:
                os.kill(pid, 0)  # is it there?
        except ProcessLookupError:
            if run.cancelled:
                self.store.finish(run.id, "cancelled", message="Cancelled; the pictures so far are kept.")
            else:
                self.store.finish(run.id, "failed", message=LOST)


def log_file(home: Path, name: str) -> Path:
    """A log below `home`, begun anew when it has grown beyond 5 MB."""
    path = home / name
    if path.exists() and path.stat().st_size > 5 * 2**20:
        path.replace(path.with_suffix(".old.log"))
    return path


def main(arguments: list[str]) -> int:
    """Hold the lock, write the catalog, dispatch."""
    config = settings()
    config.home.mkdir(parents=True, exist_ok=True)
    lock = (config.home / "dispatch.lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log.info("another dispatcher is at work on %s", config.home)
        return 0
    lock.truncate(0)
    lock.write(f"{os.getpid()} {catalog.version()}")
    lock.flush()
    dispatcher = Dispatcher(config)

    def leave(_signal: int, _frame: FrameType | None) -> None:
        dispatcher.leaving = True

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    dispatcher.tick()  # the workers warm up while the catalog is written
    if catalog.read(config.catalog) is None:
        catalog.write(config.catalog)
    dispatcher.loop(stay="--stay" in arguments)
    return 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s dispatch %(message)s")
    sys.exit(main(sys.argv[1:]))
