"""The run that trains a model: its rounds become events. Its state is in a folder of LEAKAGE_HOME, so that a stopped training can go on."""

from collections.abc import Callable
from functools import partial

import torch

from leakage.data.images import training_pictures
from leakage.engine.federated_training import Progress
from leakage.runs.events import ProgressEvent, RoundEvent, TrainingEnd, TrainingMetaEvent
from leakage.runs.store import Run, Store
from leakage.runs.trained_models import room_for
from leakage.settings import settings
from leakage.spec.tasks import Training
from leakage.workers.training_adapter import privacy
from leakage.workers.training_folder import train


def perform(store: Store, run: Run, should_stop: Callable[[], bool], device: torch.device) -> TrainingEnd:
    """Train a model and store its rounds as events; return rounds, seconds, accuracy (None before the end of round 1) and checkpoint."""
    training = run.experiment_as(Training)
    folder = settings().checkpoints / training.name
    store.add_event(run.id, TrainingMetaEvent(rounds=training.rounds, device=str(device)))
    last: Progress | None = None
    room = room_for(folder, partial(store.make_model_room, run.id))
    for progress in train(training, folder, device=device, should_stop=should_stop, room=room):
        done, seconds = round(progress.done, 4), round(progress.seconds, 1)
        if progress.accuracy is None:
            store.add_event(run.id, ProgressEvent(done=done, loss=progress.loss, seconds=seconds))
        else:
            store.add_event(run.id, RoundEvent(done=done, loss=progress.loss, seconds=seconds, accuracy=progress.accuracy))
            last = progress
    finished = (folder / "card.json").exists()
    budget = None
    if finished and training.defenses:
        budget = privacy(training, training.pictures or len(training_pictures(training.data).labels))
    return TrainingEnd(
        rounds=round(last.done) if last else 0,
        seconds=last.seconds if last else 0.0,
        accuracy=last.accuracy if last else None,
        checkpoint=f"{folder.name}@{training.rounds}" if finished else None,
        privacy=budget,
    )
