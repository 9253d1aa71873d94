"""The commands `train`, which trains a model, and `train-attacker`, which trains a network to undo updates of a model."""

import argparse
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from leakage.data.checkpoints import read
from leakage.data.inverters import inverter_folder, read_inverter
from leakage.settings import settings
from leakage.spec.experiment import parse_as
from leakage.spec.tasks import InverterTraining, Training, parse_training
from leakage.workers import plugin_catalog

log = logging.getLogger("leakage")


def options(commands: Any) -> None:
    """Add the commands `train` and `train-attacker`, with their options, to `commands`, the subparsers action of argparse."""
    again = "train a model; with the same options again, an interrupted training goes on"
    _name_fields(commands.add_parser("train", help=again), Training)
    undo = "train a network to undo updates of one model with protections (Learning to Invert)"
    _name_fields(commands.add_parser("train-attacker", help=undo), InverterTraining)


def _name_fields(command: argparse.ArgumentParser, task: type[BaseModel]) -> None:
    """Add the fields of a training as flags of a command, with model, protections and output folder."""
    for name, about in task.model_fields.items():
        if name not in ("version", "model", "defenses"):
            command.add_argument(f"--{name.replace('_', '-')}", default=argparse.SUPPRESS, help=f"default {about.default}")
    command.add_argument("--model", default="lenet", help="the id of a model, see docs/plugins.md; default lenet")
    command.add_argument("--field", action="append", default=[], metavar="NAME=VALUE", help="a field of the model, for example width=16")
    words = "a protection, for example clipping,bound=1; up to 4, in their order"
    command.add_argument("--defense", action="append", default=[], metavar="ID[,NAME=VALUE...]", help=words)
    command.add_argument("--out", type=Path, help="folder for weights and card; default: one in LEAKAGE_HOME")


def train_here(given: dict[str, Any]) -> None:
    """Train a model as the options `given` say, and log a line for each round."""
    from leakage.engine.devices import best_device
    from leakage.workers.training_folder import train

    training = parse_training(_task_fields(given, Training)).resolve(plugin_catalog.describe())
    folder = given["out"] or settings().checkpoints / training.name
    for progress in train(training, folder, device=best_device(), should_stop=_stop_after(training.max_seconds)):
        if progress.accuracy is not None:
            values = (progress.done, training.rounds, progress.loss, 100 * progress.accuracy, progress.seconds)
            log.info("round %d of %d: loss %.3f, accuracy %.2f %%, %.0f s", *values)
    if not (folder / "card.json").exists():
        raise RuntimeError(f"Stopped after {training.max_seconds} s, as --max-seconds says. The same command goes on from here.")
    if facts := read(folder / "card.json").privacy:
        log.info("%s", facts["words"])
    log.info("Everything is in %s.", folder)


def train_attacker_here(given: dict[str, Any]) -> None:
    """Train a network to undo updates as the options `given` say, and log a line for each epoch."""
    from leakage.workers.inverter_adapter import train_inverter

    task = parse_as(_task_fields(given, InverterTraining), InverterTraining, "an attacker's training").resolve(plugin_catalog.describe())
    folder = given["out"] or inverter_folder(task.name)
    for epoch in train_inverter(task, folder, should_stop=_stop_after(task.max_seconds)):
        line = f"epoch {epoch.done} of {task.epochs}: mean squared error {epoch.loss:.4f}"
        log.info("%s", line if epoch.done else f"{task.pictures} pictures were sent through the phone")
    card = read_inverter(folder / "card.json")
    log.info("On held-out pictures %.4f, the mean picture %.4f. Everything is in %s.", card.mse, card.mse_mean, folder)


def _task_fields(given: dict[str, Any], task: type[BaseModel]) -> dict[str, Any]:
    """Return the options `given` as the fields of a training."""
    fields = {name: value for name, value in given.items() if name in task.model_fields}
    return fields | {"model": _part([given["model"], *given["field"]]), "defenses": [_part(words.split(",")) for words in given["defense"]]}


def _stop_after(seconds: float) -> Callable[[], bool]:
    """Return a `should_stop` that is true once so many seconds have passed."""
    deadline = time.monotonic() + seconds
    return lambda: time.monotonic() > deadline


def _part(words: list[str]) -> dict[str, Any]:
    """Return a plug-in from its id and NAME=VALUE for each field that differs from its default."""
    return {"id": words[0], "fields": {name: _value(text) for name, _, text in (pair.partition("=") for pair in words[1:])}}


def _value(text: str) -> bool | int | float | str:
    """Return the value of a field that a text gives as JSON (bool or number), else the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text
