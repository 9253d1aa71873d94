"""Runs that arrive while the idle machine compiles, beside the same runs on a machine that never compiles. No program is ready in time."""

import statistics
import time
from typing import Any

from _site import new_site, until

from leakage.spec.experiment import Experiment, Part
from leakage.workers.step_compiler import IDLE

RUNS = 4  # on each dashboard
STEPS = 3000
GAP = IDLE + 8  # seconds without a run: the compiler is at work by then, and far from its end


def measure() -> list[dict[str, Any]]:
    """Measure the seconds from a submission to the end of its run, without and with the compiler, on two new homes each, in turn."""
    rows = []
    for home, compiled in enumerate(("0", "1", "0", "1")):
        with new_site(LEAKAGE_COMPILE=compiled) as site:
            seconds, interrupted, ready = [], 0, 0
            for number in range(RUNS):
                time.sleep(GAP)
                interrupted += any(site.config.programs.glob("compiling-*"))
                experiment = Experiment(attack=Part(id="inverting_gradients", fields={"steps": STEPS}), seed=1000 * home + number)
                run = site.service.submit_all([experiment], "compiler")[0]
                until(lambda: not site.store.queue() and not site.store.running(), 600)
                ended = site.store.get(run)
                assert ended is not None
                assert ended.status == "done", ended.message
                seconds.append((ended.finished or 0) - ended.created)
                ready += "derivatives by" in (ended.result or {})["note"]
            row = {"compiler": "at work" if compiled == "1" else "off", "interrupted": interrupted, "by compiled steps": ready}
            rows.append({**row, "median_s": statistics.median(seconds), "longest_s": max(seconds)})
    return rows
