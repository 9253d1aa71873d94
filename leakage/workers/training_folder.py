"""A training in a folder: its state after every round, its metrics, its stages and its card, so that it can be interrupted."""

import fcntl
import hashlib
import importlib.metadata
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from leakage.data.checkpoints import STATE, CheckpointError, write
from leakage.engine.core import ClientState, Params
from leakage.engine.federated_training import Pictures, Progress, State, accuracy
from leakage.engine.stopping import StoppedError
from leakage.engine.weights import pack, put, unpack
from leakage.settings import INSTALLED, ROOT
from leakage.spec.tasks import Training
from leakage.workers.plugin_catalog import describe
from leakage.workers.training_adapter import build, load, privacy_facts
from leakage.workers.training_adapter import train as run_training

PATIENCE = 20.0  # seconds in which another training that was asked to stop should have left the folder
CARRIED = "memory/{}/"  # prefix of the names of a client's state in the file of the training's state
FILES = 3  # times the size of the weights that the folder needs: for the state, the next state while it is written, and the stages
STAGES = (1, 5)  # rounds after which the weights are kept, as float16; after the last round they are kept as float32


def any_room(_more: int) -> None:
    """Allow any size: a training on the command line may fill the whole disk."""


def train(
    training: Training,
    folder: Path,
    *,
    device: torch.device,
    should_stop: Callable[[], bool] = lambda: False,
    room: Callable[[int], None] = any_room,
) -> Iterator[Progress]:
    """Train a model, yield the progress, and keep everything in a folder.

    A training that was interrupted there goes on after its last full round. Of a training that has ended there, only the stored progress is
    yielded. metrics.json has a row for each round.

    Args:
        training: the training.
        folder: its folder, which is created.
        device: the device to compute on.
        should_stop: called between steps.
        room: called with the number of bytes before they are written; it may raise an error.

    Raises:
        CheckpointError: the folder holds another training, or another process works in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, should_stop):
        yield from _train(training, folder, device=device, should_stop=should_stop, room=room)


def _train(
    training: Training, folder: Path, *, device: torch.device, should_stop: Callable[[], bool], room: Callable[[int], None]
) -> Iterator[Progress]:
    commit = commit_of_code()  # of the code as it was loaded
    start, rows = resume(training, folder)
    for row in rows:
        yield Progress(row["round"], row["loss"], row["seconds"], row["accuracy"])
    if (folder / "card.json").exists():
        return
    train_set, test_set = load(training)
    before = rows[-1]["seconds"] if rows else 0.0
    room(FILES * sum(value.nbytes for value in build(training).state_dict().values()))  # before the first round
    for step in run_training(training, train_set, test_set, device=device, start=start, should_stop=should_stop):
        progress = replace(step, seconds=before + step.seconds)
        if progress.weights is not None:
            number = round(progress.done)
            if number in STAGES and number < training.rounds:
                (folder / f"{number}.safetensors").write_bytes(pack(progress.weights, dtype=torch.float16))
            rows.append({"round": number, "loss": progress.loss, "accuracy": progress.accuracy, "seconds": round(progress.seconds, 1)})
            write(folder / "metrics.json", {"training": training.model_dump(), "rounds": rows})
            states = enumerate(progress.client_states)
            carried = {CARRIED.format(client) + name: value for client, state in states for name, value in state.items()}
            packed = pack({**progress.weights, **carried}, rounds=number)
            room(2 * len(packed))  # beside the previous state, and as the last stage
            write(folder / STATE, packed)
        yield progress
    if len(rows) == training.rounds:
        with suppress(StoppedError):
            finish(training, folder, train_set, test_set.to(device), commit=commit, should_stop=should_stop)


@contextmanager
def locked(folder: Path, should_stop: Callable[[], bool]) -> Iterator[None]:
    """Lock a training's folder inside the block, and wait up to PATIENCE for another process to leave it. Raises CheckpointError."""
    deadline = time.monotonic() + PATIENCE
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if should_stop() or time.monotonic() > deadline:
                    remedy = "Wait until it has ended, then ask again"
                    raise CheckpointError(f"Another process is at this training, in {folder}. {remedy}.") from None
                time.sleep(0.2)
                continue
            if _is_at(lock.fileno(), folder):
                yield
                return


