"""Inverting Gradients on a trained network before and after the server swaps two classes (Geiping et al. 2020, appendix A.2, figure 7).

The figure shows single pictures on a trained network: with two rows of the last layer swapped the gradient is large and the picture comes
back. It has no table, so that only the direction can be compared. Here: ConvNet-16 after 24 rounds on CIFAR-10, the first three test
pictures whose class it predicts with a probability above 0.95, labels recovered by the iDLG rule. The server swaps the class of the
picture with the next class. `probability` is the one that the network predicts for the picture's class with the weights that the phone
received, `norm` the length of its gradient. Beside each score: a grey picture's.
Started again, it goes on where it was stopped.

    python benchmarks/published/label_flip.py [--steps 1500] [--seeds 1]       about 4 minutes a start on one core
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import Book, finish, say, table
from torch import Tensor
from torch.func import functional_call

from leakage.data.images import datasets
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers import plugin_catalog
from leakage.workers.adapter import observe

TRAINED = "convnet-16-cifar10@24"
LEARNED = 0.95
PICTURES, CLASSES = 3, 10

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=1500)
parser.add_argument("--seeds", type=int, nargs="+", default=[1])
given = parser.parse_args()
torch.set_num_threads(1)
known = plugin_catalog.describe()
results_file = Book("label_flip", __doc__)


def picture(index: int) -> tuple[Tensor, Tensor]:
    """Return a test picture (1, C, H, W) and its label (1,)."""
    held = datasets()["cifar10"].rows()
    x = torch.from_numpy(held.pixels[[index]]).permute(0, 3, 1, 2).contiguous().float() / 255
    return x, torch.from_numpy(held.labels[[index]]).long()


def asked_of(index: int, seed: int, *, flipped: bool) -> Experiment:
    """Return the experiment with a picture, with the server that swaps its class with the next one or with an honest server."""
    label = int(picture(index)[1])
    return Experiment(
        pictures=(Picture(source="cifar10", id=str(index)),),
        model=Part(id="convnet", fields={"width": 16, "normalise": "cifar10"}),
        checkpoint=TRAINED,
        server=Part(id="label_flip", fields={"guessed": label, "rival": (label + 1) % CLASSES}) if flipped else None,
        attack=Part(id="inverting_gradients", fields={"steps": given.steps}),
        seed=seed,
    ).resolve(known)


def received(index: int, *, flipped: bool) -> dict[str, float]:
    """Return the probability of the picture's class by the weights that the phone received, and the length of the gradient."""
    x, y = picture(index)
    seen = observe(asked_of(index, given.seeds[0], flipped=flipped), x, y)
    with torch.no_grad():
        probability = functional_call(seen.model, dict(seen.received.weights), (x,)).softmax(1)[0, int(y)]
    norm = torch.cat([part.flatten() for part in seen.as_gradient().values()]).norm()
    return {"probability": float(probability), "norm": float(norm)}


def learned() -> list[int]:
    """Return the first test pictures whose class the trained network predicts with a probability above LEARNED."""
    found, index = list[int](), 0
    while len(found) < PICTURES:
        found += [index] * (received(index, flipped=False)["probability"] > LEARNED)
        index += 1
    return found


def once(index: int, seed: int, *, flipped: bool) -> dict[str, Any]:
    """Return the stored result of a run, or run it."""
    asked = {"picture": index, "seed": seed, "steps": given.steps, "flipped": flipped}
    found = asdict(finish(asked_of(index, seed, flipped=flipped))) if not results_file.known(asked) else {}
    return results_file.known(asked) or results_file.note(asked, {**found, **received(index, flipped=flipped)})


def main() -> None:
    """Run what is missing, and print the table."""
    rows = list[list[Any]]()
    every: dict[bool, list[float]] = {False: [], True: []}
    for index in learned():
        for flipped in (False, True):
            runs = [once(index, seed, flipped=flipped) for seed in given.seeds]
            scores = [run["psnr"] for run in runs]
            every[flipped] += scores
            named = "swapped" if flipped else "honest"
            single = [f"{score:.1f}" for score in scores]
            means = [mean(scores), runs[0]["grey_psnr"], mean(run["ssim"] for run in runs), mean(run["loss"] for run in runs)]
            first = sum(run["scores"]["rank"] == 1 for run in runs)
            rows.append([index, named, runs[0]["probability"], runs[0]["norm"], *single, *means, f"{first} of {len(runs)}"])
    starts = [f"start {seed}" for seed in given.seeds]
    say()
    table(["picture", "server", "probability", "norm", *starts, "mean PSNR", "grey", "SSIM", "cosine distance", "identified"], rows)
    results_file.save(psnr={"honest": mean(every[False]), "swapped": mean(every[True])})
    say(f"mean PSNR: {mean(every[False]):.2f} dB before, {mean(every[True]):.2f} dB after")


if __name__ == "__main__":
    main()
