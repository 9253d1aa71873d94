"""A training from start to finish in a folder of its own: its state after every round, its metrics, its stages and its card."""

import hashlib
import importlib.metadata
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from leakage import catalog
from leakage.checkpoints import STATE, CheckpointError, write
from leakage.engine import train as engine
from leakage.engine.core import Params
from leakage.engine.train import Progress
from leakage.engine.trained import pack, put, unpack
from leakage.settings import ROOT
from leakage.spec import Training

STAGES = (1, 5)  # rounds after which the weights are kept, as float16; and after the last one, as float32


def train(training: Training, folder: Path, *, device: torch.device, pulse: Callable[[], bool] = lambda: False) -> Iterator[Progress]:
    """Yield progress and keep everything in `folder`; a training that was interrupted there goes on where its last full round ended.

    One that has ended there is only told again. metrics.json holds one row per round. Raises CheckpointError when the folder holds
    another training.
    """
    commit = commit_of_code()  # of the code as it was loaded
    start, rows = resume(training, folder)
    for row in rows:
        yield Progress(row["round"], row["loss"], row["seconds"], row["accuracy"])
    if (folder / "card.json").exists():
        return
    train_set, test_set = engine.load(training)
    folder.mkdir(parents=True, exist_ok=True)
    before = rows[-1]["seconds"] if rows else 0.0
    for progress in engine.train(training, train_set, test_set, device=device, start=start, pulse=pulse):
        word = Progress(progress.done, progress.loss, before + progress.seconds, progress.accuracy, progress.weights)
        if word.weights is not None:
            number = round(word.done)
            if number in STAGES and number < training.rounds:
                (folder / f"{number}.safetensors").write_bytes(pack(word.weights, dtype=torch.float16))
            rows.append({"round": number, "loss": word.loss, "accuracy": word.accuracy, "seconds": round(word.seconds, 1)})
            _replace(folder / "metrics.json", json.dumps({"training": training.model_dump(), "rounds": rows}, indent=1).encode())
            _replace(folder / STATE, pack(word.weights, rounds=number))
        yield word
    if len(rows) == training.rounds:
        finish(training, folder, train_set=train_set, test_set=test_set, device=device, commit=commit)


def resume(training: Training, folder: Path) -> tuple[tuple[int, Params] | None, list[dict[str, Any]]]:
    """Rounds done, their weights, and the rows of metrics.json so far; None and no rows where nothing was begun."""
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
    weights = unpack(state.read_bytes(), str(state))
    done = _rounds(state)
    return (done, weights), rows[:done]


def finish(
    training: Training, folder: Path, *, train_set: engine.Pictures, test_set: engine.Pictures, device: torch.device, commit: str
) -> None:
    """Write the last stage and the card, its accuracies measured on the files as they lie there; the state is no longer needed."""
    model = engine.build(training).to(device)
    last = unpack((folder / STATE).read_bytes(), STATE)
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
                "accuracy": engine.accuracy(model, test_set.to(device)),
                "dtype": dtype.removeprefix("torch."),
            }
        )
    card = {
        "model": training.model.id,
        "fields": catalog.describe().get("model", training.model.id).resolve(training.model.fields),
        "data": training.data,
        "image_shape": training.image_shape,
        "num_classes": training.num_classes,
        "recipe": recipe(training),
        "training": training.model_dump(),
        "pictures": len(train_set.y),
        "commit": commit,
        "torch": importlib.metadata.version("torch"),
        "stages": stages,
    }
    write(folder, card)
    (folder / STATE).unlink()


def recipe(training: Training) -> str:
    """The training in one sentence."""
    who = (
        "centrally"
        if training.clients == 1
        else f"by {training.clients} clients ({training.partition}, {training.local_epochs} epochs a round)"
    )
    how = f"SGD, Nesterov momentum {training.momentum:g}" if training.optimiser == "sgd" else "Adam"
    words = f"{training.rounds} rounds {who}, {how}, learning rate {training.rate:g} ({training.schedule}), batch {training.batch}"
    words += f", weight decay {training.decay:g}, {'random shifts and mirroring' if training.augment else 'no augmentation'}"
    return f"{words}, {training.precision} arithmetic, seed {training.seed}"


def commit_of_code() -> str:
    """The commit of the code at work, "unknown" outside a checkout."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def _rounds(state: Path) -> int:
    """What `pack` wrote into the file's head."""
    with state.open("rb") as file:
        head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return int(head["__metadata__"]["rounds"])


def _replace(path: Path, data: bytes) -> None:
    fresh = path.with_name(f"{path.name}.tmp")
    fresh.write_bytes(data)
    fresh.replace(path)
