"""Kills with -9 of a worker, a node, the dispatcher or the web server, while runs go on, on a Ray cluster of three simulated nodes.

At the end no run may be lost, doubled or stuck, as in kills.py; what a dead worker or node ran begins anew, once. A killed node is
replaced by a fresh one, and a killed web server is started again; all else comes by itself. Needs Ray.

    .venv/bin/python benchmarks/load/ray_kills.py --kills 40 --seed 0
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import ROOT, save, say, table

sys.path.insert(0, str(ROOT / "tests"))
from _site import Site, until
from kills import AT_WORK, PATIENCE, PAUSE, Crowd, damaged, wrong
from nodes import Nodes, nodes  # type: ignore[import-not-found]  # what the tests simulate a cluster with

from leakage.runs.notes import CLUSTER
from leakage.workers.dispatcher import LOST

VICTIMS = ("worker", "node", "dispatcher", "web server")


def kill_worker(cluster: Nodes) -> bool:
    """Kill one of the cluster's workers; whether there was one."""
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
    """So many kills, and what is found afterwards."""
    rng, killed = random.Random(seed), dict.fromkeys(VICTIMS, 0)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, nodes() as cluster:
        cluster.complete()
        site = Site(Path(folder), LEAKAGE_RAY="auto", LEAKAGE_RETRY_LOST="1", RAY_ADDRESS=cluster.address)
        site.store.put_note(CLUSTER, "auto")
        crowd, began = Crowd(site, rng), time.monotonic()
        kill: dict[str, Callable[[], bool]] = {
            "worker": lambda: kill_worker(cluster),
            "node": lambda: kill_node(cluster),
            "dispatcher": lambda: site.kill("dispatcher"),
            "web server": lambda: site.kill("web server"),
        }
        try:
            if not until(site.service.catalog, 120):
                raise RuntimeError(f"The plug-ins were not listed within 120 s; see {folder}/dispatch.log.")
            while sum(killed.values()) < kills:
                crowd.ask()
                if rng.random() < AT_WORK:
                    until(site.store.running, 90)
                time.sleep(rng.uniform(*PAUSE))
                who = rng.choice(VICTIMS)
                if not until(kill[who], 90):
                    raise RuntimeError(f"There was no {who} for 90 s: what was killed has not come back.")
                killed[who] += 1
                say(f"{sum(killed.values())}: {who}, {len(crowd.submitted)} submitted, {len(site.store.running())} running")
            last = time.monotonic()
            until(lambda: not site.store.queue() and not site.store.running(), PATIENCE)
            rows = [row for run in crowd.submitted if (row := site.store.get(run))]
            told = site.store.events(crowd.submitted, 0)
            return {
                "kills": killed,
                "seed": seed,
                "submitted": len(crowd.submitted),
                "ended": {status: sum(row.status == status for row in rows) for status in {row.status for row in rows}},
                "worker_lost": sum(row.message == LOST for row in rows),
                "began_anew": sum(event["kind"] == "restart" for event in told),
                **wrong(site, crowd.submitted),
                "damaged": damaged(site.store),
                "seconds": round(last - began, 1),
                "seconds_to_the_last_end": round(time.monotonic() - last, 1),
            }
        finally:
            site.end()


def main() -> None:
    """Print what was found, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    found = trial(asked.kills, asked.seed)
    told = {name: len(value) if isinstance(value, list) else value for name, value in found.items()}
    table(
        ["what", "found"],
        [[name, ", ".join(f"{n} {v}" for n, v in value.items()) if isinstance(value, dict) else value] for name, value in told.items()],
    )
    save("ray_kills", {"about": (__doc__ or "").splitlines()[0], **found})
    if any(found[name] for name in ("lost", "doubled", "stuck", "damaged")):
        sys.exit("A run was lost, doubled or stuck, or the file is damaged.")


if __name__ == "__main__":
    main()
