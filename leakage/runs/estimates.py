"""Estimates of the time that a run takes on this machine, and of the time until it begins."""

import heapq
import json
import math
import os
import time
from collections.abc import Sequence
from functools import lru_cache

from leakage.runs.events import AttackEnd
from leakage.runs.notes import SPEEDS
from leakage.runs.store import Run, Store
from leakage.spec.audit_task import AuditTask
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.part import FIRST_NAMES
from leakage.spec.tasks import GradientNorms, HandedModel, InverterTraining, Ranks, Task, Training

LOADED = 1.5  # the factor from which on a page mentions the load
ENOUGH = 1.0  # seconds of a run after which its pace is used


def estimate(store: Store, task: Task, known: Catalog) -> float | None:
    """Estimate the seconds that a task with defaults filled in takes; None if nothing is known.

    The time of a step of an attack is that of the latest runs of the same attack on the same model, or else follows from the speeds that
    idle workers measured. The time of a rank measurement follows from the sizes of its layers, that of an audit from its minutes. There is
    no estimate for a training.
    """
    if isinstance(task, Ranks | HandedModel | GradientNorms | AuditTask):
        return task.seconds
    if isinstance(task, Training | InverterTraining):
        return None
    per_step = _recent_seconds(store, task, known)
    if per_step is None:
        per_step = _seconds_by_speed(store, task, known)
    return None if per_step is None else count_passes(task, known) * per_step


def load_now() -> float:
    """Return the factor by which the machine's load lengthens a run that begins now: (load + 1) / cores, at least 1.

    The load is the kernel's mean number, over the last minute, of processes that run or wait for a core.
    """
    try:
        return max(1.0, (os.getloadavg()[0] + 1) / (os.cpu_count() or 1))
    except OSError:  # the kernel does not say
        return 1.0


def _recent_seconds(store: Store, experiment: Experiment, known: Catalog) -> float | None:
    """Return an attack's seconds per pass (see `count_passes`): the median of the latest runs of the same timing key, else None."""
    seconds = [
        end.seconds / count_passes(run.experiment_as(Experiment), known)
        for run in store.done_with_timing_key(timing_key(experiment))
        if (end := run.outcome(AttackEnd)) and end.seconds is not None
    ]
    return sorted(seconds)[len(seconds) // 2] if seconds else None


def _seconds_by_speed(store: Store, experiment: Experiment, known: Catalog) -> float | None:
    """Return an attack's seconds per pass (see `count_passes`) by the speed of the model, measured with default fields; else None."""
    entry = known.models.get(experiment.model.id)
    speeds = (store.note(SPEEDS) or {}).get(entry.id)
    relevant = [field for field in entry.fields if field.type != "str" or field.syntax]  # a word out of a menu changes little
    measured = all(experiment.model.fields.get(field.name, field.default) == field.default for field in relevant)
    if not speeds or not measured:
        return None
    load = len(experiment.pictures) * experiment.size**2 / 32**2  # in pictures of 32 x 32
    single, eight = speeds
    per_replay = max(single + (eight - single) * (load - 1) / 7, single / 2)
    return known.attacks.get(experiment.attack.id).evaluations_per_step * float(per_replay)


def waits(store: Store, running: Sequence[Run], waiting: Sequence[Run], slots: int) -> list[float | None]:
    """Estimate the seconds until each waiting run begins; None where nothing is known.

    Running runs are expected to go on at their present pace. If that is slower than estimated, because of other load on the machine,
    waiting runs are expected to be slower by the same factor.

    Args:
        store: the store.
        running: the running runs.
        waiting: the waiting runs, in the order in which they will begin.
        slots: the number of runs that are computed at a time.
    """
    paces = [_at_its_pace(store, run) for run in running]
    loads = [pace[0] / run.estimate for run, pace in zip(running, paces, strict=True) if pace and run.estimate]
    load = sum(loads) / len(loads) if loads else 1.0
    remaining = [_remaining(run, pace, load) for run, pace in zip(running, paces, strict=True)]
    if None in remaining:
        return [None] * len(waiting)
    idle = [0.0] * (slots - len(remaining))
    free = [seconds for seconds in (*remaining, *idle) if seconds is not None]  # the seconds until each slot is free
    heapq.heapify(free)
    starts = list[float | None]()
    for run in waiting:
        starts.append(free[0] if free else None)
        seconds = _within_limit(run, load)
        if seconds is None:
            free = []
        elif free:
            heapq.heapreplace(free, free[0] + seconds)
    return starts


def _remaining(run: Run, pace: tuple[float, float] | None, load: float) -> float | None:
    """Estimate the seconds that a run still takes, at its present pace, or else by its estimate times the load; None without both."""
    if pace:
        return max(0.0, min(pace[0], _limit(run)) - pace[1])
    seconds = _within_limit(run, load)
    return None if seconds is None else max(0.0, seconds - (time.time() - (run.started or time.time())))


def _within_limit(run: Run, load: float) -> float | None:
    return None if run.estimate is None else min(run.estimate * load, _limit(run))


def _limit(run: Run) -> float:
    """Return the time limit of a run in seconds."""
    return _max_seconds(run.experiment) if run.kind == "attack" else math.inf


@lru_cache(maxsize=4096)
def _max_seconds(experiment: str) -> float:
    return Experiment.model_validate_json(experiment).max_seconds


def _at_its_pace(store: Store, run: Run) -> tuple[float, float] | None:
    """Return the seconds that an attack takes in all at its present pace, and the seconds so far; None before its pace is known."""
    frame = store.newest_frame(run.id) if run.kind == "attack" else None
    steps = run.experiment_as(Experiment).attack.fields.get("steps") if frame else None
    if not frame or not steps or frame.step < 1 or frame.seconds < ENOUGH:
        return None
    return frame.seconds / frame.step * max(float(steps), frame.step), frame.seconds


def count_passes(experiment: Experiment, known: Catalog) -> float:
    """Return how often an attack passes over the batch: steps (or 1) x starts x the client's local epochs, if the attack imitates them.

    Restarts are not counted.
    """
    fields = experiment.attack.fields
    imitates = experiment.assume.adaptive and not known.attacks.get(experiment.attack.id).in_place_of_steps
    epochs = experiment.protocol.fields.get("epochs", 1) if imitates else 1
    return max(1.0, float(fields.get("steps", 1)) * float(fields.get("starts", 1)) * float(epochs))


def timing_key(experiment: Experiment) -> str:
    """Return a key that is equal for experiments with about the same time per step: same attack, model, protocol, attacker and batch."""
    asked = experiment.model_dump(context=FIRST_NAMES)  # as runs of earlier versions have it
    return json.dumps(
        [
            *(asked["attack"]["id"], asked["model"], experiment.batch_norm),
            *(asked["protocol"], asked["aggregation"], experiment.assume.adaptive),
            *(len(experiment.pictures), experiment.size, experiment.channels),
            *([experiment.outputs] if experiment.outputs else []),
            *([asked["server"]] if experiment.server else []),
        ],
        sort_keys=True,
    )
