"""The variants of a comparison with their pictures and curves, and the data that repeats them: the material of its exports."""

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image

from leakage.results.accuracy_cost import INFINITE
from leakage.results.comparison import Row, rows
from leakage.results.differences import differs
from leakage.results.exports import answer_of, as_grid, private_grid
from leakage.runs.event_parts import EventPart
from leakage.runs.events import MetaEvent
from leakage.runs.store import Run, Store
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment


@dataclass(frozen=True)
class VariantResult:
    """A run of a comparison with all that its exports show."""

    row: Row
    run: Run
    experiment: Experiment
    meta: MetaEvent | None
    private: Image.Image | None
    """The private pictures at their original size, in rows of `exports.COLUMNS`; None before the run begins."""
    guess: Image.Image | None
    """The reconstruction, in the same layout; None before the first frame."""
    curve: list[tuple[int, float]]
    """The step and PSNR (dB) of every frame, including frames without a stored picture."""

    @property
    def shows_upload(self) -> bool:
        """Whether the run shows an uploaded picture."""
        return self.experiment.has_uploads


def gather(store: Store, ids: Sequence[str], known: Catalog) -> list[VariantResult]:
    """Return the results of the attacks among these runs, each once, without runs that were deleted."""
    runs = [run for id in dict.fromkeys(ids) if (run := store.get(id)) and run.kind == "attack"]
    return [_result(store, run, row) for run, row in zip(runs, rows(store, runs, known), strict=True)]


def _result(store: Store, run: Run, row: Row) -> VariantResult:
    answer = answer_of(store, run)
    scored = [(frame.step, frame.scores.psnr) for frame in store.frames(run.id)]
    return VariantResult(
        row=row,
        run=run,
        experiment=run.experiment_as(Experiment),
        meta=store.meta(run.id),
        private=private_grid(store, run),
        guess=as_grid(run, store.frame(run.id, answer)) if answer else None,
        curve=[(step, psnr) for step, psnr in scored if psnr is not None],
    )


def data(variants: Sequence[VariantResult], known: Catalog) -> dict[str, Any]:
    """Return the comparison as JSON data: the experiments in full, their results, and the devices and versions that computed them."""
    apart, alike = differs([variant.experiment for variant in variants], known)
    return {
        "differs": apart,
        "equal": alike,
        "experiments": [json.loads(variant.run.experiment) for variant in variants],
        "rows": [without_infinity(dataclasses.asdict(variant.row)) for variant in variants],
        "seeds": [variant.experiment.seed for variant in variants],
        "versions": [
            {"device": variant.meta.environment.device, **variant.meta.environment.versions} if variant.meta else {"device": None}
            for variant in variants
        ],
    }


def without_infinity(value: Any) -> Any:
    """Return JSON data with “∞” in place of plus infinity, since JSON has no infinity."""
    if isinstance(value, dict):
        return {name: without_infinity(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [without_infinity(part) for part in value]
    if isinstance(value, EventPart):
        return without_infinity(value.model_dump())
    return INFINITE if value == math.inf else value
