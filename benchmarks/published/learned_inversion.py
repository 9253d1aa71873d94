"""Learning to Invert beside Inverting Gradients, behind protections of a single gradient: MNIST, LeNet.

The untrained LeNet of seed 1, one digit in a gradient, the first 10 test pictures. For each protection a network is trained (10,000
training pictures through the phone, 7,000 for Soteria, 20 times over) and asked once; Inverting Gradients searches 300 steps, knowing the
protection (the usual strategy), labels found. Beside: a network trained without the protection (naive), and the mean training picture. PSNR
in dB is that of the mean squared error over the ten. Published (Wu et al. 2023, CIFAR-10): LTI far ahead behind signs, pruning and noise.
Left out: PRECODE, which puts something of its own into the model of every phone, so that no network can be trained beforehand.

    python benchmarks/published/learned_inversion.py [--pictures 10000] [--epochs 20] [--digits 10]    about 25 minutes on one core, six
                                                                                 of them for Soteria; goes on where it stopped
"""

import argparse
import math
import statistics
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, finish, say, table

from leakage.data.inverters import InverterCard, read_inverter
from leakage.engine.inverter import Inverter
from leakage.spec.experiment import Part, Picture
from leakage.spec.tasks import InverterTraining
from leakage.workers import plugin_catalog
from leakage.workers.inverter_adapter import TESTED, pictures_of, train_inverter, updates
from leakage.workers.learned_adapter import load_inverter

PROTECTIONS: dict[str, Part | None] = {
    "none": None,
    "AdaDefense": Part(id="ada_defense"),
    "noise 0.1": Part(id="gaussian_noise", fields={"scale": 0.1}),
    "noise 1": Part(id="gaussian_noise", fields={"scale": 1.0}),
    "pruning 99 %": Part(id="pruning", fields={"fraction": 0.99}),
    "8 bits": Part(id="low_precision"),
    "clipping": Part(id="clipping"),
    "MinMax sampling": Part(id="minmax_sampling"),
    "PercentilePrivacy": Part(id="percentile_privacy"),
    "SVTPrivacy": Part(id="svt_privacy"),
    "Flower local DP": Part(id="flower_local_dp"),
    "Soteria": Part(id="soteria"),
    "DP-SGD": Part(id="dp_sgd"),
    "Outpost": Part(id="outpost"),
    "ATS": Part(id="ats"),
}
FEWER = {"Soteria": 7_000}  # training pictures of what would else take over six minutes: Soteria's phone differentiates 588 features

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=10_000)
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--digits", type=int, default=10)
given = parser.parse_args()
torch.set_num_threads(1)
known, results_file = plugin_catalog.describe(), Book("learned_inversion", __doc__, brief=True)


def decibels(error: float) -> float:
    """Return the PSNR of a mean squared error on [0, 1]."""
    return -10 * math.log10(error)


def ask(inverter: Inverter, task: InverterTraining) -> float:
    """Return the network's mean squared error on the digits, sent behind the task's protections."""
    _, (x, y) = pictures_of(task)
    x, y = x[: given.digits], y[: given.digits]
    answers = [inverter(one)[0] for one in updates(task, (x, y), first_seed=TESTED, should_stop=lambda: False)]
    return float((torch.stack(answers) - x).square().mean())


def search(task: InverterTraining) -> float:
    """Return the mean squared error of Inverting Gradients by an adaptive attacker."""
    attack = Part(id="inverting_gradients", fields={"steps": 300})
    alone = [
        task.experiment.model_copy(update={"pictures": (Picture(source="mnist", id=str(n)),), "attack": attack})
        for n in range(given.digits)
    ]
    return statistics.mean(finish(experiment).mse for experiment in alone)


def trained(task: InverterTraining) -> tuple[Inverter, InverterCard, float]:
    """Return a network trained behind the task's protections, its card, and the seconds of its training."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for _ in train_inverter(task, Path(folder) / "own"):
            pass
        card = read_inverter(Path(folder) / "own" / "card.json")
        return load_inverter(card), card, time.monotonic() - began


def measured(task: InverterTraining) -> dict[str, Any]:
    """Train behind the task's protections, and ask everybody."""
    own, card, seconds = trained(task)
    return {
        "trained behind it": ask(own, task),
        "trained without it": ask(naive(), task),
        "Inverting Gradients": search(task),
        "held-out": card.mse,
        "mean picture": card.mse_mean,
        "seconds": seconds,
    }


@cache
def naive() -> Inverter:
    """Return the network that was trained as long without any protection."""
    return trained(InverterTraining(pictures=given.pictures, epochs=given.epochs).resolve(known))[0]


rows = []
for words, part in PROTECTIONS.items():
    pictures = min(given.pictures, FEWER.get(words, given.pictures))
    task = InverterTraining(pictures=pictures, epochs=given.epochs, defenses=(part,) if part else ()).resolve(known)
    asked = {"protection": words, "pictures": pictures, "epochs": given.epochs, "digits": given.digits}
    found = results_file.known(asked)
    if found is None:
        found = measured(task)
        results_file.runs.append({**asked, "result": found})
        results_file.save()
        say(f"{words}: {found}")
    scores = [f"{decibels(value):.1f}" for name, value in found.items() if name != "seconds"]
    rows.append([words, *scores, f"{found['seconds']:.0f}"])
say()
table(
    ["behind", "LTI trained behind it", "LTI trained without", "Inverting Gradients", "LTI, 500 held-out", "mean picture", "training (s)"],
    rows,
)
results_file.save()
