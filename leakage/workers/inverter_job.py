"""The run that trains an attacker's network: its epochs become events, and the network is written to a folder of LEAKAGE_HOME."""

import time
from collections.abc import Callable
from functools import partial

from leakage.data.inverters import inverter_folder, read_inverter
from leakage.engine.stopping import StoppedError
from leakage.runs.events import InverterEnd, ProgressEvent, TrainingMetaEvent
from leakage.runs.store import Run, Store
from leakage.runs.trained_models import room_for
from leakage.spec.tasks import InverterTraining
from leakage.workers.inverter_adapter import train_inverter


def perform(store: Store, run: Run, should_stop: Callable[[], bool]) -> InverterEnd:
    """Train a network that undoes updates, store its epochs as events, and return its errors, or only the seconds if it was stopped."""
    task, began = run.experiment_as(InverterTraining), time.monotonic()
    folder = inverter_folder(task.name)
    store.add_event(run.id, TrainingMetaEvent(rounds=task.epochs, device="cpu"))
    if not (folder / "card.json").exists():
        room = room_for(folder, partial(store.make_model_room, run.id))
        try:
            for epoch in train_inverter(task, folder, should_stop=should_stop, room=room):
                store.add_event(run.id, ProgressEvent(done=epoch.done, loss=epoch.loss, seconds=round(time.monotonic() - began, 1)))
        except StoppedError:
            return InverterEnd(seconds=round(time.monotonic() - began, 1))
    card = read_inverter(folder / "card.json")
    store.add_event(run.id, ProgressEvent(done=task.epochs, loss=card.mse, seconds=card.seconds))
    return InverterEnd(inverter=task.name, mse=card.mse, mse_mean=card.mse_mean, seconds=card.seconds)
