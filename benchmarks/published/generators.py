"""Attacks with a generator beside Inverting Gradients under noise, their ranks in a line-up, and pictures the generator never saw.

digits: the first five MNIST test pictures, untrained LeNet (weights U(-0.5, 0.5)), labels granted, Gaussian noise of 0, 0.3 and 1 times
the gradient's root mean square. Inverting Gradients with the best of five weights of the total variation, GGL (stage 0), GIFD after every
stage, the stage that its rule keeps, and as a control a cat and a line of print, which the generator never saw. Beside the answer: how near
it is to the nearest of the 60,000 training pictures of the generator, and how near the truth is: whether it remembers.
line-up: 20 MNIST test pictures at noise 0.3: GGL's rank of the true picture among 100 test pictures, by pixels; and from a gradient whose
entries are shuffled within every tensor, which says nothing.
grnn: GRNN on the first five CIFAR-10 test pictures with three seeds, 2,000 steps.
untrained: two of these by both generators that were never trained, CI-Net and GRNN, and by Inverting Gradients; 300, 1,000 and 2,000 steps.
faces: with the package gan-face-generate, the astronaut (64 x 64, color) and five Olivetti faces (gray), a network of three convolutions
with ReLU, noise 0.3 and 1. Without the package: left out.

    python benchmarks/published/generators.py [--parts digits line-up grnn untrained faces]      about 35 minutes on one core, resumable
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import Book, say, table
from scipy.io import loadmat
from torch import Tensor

from leakage.data.datasets import data_folder, datasets, training_pictures
from leakage.data.generators import MissingGeneratorError, find_card
from leakage.engine.core import Attack, Observation, Snapshot, generator
from leakage.engine.whole_distance import flatten
from leakage.evaluation.lineup import Origin, draw, pixel_ranks
from leakage.evaluation.metrics import mse, psnr
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.workers.adapter import observe, plugin
from leakage.workers.generator_adapter import with_generator
from leakage.workers.private_pictures import load

PARTS = ("digits", "line-up", "grnn", "untrained", "faces")
WEIGHTS = (0.0001, 0.001, 0.01, 0.1, 1.0)  # of the total variation
NOISES = (0.0, 0.3, 1.0)  # as a share of the gradient's root mean square
STEPS = 1000  # of Inverting Gradients
DIGITS = Experiment(size=28, channels=1, assume=Assumptions(labels=True))
THREE = Part(id="custom", fields={"network": "conv 5@16 /2 p2 - conv 5@32 /2 p2 - conv 5@64 /2 p2", "activation": "relu", "bias": True})
FACES = Experiment(size=64, channels=3, model=THREE, assume=Assumptions(labels=True))

TUNED = {"generator": "faces", "radius": 0.3, "tv_weight": 0.01}  # the best of five settings on the astronaut

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
given = parser.parse_args()
torch.set_num_threads(1)
results_file = Book("generators", __doc__)


def of_data(source: str, number: int) -> tuple[Tensor, Tensor]:
    """Return a test picture (1, C, H, W) and its label (1,)."""
    rows = datasets()[source].rows()
    return as_picture(rows.pixels[number]), torch.tensor([int(rows.labels[number])])


def as_picture(pixels: Any) -> Tensor:
    """Convert bytes (H, W, C) to (1, C, H, W) in [0, 1]."""
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].contiguous().float() / 255


def of_gallery(id: str) -> tuple[Tensor, Tensor]:
    """Return a picture of the gallery in gray, 28 x 28."""
    return load(DIGITS.model_copy(update={"pictures": (Picture(id=id),)}), {})


def noisy(experiment: Experiment, x: Tensor, y: Tensor, share: float) -> tuple[Observation, float]:
    """Return what the server holds, and the standard deviation of the noise."""
    size = share * float(flatten(observe(experiment, x, y).as_gradient()).square().mean().sqrt())
    defenses = (Part(id="gaussian_noise", fields={"scale": size}),) if size else ()
    return observe(experiment.model_copy(update={"defenses": defenses}), x, y), size


def answer(seen: Observation, seed: int, attack: str, **fields: Any) -> Snapshot:
    """Return the last snapshot."""
    asked: Attack = plugin("attack", Part(id=attack, fields=fields))
    *_, last = asked.run(with_generator(seen, asked), generator(seed, "attack"))
    return last


def score(guess: Tensor, x: Tensor) -> float:
    """Return the PSNR of a clamped guess."""
    return float(psnr(guess.clamp(0, 1), x))


def inverted(asked: dict[str, Any], seen: Observation, x: Tensor) -> dict[str, Any]:
    """Run Inverting Gradients with every weight of the total variation; the psnr is the best."""
    if known := results_file.known(asked):
        return known
    began = time.process_time()
    each = [score(answer(seen, asked["seed"], "inverting_gradients", steps=STEPS, tv_weight=weight).x, x) for weight in WEIGHTS]
    best = max(each)
    found = {"psnr": best, "mse": 10 ** (-best / 10), "each": each, "seconds": time.process_time() - began}
    return results_file.note(asked, found)


def staged(asked: dict[str, Any], seen: Observation, x: Tensor, noise: float, **fields: Any) -> dict[str, Any]:
    """GIFD: the PSNR after every stage (0 is GGL), which one it keeps, and for digits the nearest training picture."""
    if known := results_file.known(asked):
        return known
    began = time.process_time()
    last = answer(seen, asked["seed"], "gifd", noise=noise, **fields)
    seconds = time.process_time() - began
    each = [score(guess, x) for guess in last.views.values()]
    found = {"psnr": each[int(last.note["stage"])], "mse": float(mse(last.x.clamp(0, 1), x)), "each": each, "kept": last.note["stage"]}
    if x.shape[1:] == (1, 28, 28):
        found |= {"training, from answer": nearest(last.x.clamp(0, 1)), "training, from truth": nearest(x)}
    return results_file.note(asked, {**found, "event": last.note["event"], "seconds": seconds})


def nearest(x: Tensor) -> float:
    """Return the PSNR between a picture (1, 1, 28, 28) and the generator's nearest training picture."""
    if not TRAINING:
        TRAINING.append(torch.from_numpy(training_pictures("mnist").pixels.copy()).flatten(1).float() / 255)
    return -10 * float((TRAINING[0] - x.flatten(1)).square().mean(1).min().log10())


