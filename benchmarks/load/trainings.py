"""One browser asks for 12 trainings in a store of 64 MB: bytes written, and how trainings without room end.

    .venv/bin/python benchmarks/load/trainings.py

BEFORE is what the same script found at commit bbe6181, when nobody counted trained models.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _site import Site, until
from _table import save, say

from leakage.runs.store import OPEN, Store
from leakage.spec.experiment import Part, SpecError
from leakage.spec.tasks import Training

STORE_MB, TRAININGS, MB = 64, 12, 2**20
BEFORE = {"done": 10, "without_room": 0, "models_mb": 7.2, "seconds": 200}  # two were not through after 200 s on a busy machine


def measure() -> dict[str, Any]:
    """Measure the megabytes of the store's file and of the trained models, their common maximum, and how the trainings ended."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        Store(home / "store.db", max_mb=STORE_MB).close()
        site = Site(home, LEAKAGE_STORE_MB=str(STORE_MB))
        try:
            until(site.service.catalog, 120)
            wide, asked, refused, most = Part(id="convnet", fields={"width": 16}), list[str](), list[str](), 0.0
            began = time.monotonic()
            for seed in range(TRAININGS):
                task = Training(model=wide, data="digits", pictures=300, rounds=1, batch=100, seed=seed)
                try:
                    asked.append(site.service.train(task, "one browser"))
                except SpecError as error:
                    refused.append(str(error))

            def ended() -> bool:
                nonlocal most
                most = max(most, size(home / "store.db") + size(home / "checkpoints"))
                return all((run := site.store.get(one)) is None or run.status not in OPEN for one in asked)

            until(ended, 200)
            runs = [run for one in asked if (run := site.store.get(one))]
            return {
                "store_mb": STORE_MB,
                "trainings": TRAININGS,
                "done": sum(run.status == "done" for run in runs),
                "without_room": sum(run.status == "failed" for run in runs) + len(refused),
                "words": next((run.message for run in runs if run.status == "failed"), (refused or [""])[0]),
                "models_mb": round(size(home / "checkpoints"), 1),
                "most_of_both_mb": round(most, 1),
                "seconds": round(time.monotonic() - began),
            }
        finally:
            site.end()


def size(path: Path) -> float:
    """Return the megabytes of a file, or of all files below a folder."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    found = 0
    for one in files:
        try:
            found += one.stat().st_size
        except FileNotFoundError:  # replaced meanwhile
            continue
    return found / MB


if __name__ == "__main__":
    result = measure()
    say(f"{result}")
    save("load_trainings", {"before": BEFORE, "now": result})