def _is_at(lock: int, folder: Path) -> bool:
    """Return whether an open lock file is still the lock file of the folder: with a deleted training, folder and lock are deleted."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), (folder / "lock").stat())
    return False


def resume(training: Training, folder: Path) -> tuple[State | None, list[dict[str, Any]]]:
    """Return the state of a training (None if it has ended or not begun) and its rows of metrics.json. Raises CheckpointError."""
    state, metrics = folder / STATE, folder / "metrics.json"
    if not metrics.exists():
        return None, []
    try:
        stored = json.loads(metrics.read_text())
        same = Training.model_validate(stored["training"]).model_copy(update={"max_seconds": training.max_seconds}) == training
        rows = stored["rounds"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{metrics} is damaged ({error}). Delete {folder} and begin anew.") from None
    if not same:
        raise CheckpointError(f"{folder} holds another training. Name another folder, or delete it.")
    if (folder / "card.json").exists():
        return None, rows
    if not state.exists():  # the process was killed between the two writes of the first round
        return None, []
    weights, client_states = read_state(state, training.clients)
    with safe_open(state, "pt") as file:
        done = int(file.metadata()["rounds"])
    return State(done, weights, client_states), rows[:done]


def read_state(file: Path, clients: int) -> tuple[Params, tuple[ClientState, ...]]:
    """Return the model's weights and the state of every client from the file of a training's state."""
    tensors = unpack(file.read_bytes(), str(file))
    heads = [CARRIED.format(client) for client in range(clients)]
    client_states = tuple({name.removeprefix(head): tensors.pop(name) for name in list(tensors) if name.startswith(head)} for head in heads)
    return tensors, client_states


def finish(
    training: Training,
    folder: Path,
    train_set: Pictures,
    test_set: Pictures,
    *,
    commit: str,
    should_stop: Callable[[], bool],
) -> None:
    """Write the final weights and the model card of a training, with an accuracy for each stored file of weights, and remove its state.

    Raises:
        StoppedError: `should_stop()` returned True. The training is not finished, and goes on here when it is started again.
    """
    model = build(training).to(test_set.x.device)
    last, _ = read_state(folder / STATE, training.clients)
    (folder / f"{training.rounds}.safetensors").write_bytes(pack(last))
    stages = []
    for number in sorted({*STAGES, training.rounds}):
        if number > training.rounds:
            continue
        data = (folder / f"{number}.safetensors").read_bytes()
        state = unpack(data, folder.name)
        put(model, state, folder.name)
        dtype = next(str(value.dtype) for value in state.values() if value.is_floating_point())
        stages.append(
            {
                "rounds": number,
                "file": f"{number}.safetensors",
                "sha256": hashlib.sha256(data).hexdigest(),
                "accuracy": accuracy(model, test_set, should_stop),
                "dtype": dtype.removeprefix("torch."),
            }
        )
    card = {
        "model": training.model.id,
        "fields": describe().models.get(training.model.id).resolve(training.model.fields),
        "data": training.data,
        "image_shape": training.image_shape,
        "num_classes": training.num_classes,
        "recipe": recipe(training),
        "training": training.model_dump(),
        "pictures": len(train_set.y),
        "commit": commit,
        "torch": importlib.metadata.version("torch"),
        "stages": stages,
        "privacy": privacy_facts(training, len(train_set.y)),
    }
    write(folder / "card.json", card)
    (folder / STATE).unlink()


def recipe(training: Training) -> str:
    """Describe a training in one sentence."""
    trainers = "centrally" if training.clients == 1 else f"by {training.clients} clients ({training.partition})"
    trainers += f", {training.local_epochs} epochs a round" if training.local_epochs > 1 else ""
    sgd = f"SGD, Nesterov momentum {training.momentum:g}" if training.momentum else "SGD"
    words = f"{training.rounds} rounds {trainers}, {'Adam' if training.optimiser == 'adam' else sgd}"
    words += f", learning rate {training.rate:g} ({training.schedule}), batch {training.batch}"
    words += f", weight decay {training.decay:g}, {'random shifts and mirroring' if training.augment else 'no augmentation'}"
    words += f", the server steps by {training.server_rate:g}" if training.server_rate != 1 else ""
    for part in training.defenses:
        words += f", protected by {part.id} ({', '.join(f'{name} {value}' for name, value in part.fields.items())})"
    return f"{words}, {training.precision} arithmetic, seed {training.seed}"


def commit_of_code() -> str:
    """Return the commit of the running code; "unknown" outside a checkout."""
    if INSTALLED:  # git would name the commit of another project, in which the environment lies
        return "unknown"
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
