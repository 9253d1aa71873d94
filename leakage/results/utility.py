"""What protection costs: how good a model gets behind it, out of the table in assets/, or trained here by the table's own recipe."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from leakage.runs.events import TrainingEnd
from leakage.runs.reader import RunReader
from leakage.runs.store import Run
from leakage.settings import ROOT
from leakage.spec.catalog import Catalog, CatalogError
from leakage.spec.experiment import Part
from leakage.spec.tasks import Training

ACCURACY_COSTS = ROOT / "assets" / "price.json"
RECIPE = ("model", "rounds", "pictures", "batch")  # what rows of the table that can be compared have in common


def accuracy(runs: RunReader, defenses: Sequence[Part], known: Catalog) -> float | None:
    """What a model trained behind these protections gets right of the test pictures; None where nobody measured it."""
    listed = in_table(defenses, known)
    run = None if listed is not None else training_of(runs, defenses, known)
    end = run.outcome(TrainingEnd) if run and run.status == "done" else None
    return end.accuracy if end else listed


def in_table(defenses: Sequence[Part], known: Catalog) -> float | None:
    """Out of the table: the mean over seeds. Of several steps of the server the best: a protection is judged by what can be had with it."""
    wanted, found = [with_defaults(part, known) for part in defenses], table()
    alike = [row for row in found["rows"] if all(row[name] == found["recipe"][name] for name in RECIPE)] if found else []
    measured = [row["accuracy"] for row in alike if [with_defaults(Part(**one), known) for one in row["defenses"]] == wanted]
    return max((float(sum(one) / len(one)) for one in measured if one), default=None)


def training(defenses: Sequence[Part], known: Catalog) -> Training | None:
    """The training that would fill the table's row, with a day's time for it; None where there is no table, or it cannot be asked."""
    found = table()
    try:
        return Training(**found["recipe"], defenses=tuple(defenses), max_seconds=24 * 3600).resolve(known) if found else None
    except ValueError:  # a SpecError, or a recipe of another version
        return None


def training_of(runs: RunReader, defenses: Sequence[Part], known: Catalog) -> Run | None:
    """This machine's latest run of that training with today's code: one that ended well, else however it stands."""
    asked = training(defenses, known)
    found = [run for run in runs.equal("train", asked.digest()) if run.version == known.version] if asked else []
    return next((run for run in found if run.status == "done"), None) or next(iter(found), None)


def table() -> dict[str, Any] | None:
    """What benchmarks/published/accuracy_cost.py left."""
    return _read(ACCURACY_COSTS, ACCURACY_COSTS.stat().st_mtime_ns) if ACCURACY_COSTS.exists() else None


@cache
def _read(path: Path, _changed: int) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def with_defaults(part: Part, known: Catalog) -> Part:
    """A protection with every field; as it is where this program knows no such protection."""
    try:
        return Part(id=part.id, fields=known.get("defense", part.id).resolve(part.fields))
    except CatalogError:
        return part
