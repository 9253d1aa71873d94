"""Delays on a Ray cluster of three simulated nodes of one core: frames of six runs at once, Stop, and a killed node.

A frame's lag is how much later it is in the store than the fastest frame of its run, by the run's own clock: what it waited on its way.

    .venv/bin/python benchmarks/load/ray_live.py
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import ROOT, save, table

sys.path.insert(0, str(ROOT / "tests" / "support"))
from _site import Site, until
from ray_nodes import nodes  # type: ignore[import-not-found]  # what the tests simulate a cluster with

from leakage.runs.notes import CLUSTER
from leakage.spec.experiment import Experiment, Part

WATCHED = 20.0  # seconds
LONG = Experiment(attack=Part(id="inverting_gradients", fields={"steps": 24000, "starts": 16}))


def lags(site: Site, runs: list[str]) -> list[float]:
    """Measure the seconds that each frame of these runs was late, over WATCHED seconds."""
    seen, since, ends = dict[int, float](), site.store.last_seq(), time.monotonic() + WATCHED
    while time.monotonic() < ends:
        for event in site.store.events(runs, since):
            since = event["seq"]
            seen[since] = time.monotonic()
        time.sleep(0.005)
    found = list[float]()
    for run in runs:
        way = [seen[frame.seq] - frame.seconds for frame in site.store.frames(run) if frame.seq in seen]
        found += [one - min(way) for one in way]
    return found


def measure() -> dict[str, Any]:
    """Measure lags, Stop and a killed node."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, nodes() as cluster:
        cluster.complete()
        site = Site(Path(folder), LEAKAGE_RAY="auto", RAY_ADDRESS=cluster.address)
        site.store.put_note(CLUSTER, "auto")
        try:
            until(site.service.catalog, 120)
            asked = time.monotonic()
            runs = site.service.submit_all([LONG.model_copy(update={"seed": seed}) for seed in range(6)], "me")
            until(lambda: len(site.store.running()) == 3 and all(site.store.frames(run.id) for run in site.store.running()), 120)
            begun, going = time.monotonic() - asked, [run.id for run in site.store.running()]
            late = sorted(lags(site, going))
            told = time.monotonic()
            site.service.cancel(going[0], "me")
            until(lambda: going[0] not in {run.id for run in site.store.running()}, 60)
            stopped = time.monotonic() - told
            until(lambda: len(site.store.running()) == 3, 60)
            killed = time.monotonic()
            cluster.kill()
            until(lambda: any(row and row.status == "failed" for row in map(site.store.get, runs)), 60)
            return {
                "seconds_until_three_have_a_frame": round(begun, 1),
                "frames_per_second": round(len(late) / WATCHED, 1),
                "lag_ms": {
                    "p50": round(1000 * statistics.median(late)),
                    "p95": round(1000 * late[int(0.95 * len(late))]),
                    "most": round(1000 * late[-1]),
                },
                "seconds_to_stop": round(stopped, 2),
                "seconds_until_a_killed_node_is_noticed": round(time.monotonic() - killed, 1),
            }
        finally:
            site.end()


def main() -> None:
    """Print what was found, and write it down."""
    found = measure()
    table(["what", "found"], [[name, str(value)] for name, value in found.items()])
    save("ray_live", {"about": (__doc__ or "").splitlines()[0], **found})


if __name__ == "__main__":
    main()
