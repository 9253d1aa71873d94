"""How long a second browser waits behind eight runs of an hour of the first browser, with two slots.

    .venv/bin/python benchmarks/load/long_runs.py

BEFORE: at commit 0dbc7c3 it had not begun after 75 s, when it was looked at last; the runs hold both slots for an hour.
"""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _site import Site, until
from _table import save, say

from leakage.spec.experiment import Experiment, Part

BEFORE = "not begun after 75 s"
TIMES = 3


def is_past(site: Site, run: str, *states: str) -> bool:
    """Return whether the run is in none of these states any more."""
    found = site.store.get(run)
    return found is None or found.status not in states


def measure() -> dict[str, object]:
    """Measure the seconds until a short and a long run of another browser begin, TIMES times each."""
    hour = Experiment(attack=Part(id="inverting_gradients", fields={"steps": 24000, "starts": 16}), max_seconds=3600)
    short = Experiment(attack=Part(id="inverting_gradients", fields={"steps": 60}), max_seconds=20)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        site = Site(Path(home))
        try:
            until(site.service.catalog, 120)
            mine = site.service.submit_all([hour.model_copy(update={"seed": seed}) for seed in range(8)], "first")

            def both_play() -> bool:
                return sum(site.store.newest_frame(run.id) is not None for run in site.store.running() if run.owner == "first") == 2

            found: dict[str, object] = {"before": BEFORE}
            for name, asked in (("short", short), ("long", hour.model_copy(update={"max_seconds": 20}))):
                waits = []
                for number in range(TIMES):
                    until(both_play, 120)
                    time.sleep(2)
                    began = time.monotonic()
                    run = site.service.submit(asked.model_copy(update={"seed": 100 + number}), f"{name} {number}")
                    until(partial(is_past, site, run, "queued"), 600)
                    waits.append(round(time.monotonic() - began, 1))
                    until(partial(is_past, site, run, "queued", "running"), 120)
                found[f"seconds_until_a_{name}_run_began"] = waits
                say(f"{name}: began after {waits} s")
            kept = [run for run in mine if not [event for event in site.store.events([run], 0) if event["kind"] == "restart"]]
            found["of_eight_never_begun_anew"] = len(kept)
            return found
        finally:
            site.end()


if __name__ == "__main__":
    save("load_long_runs", measure())
