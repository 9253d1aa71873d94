"""Kills with -9 of a worker, a node, the dispatcher or the web server, while runs go on, on a Ray cluster of three simulated nodes.

At the end no run may be lost, doubled or stuck, as in kills.py; what a dead worker or node ran begins anew, once. A killed node is
replaced by a fresh one, and a killed web server is started again; all else comes by itself. Needs Ray.

    .venv/bin/python benchmarks/load/ray_kills.py --kills 40 --seed 0
"""

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))
from _site import Site
from kills import after_kills, report
from ray_nodes import Nodes, nodes  # type: ignore[import-not-found]  # what the tests simulate a cluster with

from leakage.runs.notes import CLUSTER


def kill_worker(cluster: Nodes) -> bool:
    """Kill one of the cluster's workers; return whether there was one."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            ours = cluster.folder.encode() in (folder / "environ").read_bytes()
            if ours and (folder / "cmdline").read_bytes().startswith(b"ray::RayWorker"):
                os.kill(int(folder.name), signal.SIGKILL)
                return True
    return False


def kill_node(cluster: Nodes) -> bool:
    """Kill a node with all that runs on it, and add a fresh one."""
    cluster.kill()
    cluster.complete()
    return True


def trial(kills: int, seed: int) -> dict[str, Any]:
    """Make so many kills on a cluster."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, nodes() as cluster:
        cluster.complete()
        site = Site(Path(folder), LEAKAGE_RAY="auto", LEAKAGE_RETRY_LOST="1", RAY_ADDRESS=cluster.address)
        site.store.put_note(CLUSTER, "auto")
        kill: dict[str, Callable[[], bool]] = {
            "worker": lambda: kill_worker(cluster),
            "node": lambda: kill_node(cluster),
            "dispatcher": lambda: site.kill("dispatcher"),
            "web server": lambda: site.kill("web server"),
        }
        return after_kills(site, kill, kills, seed)


if __name__ == "__main__":
    report("ray_kills", __doc__ or "", 40, trial)
