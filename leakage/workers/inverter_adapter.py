"""The training of an attacker's network from an InverterTraining, which is plain data: examples, network and card in a folder."""

import hashlib
import importlib.metadata
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from leakage.data.checkpoints import write
from leakage.data.images import datasets, training_pictures
from leakage.data.inverters import WEIGHTS
from leakage.engine.client import Gradient, weights_of
from leakage.engine.core import Params
from leakage.engine.inverter import Epoch, Inverter, Recipe, Shape, learn, least_error, mean_picture_error, weights_hash
from leakage.engine.observe import ready
from leakage.engine.stopping import StoppedError
from leakage.engine.weights import pack, unpack
from leakage.spec.tasks import InverterTraining
from leakage.workers.adapter import federation, network
from leakage.workers.training_folder import any_room, commit_of_code

HELD_OUT = 500  # test pictures on which the network's error is measured
CHUNK = 64  # clients with one picture and no protection whose gradients are computed at once
TESTED = 10**6  # added to the seeds of protections for test pictures
ANOTHER_MODEL = "{} puts something of its own into the model, so that no two phones have the same. A trained network cannot undo that."

Pictures = tuple[Tensor, Tensor]  # (N, C, H, W) in [0, 1], labels (N,)


def pictures_of(task: InverterTraining) -> tuple[Pictures, Pictures]:
    """Return a task's training pictures, and the first HELD_OUT test pictures, to measure the error. Raises PictureError."""
    train, test = training_pictures(task.data), datasets()[task.data].rows()

    def tensors(rows: Any, count: int) -> Pictures:
        x = torch.from_numpy(rows.pixels[:count].copy()).permute(0, 3, 1, 2).contiguous().float() / 255
        return x, torch.from_numpy(rows.labels[:count].copy()).long()

    return tensors(train, task.pictures), tensors(test, HELD_OUT)


def updates(task: InverterTraining, pictures: Pictures, *, first_seed: int, should_stop: Callable[[], bool]) -> Iterator[Params]:
    """Yield the update of every client; all clients have the same weights, and each has fresh random numbers.

    Args:
        task: the task; each client has `task.batch` of the pictures.
        pictures: the pictures and labels of all clients.
        first_seed: the seed of the first client's random numbers; the next clients have the next seeds.
        should_stop: called for every client.

    Raises:
        StoppedError: `should_stop()` returned True.
    """
    x, y = pictures
    experiment = task.experiment
    model = ready(network(experiment, (x.shape[1], x.shape[2], x.shape[3])), federation(experiment), x[: task.batch])
    weights = {name: value.detach().requires_grad_() for name, value in weights_of(model).items()}
    if not task.defenses and task.batch == 1:
        gradient = Gradient(model)
        for part, labels in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
            if should_stop():
                raise StoppedError
            gradients = gradient.each(weights, part, labels)
            yield from ({name: value[index] for name, value in gradients.items()} for index in range(len(part)))
        return
    for number in range(len(x) // task.batch):
        batch = slice(number * task.batch, (number + 1) * task.batch)
        setting = federation(experiment.model_copy(update={"seed": first_seed + number}))
        yield setting.client(model, should_stop=should_stop)(weights, x[batch], y[batch], {})[0]


def train_inverter(
    task: InverterTraining, folder: Path, *, should_stop: Callable[[], bool] = lambda: False, room: Callable[[int], None] = any_room
) -> Iterator[Epoch]:
    """Train a network that undoes updates, yield every epoch, and write the network's weights and its model card into a folder.

    Args:
        task: the attacked model and its protections, the training pictures, and the shape of the network.
        folder: the folder, which is created.
        should_stop: called between steps.
        room: called with the number of bytes before they are written; it may raise an error.

    Yields:
        Epoch 0 when the updates to learn from are computed, then every epoch of the training.

    Raises:
        StoppedError: `should_stop()` returned True.
        ValueError: a protection changes the model.
    """
    commit, began = commit_of_code(), time.monotonic()
    setting = federation(task.experiment)
    if setting.changes_model:
        raise ValueError(ANOTHER_MODEL.format(task.defenses[0].id))
    train, test = pictures_of(task)
    victim = victim_of(task, train[0][: task.batch])
    shape = Shape(
        entries=sum(value.numel() for value in victim.values()),
        features=task.features,
        hidden=task.hidden,
        pictures=(task.batch, *task.image_shape),
        seed=task.seed,
    )
    room(sum(value.nbytes for value in shape.network().state_dict().values()))  # before the training; float16 takes half of it
    features = torch.stack([shape.project(update) for update in updates(task, train, first_seed=task.seed + 1, should_stop=should_stop)])
    yield Epoch(0, float("nan"))
    grouped = in_groups(train[0], task.batch)
    state: Params = {}
    for result in learn(shape, features, grouped, Recipe(task.epochs, task.rate, task.examples), should_stop):
        if isinstance(result, Epoch):
            yield result
        else:
            state = result
    data = pack(state, dtype=torch.float16)
    errors = errors_of(task, Inverter(shape, unpack(data, folder.name), folder.name), test, should_stop=should_stop)
    truth = in_groups(test[0], task.batch)
    room(2 * len(data))
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / WEIGHTS, data)
    write(
        folder / "card.json",
        {
            "victim": weights_hash(victim),
            "model": task.model.model_dump(),
            "checkpoint": task.checkpoint,
            "seed": task.seed,
            "data": task.data,
            "image_shape": task.image_shape,
            "num_classes": task.experiment.num_classes,
            "defenses": [part.model_dump() for part in task.defenses],
            "batch": task.batch,
            "entries": shape.entries,
            "features": shape.features,
            "hidden": shape.hidden,
            "training": task.model_dump(),
            "pictures": len(train[0]),
            "held_out": len(truth) * task.batch,
            "mse": float(errors.mean()),
            "mse_mean": mean_picture_error(train[0], test[0]),
            "mse_of_class": mean_by_class(errors, in_groups(test[1], task.batch), task.experiment.num_classes),
            "seconds": round(time.monotonic() - began, 1),
            "commit": commit,
            "torch": importlib.metadata.version("torch"),
            "sha256": hashlib.sha256(data).hexdigest(),
        },
    )


def victim_of(task: InverterTraining, x: Tensor) -> Params:
    """Return the weights of the attacked model: the network learns to undo updates of these weights."""
    return weights_of(ready(network(task.experiment, task.image_shape), federation(task.experiment), x))


def in_groups(values: Tensor, batch: int) -> Tensor:
    """Reshape (N, ...) to (N / batch, batch, ...); a remainder is left out."""
    whole = len(values) // batch * batch
    return values[:whole].view(-1, batch, *values.shape[1:])


def errors_of(task: InverterTraining, inverter: Inverter, test: Pictures, *, should_stop: Callable[[], bool] = lambda: False) -> Tensor:
    """Return the mean squared error of the reconstruction of each test picture, (N, B) for N updates of B pictures."""
    answers = torch.stack([inverter(update) for update in updates(task, test, first_seed=TESTED + task.seed, should_stop=should_stop)])
    return least_error(answers, in_groups(test[0], task.batch))


def mean_by_class(errors: Tensor, labels: Tensor, classes: int) -> list[float]:
    """Return the mean of errors (N, B) for each label (N, B), over `classes` labels; -1 for a label that does not occur."""
    return [round(float(errors[labels == label].mean().nan_to_num(-1)), 6) for label in range(classes)]
