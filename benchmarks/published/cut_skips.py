"""ResNet18 with the skip of block 3 or 8 cut: accuracy, and Inverting Gradients on it (Zhu and Blaschko 2021, figure 4).

Published, width 16, 200 epochs of all 50,000 CIFAR-10 pictures: index, accuracy, MSE of the original -1.0e4, 89.36 %, 0.12; skip 3 cut
-7.8e3, 89.46 %, 0.32; skip 8 cut -1.0e4, 89.75 %, 0.15. MSE in the model's normalised units, +- the standard error; "grey" is that of a
grey picture. "as initialised": the same attack before the training. The index is that of `networks/rank.py` for this width.
Differs from the paper: 8 or 24 epochs of the first 10,000 pictures (shifts and mirroring), two trainings of 8 epochs with other weights at
the start, the first in bfloat16, the second in float32; CIFAR-10's first test pictures; 1,000 or 4,000 steps, one start.
Weights are kept in the system's folder for temporary files, so that a training that was stopped goes on.

Found, on three pictures, after 8 epochs and 4,000 steps: the two trainings give MSE 0.58 and 0.21 for the original, 0.21 and 0.40 with
skip 3 cut, 0.14 and 0.32 with skip 8 cut. They are too far apart to tell the order of the three; after 24 epochs it is 0.40, 0.81, 0.22.
After 1,000 steps the first original is worse than a grey picture (1.38 and 1.13). Cutting skip 3 or 8 costs 1.3 and 1.2 points of accuracy
after 8 epochs, 0.6 and 0.5 after 24 (one training); in the paper it costs nothing after 200.

    python benchmarks/published/cut_skips.py [--pictures 3]        two hours on one core; goes on where it stopped
"""

import argparse
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, say, table

from leakage.engine.core import Observation, generator
from leakage.engine.federated_training import Pictures, State, accuracy
from leakage.engine.observe import observe, ready
from leakage.evaluation.metrics import mse_norm
from leakage.networks.grammar import parse, unroll
from leakage.networks.rank import analyse
from leakage.networks.templates import TEMPLATES
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.tasks import Training
from leakage.workers import plugin_catalog
from leakage.workers.adapter import federation, network, plugin
from leakage.workers.private_pictures import load as load_pictures
from leakage.workers.training_adapter import build, load, train

WIDTH, EPOCHS, LONGER, PICTURES, STEPS = 16, 8, 24, 10_000, 1000
CUTS = {0: "-1.0e4, 89.36 %, 0.12", 3: "-7.8e3, 89.46 %, 0.32", 8: "-1.0e4, 89.75 %, 0.15"}  # block without its skip -> published
PRECISION: dict[int, Literal["float32", "bfloat16"]] = {1: "bfloat16", 2: "float32"}  # by the seed of the training
WATCHED = 1000  # test pictures after each epoch; all 10,000 after the last
CPU = torch.device("cpu")


class Arm(NamedTuple):
    """Attacks on networks whose skips are cut."""

    steps: int
    epochs: int = EPOCHS
    """0: as initialised."""
    seed: int = 1
    """Of the training."""


ARMS = (
    Arm(STEPS),
    Arm(STEPS, epochs=0),
    Arm(4 * STEPS),
    Arm(4 * STEPS, seed=2),
    Arm(4 * STEPS, epochs=LONGER, seed=2),
)


def model_of(cut: int) -> Part:
    """Return the ResNet18 whose block `cut` has no skip."""
    return Part(id="resnet", fields={"width": WIDTH, "cut": cut})


