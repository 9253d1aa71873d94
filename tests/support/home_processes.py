"""A home folder with real processes: start, watch and kill them, and leave none behind."""

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from leakage.runs.notes import SPEEDS
from leakage.runs.programs import take_lock
from leakage.runs.service import Service
from leakage.runs.store import Run, Store
from leakage.settings import ROOT, Settings
from leakage.spec.experiment import Experiment, Part, Picture

T = TypeVar("T")
ASK = urllib.request.build_opener(urllib.request.ProxyHandler({}))
QUICK = Experiment(attack=Part(id="inverting_gradients", fields={"steps": 60}))
LONG = Experiment(attack=Part(id="inverting_gradients", fields={"steps": 24000, "starts": 16}))  # minutes: until it is stopped


def until(look: Callable[[], T], *, within: float = 240.0, what: str = "") -> T:
    """Return the first true answer; fail after `within` seconds. It asks often, so that a fast machine does not wait."""
    ends = time.monotonic() + within
    while not (found := look()):
        assert time.monotonic() < ends, f"not within {within:.0f} s: {what or look}"
        time.sleep(0.02)
    return found


def measured_before(store: Store) -> None:
    """As if its workers had measured this machine, which keeps a core busy for most of a minute: tests that wait need it themselves."""
    store.put_note(SPEEDS, {"lenet": (0.01, 0.02)})


def noisy(count: int) -> tuple[Picture, ...]:
    """Return a batch of gallery pictures, repeated as often as needed."""
    names = ("astronaut", "chelsea", "coffee", "rocket", "retina", "immunohistochemistry")
    return tuple(Picture(id=names[number % len(names)]) for number in range(count))


def another(experiment: Experiment, seed: int) -> Experiment:
    """Return the experiment with another seed, so that it shares no run."""
    return experiment.model_copy(update={"seed": seed})


def alive(pid: int) -> bool:
    """Return whether this process runs; an ended process that waits to be collected does not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def loaded(pid: int) -> str:
    """Return the files with code of a process, as Linux lists them."""
    return Path(f"/proc/{pid}/maps").read_text()


def get(address: str, headers: dict[str, str] | None = None, *, timeout: float = 60) -> Any:
    """Return the response, whatever its status; the caller closes it."""
    try:
        return ASK.open(urllib.request.Request(address, headers=headers or {}), timeout=timeout)
    except urllib.error.HTTPError as error:
        return error


class Server:
    """A web server on a free port; `host`: the address at which it listens."""

    def __init__(self, place: "Place", host: str = "127.0.0.1") -> None:
        self.place, self.host = place, host
        with socket.socket() as free:
            free.bind((host, 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Start it, or start it again on the same port."""
        command = ["-m", "streamlit", "run", "app.py", "--server.port", str(self.port), "--server.address", self.host]
        self.process = self.place.start(command, "server.log")
        until(self.healthy, what="the web server answers")

    def healthy(self) -> bool:
        assert self.process.poll() is None, "the web server ended"
        with contextlib.suppress(OSError), self.get("/_stcore/health") as response:
            return bool(response.status == 200)
        return False

    def get(self, path: str, headers: dict[str, str] | None = None) -> Any:
        return get(self.address + path, headers)


class Place:
    """A home folder; `end` ends every process that was started on it."""

    def __init__(self, home: Path, *, root: Path = ROOT, **environment: str) -> None:
        self.home, self.root = home, root
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEAKAGE_S", "LEAKAGE_M"))}
        self.environment = {**kept, "LEAKAGE_HOME": str(home), "LEAKAGE_SLOTS": "1", "CUDA_VISIBLE_DEVICES": "", **environment}
        slots, store_mb = int(self.environment["LEAKAGE_SLOTS"]), int(self.environment.get("LEAKAGE_STORE_MB", "4096"))
        self.config = Settings(home=home, slots=slots, store_mb=store_mb, memory_mb=0)
        self.store = Store(self.config.store, max_mb=store_mb)
        measured_before(self.store)
        self.service = Service(self.store, self.config)
        self.started: list[subprocess.Popen[bytes]] = []
        self.groups: set[int] = set()
        self.lock: IO[str] | None = None

    def start(self, arguments: list[str], log: str) -> subprocess.Popen[bytes]:
        """A Python process in a group of its own."""
        with (self.home / log).open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.started.append(process)
        self.groups.add(process.pid)
        return process

    def dispatch(self) -> subprocess.Popen[bytes]:
        return self.start(["-m", "leakage.workers.dispatcher", "--stay"], "dispatch.log")

    def serve(self, *, alone: bool = False, host: str = "127.0.0.1") -> Server:
        """Start a web server; with `alone` it takes this process for its dispatcher and starts none."""
        if alone:
            self.lock = take_lock(self.config)
        server = Server(self, host)
        assert not alone or not (self.home / "dispatch.log").exists(), "it started a dispatcher"
        return server

    def dispatcher(self) -> int:
        """Process id of the dispatcher at work, 0 when there is none."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            pid = int((self.home / "dispatch.lock").read_text().split()[0])
            if pid != os.getpid() and alive(pid):
                self.groups.add(pid)
                return pid
        return 0

    def submit(self, experiment: Experiment, owner: str = "me", **how: Any) -> str:
        return until(lambda: self.service.catalog() and self.service.submit(experiment, owner, **how), what="the catalog is there")

    def look(self, run: str) -> Run:
        found = self.store.get(run)
        assert found is not None, "the run is gone"
        return found

    def status(self, run: str) -> str:
        return self.look(run).status

    def frames(self, run: str) -> list[dict[str, Any]]:
        return [event for event in self.store.events([run], 0) if event["kind"] == "frame"]

    def worker(self, run: str) -> int:
        """Process id of the worker that plays this run, as soon as it has kept two frames."""
        until(lambda: len(self.frames(run)) >= 2 or self.look(run).finished, what=f"run {run} is under way")
        assert len(self.frames(run)) >= 2, self.look(run)
        name = self.look(run).worker
        assert name is not None
        return int(name.split(":")[1])

    def finished(self, run: str, *, within: float = 240.0) -> Run:
        until(lambda: self.status(run) not in ("queued", "running"), within=within, what=f"run {run} ends")
        return self.look(run)

    def end(self) -> None:
        """End them all, with their workers."""
        self.dispatcher()
        for group in self.groups:
            for number in (signal.SIGCONT, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, number)
        for process in self.started:
            process.wait()
        if self.lock:
            self.lock.close()
        self.store.close()


@contextlib.contextmanager
def place(home: Path, *, root: Path = ROOT, **environment: str) -> Iterator[Place]:
    """Yield a place, and end its processes afterwards."""
    made = Place(home, root=root, **environment)
    try:
        yield made
    finally:
        made.end()


def damaged(store: Store) -> list[str]:
    """Return what SQLite's check finds wrong; empty if nothing is."""
    with contextlib.closing(sqlite3.connect(store.path)) as db:
        return [line for (line,) in db.execute("PRAGMA integrity_check") if line != "ok"]
