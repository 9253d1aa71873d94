"""How long a run will take on this machine, before it begins."""

import json

from leakage.runs.events import AttackEnd
from leakage.runs.notes import SPEEDS
from leakage.runs.store import Store
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.tasks import Ranks, Training


def estimate(store: Store, task: Experiment | Training | Ranks, known: Catalog) -> float | None:
    """Seconds that this (resolved) experiment will take; None when nothing is known.

    What the same attack on the same model took lately, else what the workers measured when they were idle. Ranks: by their sizes.
    """
    if isinstance(task, Ranks):
        return task.seconds
    if isinstance(task, Training):
        return None
    per_step = _lately(store, task)
    if per_step is None:
        per_step = _measured(store, task, known)
    return None if per_step is None else planned(task) * per_step


def _lately(store: Store, experiment: Experiment) -> float | None:
    """Seconds for each planned pass: the median of the latest runs like this."""
    found = [
        end.seconds / planned(Experiment.model_validate_json(run.experiment))
        for run in store.done_with_timing_key(timing_key(experiment))
        if (end := run.outcome(AttackEnd)) and end.seconds is not None
    ]
    return sorted(found)[len(found) // 2] if found else None


def _measured(store: Store, experiment: Experiment, known: Catalog) -> float | None:
    """The same by what the workers measured of this model with default fields."""
    entry = known.get("model", experiment.model.id)
    speeds = (store.note(SPEEDS) or {}).get(entry.id)
    if not speeds or any(
        experiment.model.fields.get(field.name, field.default) != field.default
        for field in entry.fields
        if field.type != "str" or field.syntax  # a word out of a menu changes little
    ):
        return None
    load = len(experiment.pictures) * experiment.size**2 / 32**2  # in pictures of 32 x 32
    one, eight = speeds
    per_replay = max(one + (eight - one) * (load - 1) / 7, one / 2)
    return known.get("attack", experiment.attack.id).evaluations_per_step * float(per_replay)


def planned(experiment: Experiment) -> float:
    """Passes over the batch that the attack will replay at most: steps (or 1), for every start, times the client's own epochs."""
    fields = experiment.attack.fields
    epochs = experiment.protocol.fields.get("epochs", 1) if experiment.assume.adaptive else 1
    return max(1.0, float(fields.get("steps", 1)) * float(fields.get("starts", 1)) * float(epochs))


def timing_key(experiment: Experiment) -> str:
    """Runs with equal keys take about equally long per step: who imitates local steps takes longer."""
    imitated = (experiment.protocol.model_dump(), experiment.aggregation and experiment.aggregation.model_dump())
    return json.dumps(
        [
            *(experiment.attack.id, experiment.model.model_dump(), experiment.batch_norm),
            *(*imitated, experiment.assume.adaptive),
            *(len(experiment.pictures), experiment.size, experiment.channels),
        ],
        sort_keys=True,
    )