def trained(cut: int, epochs: int, seed: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the weights after the training, and the accuracy on all test pictures and the seconds that the epochs took."""
    recipe = Training(
        model=model_of(cut),
        data="cifar10",
        pictures=PICTURES,
        rounds=epochs,
        rate=0.1,
        augment=True,
        precision=PRECISION[seed],
        seed=seed,
    ).resolve(plugin_catalog.describe())
    file = Path(tempfile.gettempdir()) / f"cut_skips_{WIDTH}_{epochs}_{PICTURES}_{cut}_{seed}.pt"
    held: dict[str, Any] = torch.load(file) if file.exists() else {"rounds": 0, "weights": {}, "seconds": 0.0}
    pictures, tests = load(recipe)
    if held["rounds"] < epochs:
        start = State(held["rounds"], held["weights"], ({},)) if held["rounds"] else None
        few, before, begun = Pictures(tests.x[:WATCHED], tests.y[:WATCHED]), held["seconds"], time.process_time()
        for word in train(recipe, pictures, few, device=CPU, start=start):
            if word.weights is not None:
                spent = before + time.process_time() - begun
                held = {"rounds": round(word.done), "weights": dict(word.weights), "seconds": spent}
                torch.save(held, file)
                say(f"cut {cut}, epoch {held['rounds']}: loss {word.loss:.3f}, {word.accuracy:.1%} of {WATCHED} test pictures")
    model = build(recipe)
    model.load_state_dict(held["weights"])
    return held["weights"], {"accuracy": accuracy(model.eval(), tests), "training seconds": round(held["seconds"])}


def attack_of(steps: int) -> Part:
    """Return the attack."""
    return Part(id="inverting_gradients", fields={"steps": steps, "tv_weight": 0.01})


def seen_of(cut: int, number: int, weights: dict[str, Tensor]) -> tuple[Observation, Tensor]:
    """Return what the server holds of one test picture, and the picture (1, C, H, W); without weights, of the untrained network."""
    shown = Picture(source="cifar10", id=str(number))
    asked = Experiment(pictures=(shown,), model=model_of(cut), attack=attack_of(STEPS)).resolve(plugin_catalog.describe())
    x, y = load_pictures(asked, {})
    net = network(asked, (3, 32, 32))
    if weights:
        net.load_state_dict(weights)
    net = ready(net, federation(asked), x, batch_norm="eval")
    return observe(net, x, y, federation(asked), num_classes=10), x


def attacked(cut: int, weights: dict[str, Tensor], count: int, steps: int) -> dict[str, Any]:
    """Return the errors of all pictures, in the model's normalised units, and those of a grey picture."""
    begun, scenes = time.process_time(), [seen_of(cut, number, weights) for number in range(count)]
    answers: dict[int, Tensor] = {}
    attack = plugin("attack", attack_of(steps))
    for place, moment in attack.run_batched([seen for seen, _ in scenes], [generator(1 + place, "attack") for place in range(count)]):
        answers[place] = moment.x
    std = scenes[0][0].scale[1]
    errors = [float(mse_norm(answers[place].detach(), x, std)) for place, (_, x) in enumerate(scenes)]
    grey = [float(mse_norm(torch.full_like(x, 0.5), x, std)) for _, x in scenes]
    return {"mse": errors, "grey": grey, "seconds": round(time.process_time() - begun)}


def index_of(cut: int) -> int | None:
    """Return the index of rank analysis for this width."""
    text = TEMPLATES["ResNet18, width 16" + (f", skip {cut} cut" if cut else "")]
    narrow = re.sub(r"(@|block )(\d+)", lambda found: f"{found[1]}{int(found[2]) * WIDTH // 16}", text)
    index = analyse(unroll(parse(narrow), (3, 32, 32), 10)).index
    assert index is not None, "a network with convolutions has one"
    return index


def mean_of(errors: list[float]) -> str:
    """Return the mean, +- its standard error."""
    error = statistics.stdev(errors) / len(errors) ** 0.5 if len(errors) > 1 else 0.0
    return f"{statistics.mean(errors):.3g} +- {error:.2g}"


def main() -> None:
    """Run what is not in the book yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    book, rows = Book("cut_skips", __doc__), []
    for arm in ARMS:
        for cut, published in CUTS.items():
            asked: dict[str, Any] = {"state": "trained" if arm.epochs else "as initialised", "cut": cut, "width": WIDTH}
            asked |= {"pictures": given.pictures, "steps": arm.steps, "seed": arm.seed}
            if arm.epochs:
                asked |= {"epochs": arm.epochs, "training pictures": PICTURES, "precision": PRECISION[arm.seed]}
            found = book.known(asked)
            if found is None:
                weights, facts = trained(cut, arm.epochs, arm.seed) if arm.epochs else ({}, {})
                found = {**facts, **attacked(cut, weights, given.pictures, arm.steps)}
                book.runs.append({**asked, "result": found})
                book.save()
                say(f"{asked}: {found}")
            right = f"{found['accuracy']:.1%}" if "accuracy" in found else ""
            spent = found["seconds"] + found.get("training seconds", 0)
            settings = arm.epochs, arm.seed, arm.steps, cut or "none", index_of(cut)
            rows.append([*settings, right, len(found["mse"]), mean_of(found["mse"]), statistics.mean(found["grey"]), published, spent])
    say()
    table(["epochs", "seed", "steps", "cut", "index", "right", "pictures", "MSE", "grey", "published", "CPU seconds"], rows)
    book.save()


if __name__ == "__main__":
    main()
