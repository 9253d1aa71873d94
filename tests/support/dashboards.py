"""A dashboard in a process of its own, for tests with a browser."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from home_processes import measured_before

from leakage.runs.store import Store
from leakage.settings import ROOT


@contextmanager
def served(home: Path, base: str = "", *, root: Path = ROOT) -> Iterator[str]:
    """The address of a dashboard that is up; all of it lies below `base`. `root`: the checkout that is started."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}{base}"
    store = Store(home / "store.db")
    measured_before(store)
    store.close()
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port), "--server.baseUrlPath", base.strip("/")],
        cwd=root,
        env={**os.environ, "LEAKAGE_HOME": str(home), "PYTHONPATH": str(root)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        with suppress(OSError):
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=1).close()
            break
        time.sleep(0.1)
    try:
        yield url
    finally:
        server.terminate()
        server.wait()
        os.kill(int((home / "dispatch.lock").read_text().split()[0]), signal.SIGTERM)