TRAINING: list[Tensor] = []  # read when it is first asked for


def compared(name: str, experiment: Experiment, x: Tensor, y: Tensor, noises: tuple[float, ...], **fields: Any) -> list[list[Any]]:
    """Return the rows of one picture for every noise."""
    rows = []
    for share in noises:
        seen, size = noisy(experiment, x, y, share)
        asked = {"picture": name, "noise": share, "seed": experiment.seed}
        ours = staged({**asked, "attack": "gifd", **fields}, seen, x, size, **fields)
        theirs = inverted({**asked, "attack": "inverting_gradients"}, seen, x)
        within = ours["psnr"] >= max(ours["each"][1:]) - 1
        memory = f"{ours['training, from answer']:.1f} / {ours['training, from truth']:.1f}" if "training, from truth" in ours else "-"
        stages = ", ".join(f"{one:.1f}" for one in ours["each"][1:])
        rows.append([name, share, theirs["psnr"], ours["each"][0], stages, ours["kept"], ours["psnr"], "yes" if within else "no", memory])
    return rows


def searched(number: int, seed: int, attack: str, steps: int) -> dict[str, Any]:
    """Run one attack on a CIFAR-10 test picture, with its default fields except the steps."""
    x, y = of_data("cifar10", number)
    asked = {"picture": f"cifar10 {number}", "noise": 0.0, "seed": seed, "attack": attack, "steps": steps}
    if known := results_file.known(asked):
        return known
    seen, began = observe(Experiment(seed=seed), x, y), time.process_time()
    last = answer(seen, seed, attack, steps=steps)
    own, classes = score(last.x, x), last.y.argmax(1) if last.y.dim() == 2 else last.y
    found = {"psnr": own, "mse": 10 ** (-own / 10), "label right": int(classes) == int(y), "seconds": time.process_time() - began}
    return results_file.note(asked, found)


HEADS = ["picture", "noise", "IG, best of 5", "ggl", "gifd by stage", "kept", "its dB", "within 1 dB", "training picture: answer / truth"]
if "digits" in given.parts:
    rows = [row for number in range(5) for row in compared(f"mnist {number}", DIGITS, *of_data("mnist", number), NOISES)]
    say()
    table(HEADS, rows)
    for share in NOISES[1:]:
        say(f"noise {share}: the kept stage is within 1 dB of the best in {sum(r[7] == 'yes' for r in rows if r[1] == share)} of 5")
    say("\nWhat the generator never saw:")
    table(HEADS, [row for id in ("chelsea", "page-0") for row in compared(id, DIGITS, *of_gallery(id), NOISES[:2])])

