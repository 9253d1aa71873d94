"""1,100 idle sockets at a web server with 1,024 descriptors: whether its health page answers, and the size of its log.

    .venv/bin/python benchmarks/load/idle_sockets.py

BEFORE is what the same script found at commit 2249652, without limits and deadlines of connections.
"""

import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _site import Site, until
from _table import save, say

SOCKETS, DESCRIPTORS, WATCHED, PATIENCE = 1100, 1024, 16.0, 10.0
BEFORE = {"longest_health_s": PATIENCE, "unanswered": 2, "log_mb": 21.5}  # longer than PATIENCE it was not waited for
# Half of them each: a process may have no more descriptors than the server.
HOLD = "import socket, sys, time; s = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range({})]; time.sleep(60)"


def measure() -> dict[str, Any]:
    """Measure the longest answer of the health page within WATCHED seconds, how often it failed, and the size of the log."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        site = Site(Path(home))
        subprocess.run(["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", "--pid", str(site.server.pid)], check=True)
        ask = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def healthy() -> bool:
            with suppress(OSError), ask.open(f"{site.address}/_stcore/health", timeout=PATIENCE) as answer:
                return bool(answer.status == 200)
            return False

        until(healthy, 60)
        crowd = [subprocess.Popen([sys.executable, "-c", HOLD.format(SOCKETS // 2), str(site.port)]) for _ in range(2)]
        try:
            time.sleep(2)
            times, unanswered, ends = [], 0, time.monotonic() + WATCHED
            while time.monotonic() < ends:
                began = time.monotonic()
                unanswered += not healthy()
                times.append(time.monotonic() - began)
                time.sleep(0.2)
            log_mb = (site.config.home / "server.log").stat().st_size / 2**20
            return {"longest_health_s": round(max(times), 2), "unanswered": unanswered, "log_mb": round(log_mb, 2)}
        finally:
            for one in crowd:
                one.kill()
                one.wait()
            site.end()


if __name__ == "__main__":
    found = measure()
    say(f"{found}")
    save("load_idle_sockets", {"sockets": SOCKETS, "descriptors": DESCRIPTORS, "before": BEFORE, "now": found})
