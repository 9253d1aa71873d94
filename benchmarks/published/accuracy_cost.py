"""The accuracy cost of each protection: LeNet on MNIST, three clients with random parts of the data, federated averaging.

Zhu et al. 2019, section 5 (on CIFAR-100, 76.3 % without): Gaussian noise of 1e-4, 1e-3, 1e-2 and 1e-1 leaves 75.6, 73.3, 45.3 and at
most 1 %, fp16 76.1 and int8 53.7 %. Hu et al. 2024, table 1: AdaDefense costs LeNet on MNIST 0.34 points.
A stand-in of AdaDefense has a step in it (0.001 a round), or needs one of the server (`server_rate`): both ways are here, and FedAvg for as
many rounds; also on LeNet with ReLU and PyTorch's first weights, which are so small that steps of 0.001 get somewhere.
Soteria takes a pass for every input of the last layer, so it learns from fewer pictures, and so does the training that it is compared to.
Fewer than all 60,000 pictures are no cheaper way for the others: with 20,000 a plain training ends at 93, 75 and 20 % by three seeds,
because LeNet with sigmoid learns nothing for some hundred steps and then suddenly all; noise only moves that moment.

Epsilon of each training stands beside its accuracies (`workers.training_adapter.privacy`); --epsilon writes it into a table that has none.

    python benchmarks/published/accuracy_cost.py [--seeds 3] [--plan]        an hour of one core a seed; --plan: only say how long
    python benchmarks/published/accuracy_cost.py --epsilon                   trains nothing
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import ROOT, say, table

from leakage.engine.fed_client import FedClient
from leakage.engine.federated_training import Pictures, TrainingError, local_steps, partition
from leakage.spec.experiment import Part
from leakage.spec.tasks import Training
from leakage.workers import plugin_catalog
from leakage.workers.training_adapter import build, load, privacy, protections, recipe_of, train

RECIPE = Training(
    model=Part(id="lenet"), data="mnist", clients=3, pictures=60000, rounds=6, batch=64, rate=0.3, decay=0, max_seconds=24 * 3600
)
LONG = RECIPE.model_copy(update={"pictures": 4000, "rounds": 100})  # AdaDefense: a round moves a weight by 0.001 or so
NONSMOOTH = LONG.model_copy(update={"model": Part(id="lenet", fields={"activation": "relu", "initialisation": "default"}), "rate": 0.05})
SLOW = NONSMOOTH.model_copy(update={"pictures": 200, "rounds": 6, "batch": 4})  # Soteria: a pass for every input of the last layer, 588
TIMED = 5  # local steps for an estimate
SCALES = (1e-4, 1e-3, 1e-2, 1e-1)  # of noise, as published
STACKS: list[tuple[Part, ...]] = [
    (),
    *((Part(id=name, fields={"scale": scale}),) for name in ("gaussian_noise", "laplacian_noise") for scale in SCALES),
    *((Part(id="pruning", fields={"fraction": share}),) for share in (0.3, 0.7, 0.9, 0.99)),
    *((Part(id="pruning", fields={"fraction": share, "feedback": True}),) for share in (0.9, 0.99)),
    *((Part(id="pruning", fields={"fraction": 0.9, "scope": scope}),) for scope in ("whole gradient", "random")),
    *((Part(id="low_precision", fields={"number": number}),) for number in ("fp16", "bf16", "int8")),
    (Part(id="low_precision", fields={"rounding": "stochastic"}),),
    *((Part(id="clipping", fields={"bound": bound}),) for bound in (4.0, 1.0, 0.1)),
    (Part(id="clipping", fields={"bound": 0.1, "scope": "each layer"}),),
    *((Part(id="minmax_sampling", fields={"ratio": ratio}),) for ratio in (0.2, 0.05, 0.01)),
    *((Part(id="outpost", fields={"noise_base": noise}),) for noise in (0.08, 0.8)),
    (Part(id="outpost", fields={"decay": 0.0}),),
    *((Part(id="dp_sgd", fields={"noise_multiplier": noise}),) for noise in (0.0, 0.1, 1.0)),
    (Part(id="fed_cdp"),),
    (Part(id="fed_cdp", fields={"noise_multiplier": 0.05}),),
    (Part(id="fed_cdp", fields={"bound": 6.0, "last_bound": 2.0}),),
    (Part(id="ats"),),
]
STAND_IN = Part(id="ada_defense")
IN_CODE = [Part(id="ada_defense", fields={"variant": "as in the code", "rule": rule}) for rule in ("adam", "adagrad")]
ARMS = [
    *(RECIPE.model_copy(update={"defenses": stack}) for stack in STACKS),
    *(RECIPE.model_copy(update={"defenses": (STAND_IN,), "server_rate": rate}) for rate in (1.0, 0.03, 0.01)),
    LONG,
    *(LONG.model_copy(update={"defenses": (STAND_IN,), "server_rate": rate}) for rate in (0.003, 0.01)),
    *(LONG.model_copy(update={"defenses": (stand_in,)}) for stand_in in IN_CODE),
    NONSMOOTH,
    NONSMOOTH.model_copy(update={"defenses": (IN_CODE[0],)}),
    SLOW,
    *(SLOW.model_copy(update={"defenses": (Part(id="soteria", fields={"fraction": share}),)}) for share in (0.1, 0.6)),
]

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--plan", action="store_true")
parser.add_argument("--epsilon", action="store_true", help="train nothing: write epsilon beside the accuracies that are there")
given = parser.parse_args()
torch.set_num_threads(1)
CPU = torch.device("cpu")
FILE = ROOT / "benchmarks" / "results" / "accuracy_cost.json"  # started again, this goes on where it was stopped
SHOWN = ROOT / "assets" / "accuracy_cost.json"  # what the pages show: all of it, once every row has its seeds
train_set, test_set = load(RECIPE)
known = plugin_catalog.describe()
recipe = RECIPE.resolve(known).model_dump(exclude={"defenses", "server_rate", "seed", "max_seconds", "version"})
kept = json.loads(FILE.read_text()) if FILE.exists() else {}
rows: list[dict[str, Any]] = [{"model": recipe["model"], **row} for row in kept["rows"]] if kept.get("recipe") == recipe else []


def row_of(arm: Training) -> dict[str, Any]:
    """Return the row of a variant; make it if there is none."""
    with_defaults = arm.resolve(known)
    asked: dict[str, Any] = {"model": with_defaults.model.model_dump(), "defenses": [part.model_dump() for part in with_defaults.defenses]}
    asked |= {"rounds": arm.rounds, "server_rate": arm.server_rate, "pictures": len(first(arm).y), "batch": arm.batch}
    for row in rows:
        if {name: row[name] for name in asked} == asked:
            row |= {} if "epsilon" in row else epsilon_of(arm, asked)
            return row
    rows.append({**asked, "accuracy": [], "curves": [], "seconds": [], **epsilon_of(arm, asked)})
    return rows[-1]


def first(arm: Training) -> Pictures:
    """Return the training pictures."""
    return Pictures(train_set.x[: arm.pictures], train_set.y[: arm.pictures]) if arm.pictures else train_set


def words(arm: Training) -> str:
    """Return the name of a variant for a reader."""
    parts = [f"{part.id} {' '.join(f'{name} {value}' for name, value in part.fields.items())}".strip() for part in arm.defenses]
    return "; ".join(
        [
            *(parts or ["none"]),
            *([" ".join(str(value) for value in arm.model.fields.values())] if arm.model.fields else []),
            *([f"server {arm.server_rate:g}"] if arm.server_rate != 1 else []),
            f"{arm.rounds} rounds of {len(first(arm).y):,} pictures",
        ]
    )


def estimate(arm: Training) -> float:
    """Estimate the seconds of the local steps on one core."""
    mine = partition(first(arm).y, recipe_of(arm))[0]
    steps: Iterator[object] = local_steps(FedClient(build(arm), recipe_of(arm), protections(arm)), train_set, mine, round_number=0)
    next(steps)
    began = time.process_time()
    taken = sum(1 for _ in islice(steps, 1 if arm.defenses and arm.defenses[0].id == "soteria" else TIMED))
    return (time.process_time() - began) / taken * len(mine) * arm.clients / arm.batch * arm.local_epochs * arm.rounds


def measure(arm: Training, row: dict[str, Any]) -> None:
    """Train it with the next seed and keep the accuracy after every round. Weights beyond all numbers name nothing right."""
    began, curve = time.perf_counter(), list[float]()
    try:
        for word in train(arm.model_copy(update={"seed": len(row["accuracy"]) + 1}), first(arm), test_set, device=CPU):
            if word.accuracy is not None:
                curve.append(word.accuracy)
    except TrainingError as error:
        say(str(error))
        curve.append(0.0)
    row["accuracy"].append(curve[-1])
    row["curves"].append(curve)
    row["seconds"].append(round(time.perf_counter() - began))


def epsilon_of(training: Training, row: dict[str, Any]) -> dict[str, Any]:
    """Return epsilon of the training of a row; nothing if no protection promises any."""
    bound = privacy(training, row["pictures"])
    return {"epsilon": bound.model_dump()} if bound else {}


if given.epsilon:
    shown = json.loads(SHOWN.read_text())
    for row in shown["rows"]:
        asked = {name: row[name] for name in ("model", "defenses", "rounds", "batch", "server_rate")}
        row |= epsilon_of(Training(**{**shown["recipe"], **asked, "pictures": 0}), row)
    SHOWN.write_text(json.dumps(shown, indent=1) + "\n")
    sys.exit()
hours = 0.0
for arm in ARMS:
    todo = given.seeds - len(row_of(arm)["accuracy"])
    if todo > 0:
        seconds = todo * estimate(arm)
        hours += seconds / 3600
        say(f"{seconds / 60:6.1f} min  {words(arm)}")
say(f"{hours:.1f} hours, and the test pictures after every round")
if given.plan:
    sys.exit()
for seed in range(given.seeds):
    for arm in ARMS:
        row = row_of(arm)
        if len(row["accuracy"]) > seed:
            continue
        measure(arm, row)
        say(f"seed {seed + 1}, {words(arm)}: {row['accuracy'][-1]:.2%}, {row['seconds'][-1]} s")
        found = {"about": __doc__, "recipe": recipe, "rows": [row for row in rows if row["accuracy"]]}
        FILE.write_text(json.dumps(found, indent=1) + "\n")
SHOWN.write_text(FILE.read_text())
say()
alike = [arm.model_copy(update={"defenses": (), "server_rate": 1.0}) for arm in ARMS]
means = [(words(arm), *(statistics.mean(row_of(one)["accuracy"]) for one in (arm, plain))) for arm, plain in zip(ARMS, alike, strict=True)]
table(["protection", "right", "points lost"], [[name, f"{mean:.2%}", f"{100 * (none - mean):.2f}"] for name, mean, none in means])
