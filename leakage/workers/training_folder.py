"""A training from start to finish in a folder of its own: its state after every round, its metrics, its stages and its card."""

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

PATIENCE = 20.0  # seconds in which a training that was told to stop should have left the folder
CARRIED = "memory/{}/"  # before the names of what a client carries, in the state's file
FILES = 3  # the state, its next one while that is written, and the stages: so many times the weights at most
STAGES = (1, 5)  # rounds after which the weights are kept, as float16; and after the last one, as float32


def any_room(_more: int) -> None:
    """Allow any size: a training by hand may fill the whole disk."""


def train(
    training: Training,
    folder: Path,
    *,
    device: torch.device,
    should_stop: Callable[[], bool] = lambda: False,
    room: Callable[[int], None] = any_room,
) -> Iterator[Progress]:
    """Yield progress and keep everything in `folder`; a training that was interrupted there goes on where its last full round ended.

    One that has ended there is only told again. metrics.json holds one row per round. `room` is called before so many bytes more are
    written, and may refuse them. Raises CheckpointError when the folder holds another training.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder, should_stop):
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
    room(FILES * sum(value.nbytes for value in build(training).state_dict().values()))  # sooner than after the first round
    for progress in run_training(training, train_set, test_set, device=device, start=start, should_stop=should_stop):
        word = replace(progress, seconds=before + progress.seconds)
        if word.weights is not None:
            number = round(word.done)
            if number in STAGES and number < training.rounds:
                (folder / f"{number}.safetensors").write_bytes(pack(word.weights, dtype=torch.float16))
            rows.append({"round": number, "loss": word.loss, "accuracy": word.accuracy, "seconds": round(word.seconds, 1)})
            write(folder / "metrics.json", {"training": training.model_dump(), "rounds": rows})
            carried = {
                CARRIED.format(client) + name: value for client, state in enumerate(word.client_states) for name, value in state.items()
            }
            state = pack({**word.weights, **carried}, rounds=number)
            room(2 * len(state))  # beside the one before, and as the last stage
            write(folder / STATE, state)
        yield word
    if len(rows) == training.rounds:
        with suppress(StoppedError):
            finish(training, folder, train_set, test_set.to(device), commit=commit, should_stop=should_stop)


@contextmanager
def held(folder: Path, should_stop: Callable[[], bool]) -> Iterator[None]:
    """Lock a training's folder; wait for another training that was just told to stop. Raises CheckpointError."""
    ends = time.monotonic() + PATIENCE
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if should_stop() or time.monotonic() > ends:
                    remedy = "Wait until it has ended, then ask again"
                    raise CheckpointError(f"Another process is at this training, in {folder}. {remedy}.") from None
                time.sleep(0.2)
                continue
            if _is_at(lock.fileno(), folder):
                yield
                return


def _is_at(lock: int, folder: Path) -> bool:
    """Return whether this open lock still lies in the folder: a deleted training takes its folder and lock with it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), (folder / "lock").stat())
    return False


def resume(training: Training, folder: Path) -> tuple[State | None, list[dict[str, Any]]]:
    """Return the state of a training (None if it has ended or not begun) and its rows of metrics.json. Raises CheckpointError."""
    state, metrics = folder / STATE, folder / "metrics.json"
    if not metrics.exists():
        return None, []
    try:
        kept = json.loads(metrics.read_text())
        same = Training.model_validate(kept["training"]).model_copy(update={"max_seconds": training.max_seconds}) == training
        rows = kept["rounds"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{metrics} is damaged ({error}). Delete {folder} and begin anew.") from None
    if not same:
        raise CheckpointError(f"{folder} holds another training. Name another folder, or delete it.")
    if (folder / "card.json").exists():
        return None, rows
    if not state.exists():  # killed within the first round's last moment
        return None, []
    weights, client_states = kept_in(state, training.clients)
    with safe_open(state, "pt") as file:
        done = int(file.metadata()["rounds"])
    return State(done, weights, client_states), rows[:done]


def kept_in(state: Path, clients: int) -> tuple[Params, tuple[ClientState, ...]]:
    """Return the weights in a state's file, and the state of every client."""
    every = unpack(state.read_bytes(), str(state))
    heads = [CARRIED.format(client) for client in range(clients)]
    client_states = tuple({name.removeprefix(head): every.pop(name) for name in list(every) if name.startswith(head)} for head in heads)
    return every, client_states


def finish(
    training: Training,
    folder: Path,
    train_set: Pictures,
    test_set: Pictures,
    *,
    commit: str,
    should_stop: Callable[[], bool],
) -> None:
    """Write the last stage and the card, its accuracies measured on the files as they lie there; the state is no longer needed.

    Raises StoppedError when `should_stop()` returns True: then the training is not finished, and goes on here when it is asked for again.
    """
    model = build(training).to(test_set.x.device)
    last, _ = kept_in(folder / STATE, training.clients)
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
    """Describe the training in one sentence."""
    who = "centrally" if training.clients == 1 else f"by {training.clients} clients ({training.partition})"
    who += f", {training.local_epochs} epochs a round" if training.local_epochs > 1 else ""
    how = "Adam" if training.optimiser == "adam" else f"SGD, Nesterov momentum {training.momentum:g}" if training.momentum else "SGD"
    words = f"{training.rounds} rounds {who}, {how}, learning rate {training.rate:g} ({training.schedule}), batch {training.batch}"
    words += f", weight decay {training.decay:g}, {'random shifts and mirroring' if training.augment else 'no augmentation'}"
    words += f", the server steps by {training.server_rate:g}" if training.server_rate != 1 else ""
    for part in training.defenses:
        words += f", protected by {part.id} ({', '.join(f'{name} {value}' for name, value in part.fields.items())})"
    return f"{words}, {training.precision} arithmetic, seed {training.seed}"


def commit_of_code() -> str:
    """Return the commit of the running code, "unknown" outside a checkout."""
    if INSTALLED:  # git would tell the commit of whatever project the environment lies in
        return "unknown"
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
