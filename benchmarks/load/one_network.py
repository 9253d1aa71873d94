"""A class that attacks one network: each owner has a picture of CIFAR-10, and runs with the same model and attack share loops."""

import time
from typing import Any

from _site import Site, until

from leakage.spec.experiment import Experiment, Part, Picture

OWNERS = 30
STEPS = 1000


def make_experiment(number: int, *, apart: bool) -> Experiment:
    """Return the experiment of an owner; runs that are kept apart have limits of their own, so that no loop takes them."""
    attack = Part(id="inverting_gradients", fields={"steps": STEPS})
    picture = Picture(source="cifar10", id=str(number))
    return Experiment(pictures=(picture,), attack=attack, max_seconds=600 + number * apart)


def measure(site: Site) -> list[dict[str, Any]]:
    """Measure the seconds until all runs have ended: runs one after the other in each slot, then runs that may share loops."""
    rows = []
    for apart in (True, False, True, False):
        began = time.perf_counter()
        runs = [site.service.submit_all([make_experiment(number, apart=apart)], f"{began} {number}")[0] for number in range(OWNERS)]
        until(lambda: not site.store.queue() and not site.store.running(), 600)
        seconds = time.perf_counter() - began
        ended = [run for one in runs if (run := site.store.get(one))]
        longest, done = max((run.finished or 0) - run.created for run in ended), sum(run.status == "done" for run in ended)
        rows.append({"runs": "one after the other" if apart else "in loops", "seconds": seconds, "longest_s": longest, "done": done})
        for number in range(OWNERS):
            site.service.delete_all(f"{began} {number}")
    return rows
