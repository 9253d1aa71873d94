"""Runs that need more memory than a worker may take, each followed by normal runs: how many of the normal runs fail.

    .venv/bin/python benchmarks/load/poisoned_worker.py

BEFORE is what the same script found at commit 0dbc7c3, when a worker went on after it had met its limit.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _site import Site, until
from _table import save, say

from leakage.runs.store import OPEN, Run
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture

MEMORY_MB = 300  # of one worker
BATCH = ("astronaut", "chelsea", "coffee", "rocket", "retina", "immunohistochemistry")
AFTER = 6  # runs of others behind every large one
BEFORE = {16: 0, 24: 0, 32: 0, 48: 0, 64: 2}  # pictures of the large run -> later runs that failed


def large(seed: int, pictures: int) -> Experiment:
    """Return a run with a batch of 64 pixels through a wide network, which needs more than MEMORY_MB."""
    return Experiment(
        pictures=tuple(Picture(id=BATCH[number % len(BATCH)]) for number in range(pictures)),
        size=64,
        model=Part(id="convnet", fields={"width": 128}),
        attack=Part(id="inverting_gradients", fields={"steps": 10}),
        assume=Assumptions(labels=True),
        seed=seed,
    )


def small(seed: int, model: str) -> Experiment:
    """Return a normal run; each model needs another pattern of memory."""
    return Experiment(model=Part(id=model), attack=Part(id="inverting_gradients", fields={"steps": 20}), seed=seed)


def play(site: Site, experiment: Experiment, owner: str) -> Run:
    """Ask, and wait for the end."""
    until(site.service.catalog, 120)
    run = site.service.submit(experiment, owner)
    until(lambda: (found := site.store.get(run)) and found.status not in OPEN, 180)
    found = site.store.get(run)
    assert found
    return found


def measure() -> list[dict[str, Any]]:
    """Return one row for each size of the large run."""
    rows = []
    for pictures, before in BEFORE.items():
        with tempfile.TemporaryDirectory() as home:
            site = Site(Path(home), slots=1, LEAKAGE_MEMORY_MB=str(MEMORY_MB))
            try:
                ended = play(site, large(pictures, pictures), "ann")
                models = ("lenet", "convnet", "resnet", "lenet", "convnet", "resnet")
                others = [play(site, small(1000 + number, models[number]), f"other {number}") for number in range(AFTER)]
                failed = [one.message for one in others if one.status != "done"]
                rows.append(
                    {
                        "pictures": pictures,
                        "large": f"{ended.status}: {ended.message}",
                        "after": AFTER,
                        "before": before,
                        "failed": len(failed),
                    }
                )
                say(f"{pictures} pictures: {ended.message[:60]!r}; of {AFTER} later runs {len(failed)} failed {failed[:2]}")
            finally:
                site.end()
    return rows


if __name__ == "__main__":
    save("load_poisoned", {"memory_mb": MEMORY_MB, "rows": measure()})
