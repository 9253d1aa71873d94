"""A class that attacks one network: each owner has a picture of CIFAR-10, and runs with the same model and attack share loops."""

import time
from collections.abc import Callable
from typing import Any

from _site import Site, silent_page, until

from leakage.spec.experiment import Experiment, Part, Picture

OWNERS = 30
STEPS = 1000


def make_experiment(number: int, *, apart: bool) -> Experiment:
    """Return the experiment of an owner; runs that are kept apart have limits of their own, so that no loop takes them."""
    attack = Part(id="inverting_gradients", fields={"steps": STEPS})
    picture = Picture(source="cifar10", id=str(number))
    return Experiment(pictures=(picture,), attack=attack, max_seconds=600 + number * apart)


def measure(site: Site) -> list[dict[str, Any]]:
    """Measure the seconds until all runs have ended: one after the other in each slot, in loops, and in loops that are disturbed."""
    rows = []
    for title, apart in (("one after the other", True), ("in loops", False)) * 2:
        rows.append({"runs": title} | run_class(site, apart=apart))
    disturbed = run_class(site, apart=False, meanwhile=disturb)
    return [*rows, {"runs": "in loops; one is stopped, one page never reads, one comes late"} | disturbed]


def measure_apart(site: Site) -> list[dict[str, Any]]:
    """Measure the seconds until all runs have ended, one after the other in each slot, on a dashboard whose steps are autograd's."""
    return [{"runs": "one after the other, by autograd"} | run_class(site, apart=True)]


def run_class(site: Site, *, apart: bool, meanwhile: Callable[[Site, list[str], str], list[str]] | None = None) -> dict[str, Any]:
    """Run the class once.

    Args:
        site: the dashboard.
        apart: whether each run is computed by itself.
        meanwhile: called with the runs and the beginning of their owners' names while the first runs are computed; it returns further runs.
    """
    began = time.perf_counter()
    runs = [site.service.submit_all([make_experiment(number, apart=apart)], f"{began} {number}")[0] for number in range(OWNERS)]
    if meanwhile:
        until(site.store.running, 60)
        runs += meanwhile(site, runs, str(began))
    until(lambda: not site.store.queue() and not site.store.running(), 600)
    seconds = time.perf_counter() - began
    ended = [run for one in runs if (run := site.store.get(one))]
    count = {status: sum(run.status == status for run in ended) for status in ("done", "cancelled")}
    longest = max((run.finished or 0) - run.created for run in ended)
    for number in range(OWNERS + 1):
        site.service.delete_all(f"{began} {number}")
    return {"seconds": seconds, "longest_s": longest, **count}


def disturb(site: Site, runs: list[str], owners: str) -> list[str]:
    """Stop the third run of the class, follow the first on a page that never reads, and return a run that comes two seconds late."""
    with silent_page(site, runs[0], 1):
        time.sleep(2)
        site.service.cancel(runs[2], f"{owners} 2")
        late = site.service.submit_all([make_experiment(OWNERS, apart=False)], f"{owners} {OWNERS}")
        until(lambda: not site.store.queue() and not site.store.running(), 600)
    return late
