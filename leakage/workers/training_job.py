"""A training as a run: its rounds as events. What it learns lies in a folder of LEAKAGE_HOME, so that a stopped one can go on."""

import math
from collections.abc import Callable
from typing import Any

import torch

from leakage.engine.federated_training import Progress
from leakage.runs.store import Run, Store
from leakage.settings import settings
from leakage.spec.tasks import Training
from leakage.workers.training_folder import train


def perform(store: Store, run: Run, pulse: Callable[[], bool], device: torch.device) -> dict[str, Any]:
    """Train, tell how it goes, and answer the result: rounds, seconds, accuracy (None before the first round has ended), checkpoint."""
    training = Training.model_validate_json(run.experiment)
    folder = settings().checkpoints / training.name
    store.add_event(run.id, "meta", {"rounds": training.rounds, "device": str(device)})
    last: Progress | None = None
    for word in train(training, folder, device=device, pulse=pulse):
        body = {"done": round(word.done, 4), "loss": word.loss if math.isfinite(word.loss) else None, "seconds": round(word.seconds, 1)}
        if word.accuracy is None:
            store.add_event(run.id, "progress", body)
        else:
            store.add_event(run.id, "round", {**body, "accuracy": word.accuracy})
            last = word
    finished = (folder / "card.json").exists()
    return {
        "rounds": round(last.done) if last else 0,
        "seconds": last.seconds if last else 0.0,
        "accuracy": last.accuracy if last else None,
        "checkpoint": f"{folder.name}@{training.rounds}" if finished else None,
    }
