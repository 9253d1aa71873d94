"""A training as a run: its rounds as events. What it learns lies in a folder of LEAKAGE_HOME, so that a stopped one can go on."""

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
    """Train, tell how it goes, and answer the result: rounds, seconds, accuracy (None before the first round has ended), checkpoint."""
    training = run.experiment_as(Training)
    folder = settings().checkpoints / training.name
    store.add_event(run.id, TrainingMetaEvent(rounds=training.rounds, device=str(device)))
    last: Progress | None = None
    for word in train(
        training, folder, device=device, should_stop=should_stop, room=room_for(folder, partial(store.make_model_room, run.id))
    ):
        done, seconds = round(word.done, 4), round(word.seconds, 1)
        if word.accuracy is None:
            store.add_event(run.id, ProgressEvent(done=done, loss=word.loss, seconds=seconds))
        else:
            store.add_event(run.id, RoundEvent(done=done, loss=word.loss, seconds=seconds, accuracy=word.accuracy))
            last = word
    finished = (folder / "card.json").exists()
    return TrainingEnd(
        rounds=round(last.done) if last else 0,
        seconds=last.seconds if last else 0.0,
        accuracy=last.accuracy if last else None,
        checkpoint=f"{folder.name}@{training.rounds}" if finished else None,
        privacy=privacy(training, training.pictures or len(training_pictures(training.data).labels))
        if finished and training.defenses
        else None,
    )
