"""Shared parts of the load benchmarks: a dashboard as real processes on its own home folder."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import ROOT

from leakage.runs.notes import SPEEDS
from leakage.runs.owners import COOKIE
from leakage.runs.service import Service
from leakage.runs.store import Store
from leakage.settings import Settings

VICTIMS = {"worker": "leakage.workers.worker", "dispatcher": "dispatcher", "web server": "streamlit"}


class Site:
    """A dashboard on a home of its own, and the store that it shares with us."""

    def __init__(self, home: Path, *, slots: int = 2, **environment: str) -> None:
        self.config = Settings(home=home, slots=slots, store_mb=4096, memory_mb=0)
        self.store = Store(self.config.store)
        self.store.put_note(SPEEDS, {"lenet": (0.01, 0.02)})  # as if this machine had been measured, which takes a core for a minute
        self.service = Service(self.store, self.config)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LEAKAGE_M")}
        self.environment = {**kept, "LEAKAGE_HOME": str(home), "LEAKAGE_SLOTS": str(slots), **environment}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.start_server()

    def start_server(self) -> None:
        """Start the web server, or start it again."""
        command = ["-m", "streamlit", "run", "app.py", "--server.port", str(self.port), "--server.address", "127.0.0.1"]
        with (self.config.home / "server.log").open("ab") as output:
            self.server = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=self.environment, stdout=output, stderr=output)

    def measure_memory(self) -> float:
        """Measure the megabytes of memory of the web process."""
        lines = Path(f"/proc/{self.server.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024

    def find(self, who: str) -> int:
        """Process id of such a process, 0 where there is none now. Of workers one that plays, if there is one."""
        if who == "web server":
            return self.server.pid if self.server.poll() is None else 0
        pids = [self.dispatcher()] if who == "dispatcher" else [int(run.worker.split(":")[1]) for run in self.store.running() if run.worker]
        return next((pid for pid in pids if runs(pid, VICTIMS[who])), 0)

    def dispatcher(self) -> int:
        with suppress(OSError, IndexError, ValueError):
            return int((self.config.home / "dispatch.lock").read_text().split()[0])
        return 0

    def kill(self, who: str) -> bool:
        """Kill one such process; return whether there was one."""
        pid = self.find(who)
        with suppress(ProcessLookupError):
            if pid:
                os.kill(pid, signal.SIGKILL)
        if pid and who == "web server":
            self.server.wait()
            self.start_server()
        return bool(pid)

    def end(self) -> None:
        """Leave no process behind."""
        self.server.kill()
        self.server.wait()
        pid = self.dispatcher()
        if runs(pid, VICTIMS["dispatcher"]):
            os.killpg(pid, signal.SIGKILL)
        self.store.close()


@contextmanager
def new_site(slots: int = 2, **environment: str) -> Iterator[Site]:
    """Yield a dashboard on a new home, with its workers ready."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        site = Site(Path(folder), slots=slots, **environment)
        try:
            if not until(site.service.catalog, 120):
                raise RuntimeError(f"The plug-ins were not listed within 120 s; see {folder}/dispatch.log.")
            yield site
        finally:
            site.end()


@contextmanager
def silent_page(site: Site, run: str, visitor: int) -> Iterator[None]:
    """Follow a run on a page that never reads, while the block runs."""
    where = urlsplit(site.address)
    with closing(socket.create_connection((where.hostname, where.port))) as page:
        page.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = f"GET /api/runs/stream?ids={run} HTTP/1.1\r\nHost: {where.netloc}\r\nCookie: {COOKIE}=silent{visitor:010}\r\n\r\n"
        page.sendall(request.encode())
        yield


def runs(pid: int, what: str) -> bool:
    """Return whether this process runs that program; its number alone may belong to another process by now."""
    with suppress(OSError):
        return bool(pid) and what in Path(f"/proc/{pid}/cmdline").read_text()
    return False


def until(look: Callable[[], Any], within: float) -> bool:
    """Return whether a condition becomes true within so many seconds."""
    ends = time.monotonic() + within
    while not look():
        if time.monotonic() > ends:
            return False
        time.sleep(0.05)
    return True