if "line-up" in given.parts:
    ranks: dict[bool, list[float]] = {False: [], True: []}
    for number in range(20):
        x, y = of_data("mnist", number)
        seen, _ = noisy(DIGITS, x, y, 0.3)
        for shuffled in ranks:
            asked = {"picture": f"mnist {number}", "noise": 0.3, "seed": DIGITS.seed, "attack": "ggl", "shuffled": shuffled}
            run = results_file.known(asked)
            if run is None:
                rng = generator(number, "shuffle")
                mixed = {n: g.flatten()[torch.randperm(g.numel(), generator=rng)].view_as(g) for n, g in seen.received.update.items()}
                began = time.process_time()
                received = replace(seen.received, update=mixed) if shuffled else seen.received
                last = answer(replace(seen, received=received), DIGITS.seed, "ggl")
                lineup = draw([Origin("mnist", str(number))], x, y, seed=DIGITS.seed)
                rank = float(pixel_ranks(last.x.clamp(0, 1), x, lineup))
                own = score(last.x, x)
                found = {"psnr": own, "mse": 10 ** (-own / 10), "rank": rank, "seconds": time.process_time() - began}
                run = results_file.note(asked, found)
            ranks[shuffled].append(run["rank"])
    say()
    for shuffled, places in ranks.items():
        first = sum(rank == 1 for rank in places)
        say(f"GGL, noise 0.3{', shuffled' if shuffled else ''}: first of 100 in {first} of {len(places)}; ranks {places}")

if "grnn" in given.parts:
    rows = []
    for number in range(5):
        each = [searched(number, seed, "grnn", 2000) for seed in (1, 2, 3)]
        numbers = ", ".join(f"{run['psnr']:.1f}" for run in each)
        rows.append([number, numbers, median(run["psnr"] for run in each), sum(run["label right"] for run in each), each[0]["seconds"]])
    say()
    table(["CIFAR-10 test picture", "GRNN, three seeds", "median", "labels right", "seconds"], rows)

if "untrained" in given.parts:
    rows = []
    for number in (0, 4):
        x = of_data("cifar10", number)[0]
        grey = score(torch.full_like(x, 0.5), x)
        for attack in ("ci_net", "grnn", "inverting_gradients"):
            for steps in (300, 1000, 2000):
                each = [searched(number, seed, attack, steps) for seed in (1, 2, 3)]
                numbers = ", ".join(f"{run['psnr']:.1f}" for run in each)
                rows.append([number, attack, steps, numbers, median(run["psnr"] for run in each), grey, each[0]["seconds"]])
    say()
    table(["CIFAR-10 test picture", "attack", "steps", "three seeds", "median", "a grey picture", "seconds"], rows)

if "faces" in given.parts:
    try:
        find_card("faces")
    except MissingGeneratorError as error:
        say(f"\nFaces are left out. {error}")
        sys.exit()
    columns = loadmat(data_folder() / "faces" / "olivettifaces.mat")["faces"]  # (4096, 400), column by column; ten of each person
    gray = columns[:, :50:10].T.reshape(-1, 64, 64, 1).transpose(0, 2, 1, 3)  # of five people one each
    people = [as_picture(pixels).expand(1, 3, 64, 64).contiguous() for pixels in gray]
    x, y = load(FACES, {})
    rows = compared("astronaut", FACES, x, y, NOISES[1:], **TUNED)
    for number, face in enumerate(people):
        rows += compared(f"olivetti {number}", FACES, face, torch.tensor([6]), NOISES[1:], **TUNED)
    cat, label = load(FACES.model_copy(update={"pictures": (Picture(id="chelsea"),)}), {})
    rows += compared("cat", FACES, cat, label, NOISES[1:2], **TUNED)
    say()
    table(HEADS, rows)
    for share in NOISES[1:]:
        gains = [row[6] - row[2] for row in rows if row[1] == share and str(row[0]).startswith("olivetti")]
        say(f"noise {share}: five Olivetti faces, kept stage - best Inverting Gradients: {sum(gains) / len(gains):.1f} dB on average")
