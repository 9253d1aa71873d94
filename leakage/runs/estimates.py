"""How long a run will take on this machine: before it begins, while it runs, and until it begins."""

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
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.part import FIRST_NAMES
from leakage.spec.tasks import InverterTraining, Ranks, Task, Training

LOADED = 1.5  # the factor from which on a page mentions the load
ENOUGH = 1.0  # seconds of a run after which its pace is known


def estimate(store: Store, task: Task, known: Catalog) -> float | None:
    """Estimate the seconds that this task, with defaults filled in, takes; None when nothing is known.

    An attack takes per step what the same attack on the same model took lately, else what the workers measured when they were idle. The
    time of a rank measurement follows from the sizes of its layers. Of a training nothing is known.
    """
    if isinstance(task, Ranks):
        return task.seconds
    if isinstance(task, Training | InverterTraining):
        return None
    per_step = _lately(store, task, known)
    if per_step is None:
        per_step = _measured(store, task, known)
    return None if per_step is None else planned(task, known) * per_step


def load_now() -> float:
    """Return by which factor the load of the machine lengthens a run that begins now: 1 when a core is free.

    It is (load + 1) / cores, with the kernel's mean over the last minute of processes that run or wait for a core.
    """
    try:
        return max(1.0, (os.getloadavg()[0] + 1) / (os.cpu_count() or 1))
    except OSError:  # the kernel does not say
        return 1.0


def _lately(store: Store, experiment: Experiment, known: Catalog) -> float | None:
    """Return the seconds of a planned pass, the median over the latest runs with the same timing key; None without any."""
    found = [
        end.seconds / planned(run.experiment_as(Experiment), known)
        for run in store.done_with_timing_key(timing_key(experiment))
        if (end := run.outcome(AttackEnd)) and end.seconds is not None
    ]
    return sorted(found)[len(found) // 2] if found else None


def _measured(store: Store, experiment: Experiment, known: Catalog) -> float | None:
    """Return the seconds of a planned pass from what the workers measured of this model with default fields; None without that."""
    entry = known.models.get(experiment.model.id)
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
    return known.attacks.get(experiment.attack.id).evaluations_per_step * float(per_replay)


def waits(store: Store, running: Sequence[Run], waiting: Sequence[Run], slots: int) -> list[float | None]:
    """Estimate the seconds until each waiting run begins, in this order; None where nothing is known.

    Running runs are taken at their present pace. Where that is slower than estimated, others load the machine, and waiting runs will be
    slower too.
    """
    paces = [_at_its_pace(store, run) for run in running]
    loads = [pace[0] / run.estimate for run, pace in zip(running, paces, strict=True) if pace and run.estimate]
    load = sum(loads) / len(loads) if loads else 1.0
    left = [_left(run, pace, load) for run, pace in zip(running, paces, strict=True)]
    if None in left:
        return [None] * len(waiting)
    free = [seconds for seconds in (*left, *[0.0] * (slots - len(left))) if seconds is not None]  # when each slot is
    heapq.heapify(free)
    found = list[float | None]()
    for run in waiting:
        found.append(free[0] if free else None)
        seconds = _within_limit(run, load)
        if seconds is None:
            free = []
        elif free:
            heapq.heapreplace(free, free[0] + seconds)
    return found


def _left(run: Run, pace: tuple[float, float] | None, load: float) -> float | None:
    """Estimate the seconds that a run still takes: at its present pace, else by its estimate under this load; None without both."""
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
    """Return the seconds that an attack takes in all at its present pace, and those that it has taken; None before its pace is known."""
    frame = store.newest_frame(run.id) if run.kind == "attack" else None
    steps = run.experiment_as(Experiment).attack.fields.get("steps") if frame else None
    if not frame or not steps or frame.step < 1 or frame.seconds < ENOUGH:
        return None
    return frame.seconds / frame.step * max(float(steps), frame.step), frame.seconds


def planned(experiment: Experiment, known: Catalog) -> float:
    """Return how many passes over the batch the attack replays: steps (or 1) x starts x the client's local epochs, without restarts."""
    fields = experiment.attack.fields
    imitates = experiment.assume.adaptive and not known.attacks.get(experiment.attack.id).in_place_of_steps
    epochs = experiment.protocol.fields.get("epochs", 1) if imitates else 1
    return max(1.0, float(fields.get("steps", 1)) * float(fields.get("starts", 1)) * float(epochs))


def timing_key(experiment: Experiment) -> str:
    """Return a key; runs with equal keys take about equally long per step. An attacker that imitates local steps takes longer."""
    asked = experiment.model_dump(context=FIRST_NAMES)  # as runs of earlier versions have it
    return json.dumps(
        [
            *(asked["attack"]["id"], asked["model"], experiment.batch_norm),
            *(asked["protocol"], asked["aggregation"], experiment.assume.adaptive),
            *(len(experiment.pictures), experiment.size, experiment.channels),
            *([experiment.outputs] if experiment.outputs else []),
        ],
        sort_keys=True,
    )
