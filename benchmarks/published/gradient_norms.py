"""Inverting Gradients on the pictures with the shortest and the longest gradients of a trained network (Geiping et al. 2020, figure 9).

The figure shows pictures and has no table, so that only the direction can be compared: pictures that the network classifies well have short
gradients, and the question is whether they leak less.

Here: our checkpoint of ResNet18 of width 16 after 20 rounds; of the first 200 CIFAR-10 test pictures the 8 with the shortest and the 8 with
the longest gradients (the Euclidean norm over all parameters), each attacked alone, 300 steps, TV 0.01, one start, labels recovered by the
iDLG rule, BatchNorm in eval mode, one seed; once with the exact gradient, once behind Gaussian noise of a fixed size on each entry.
Differs from the paper: 200 candidates for the whole validation set, 300 steps for 4,800, width 16.
Found, with 4 pictures at each end: gradients of length 0.0003 and of 110 give back 2.6 and 1.0 dB less than a grey picture scores, and the
search ends farther from the short gradient (cosine distance 0.29 and 0.13). Behind noise the short gradient is lost with its label, and the
long one is not (cosine distance 0.99 and 0.14).
Started again, it goes on where it was stopped.

    python benchmarks/published/gradient_norms.py [--steps 300] [--candidates 200] [--ends 8]       about 6 minutes on one core
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import Book, say, table

from leakage.data.checkpoints import cards
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers import plugin_catalog
from leakage.workers.norms_job import gradient_norms

TRAINED = "resnet18-16-cifar10"
SEED = 1
NOISES = (0.0, 1e-2)

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--candidates", type=int, default=200)
parser.add_argument("--ends", type=int, default=8, help="pictures at each end")
given = parser.parse_args()
torch.set_num_threads(1)
card = cards()[TRAINED]
known = plugin_catalog.describe()


def attacked(index: int, noise: float = 0.0) -> Experiment:
    """Return the attack on one test picture, behind noise of this standard deviation on each entry."""
    return Experiment(
        pictures=(Picture(source="cifar10", id=str(index)),),
        model=Part(id=card.model, fields=card.fields),
        checkpoint=f"{TRAINED}@{card.stages[-1].rounds}",
        defenses=(Part(id="gaussian_noise", fields={"scale": noise}),) if noise else (),
        attack=Part(id="inverting_gradients", fields={"steps": given.steps, "tv_weight": 0.01}),
        seed=SEED,
    )


def main() -> None:
    """Run what is missing, and print the table."""
    results_file, rows = Book("gradient_norms", __doc__), list[list[Any]]()
    candidates = [Picture(source="cifar10", id=str(index)) for index in range(given.candidates)]
    norms = dict(enumerate(gradient_norms(attacked(0).resolve(known), candidates)))
    ordered = sorted(norms, key=lambda index: norms[index])
    for noise in NOISES:
        for name, chosen in (("shortest", ordered[: given.ends]), ("longest", ordered[-given.ends :])):
            found = []
            for index in chosen:
                asked = {"end": name, "noise": noise, "picture": index, "norm": norms[index], "steps": given.steps, "seed": SEED}
                found.append(results_file.play(asked, attacked(index, noise)))
            psnr = [result["psnr"] for result in found]
            means = [statistics.mean(result[score] for result in found) for score in ("grey_psnr", "ssim", "loss")]
            gain = statistics.mean(result["psnr"] - result["grey_psnr"] for result in found)
            first = sum(result["scores"]["rank"] == 1 for result in found)
            right = sum(result["label_right"] for result in found)
            median = statistics.median(norms[index] for index in chosen)
            spread = statistics.stdev(psnr)
            rows.append(
                [
                    name,
                    noise,
                    f"{median:.1e}",
                    statistics.mean(psnr),
                    spread,
                    gain,
                    *means,
                    f"{first} of {len(psnr)}",
                    f"{right} of {len(psnr)}",
                ]
            )
    say()
    heads = ["gradient", "noise", "median norm", "PSNR", "deviation", "above grey", "grey PSNR", "SSIM", "cosine distance", "identified"]
    table([*heads, "label"], rows)
    results_file.save(norms=norms)


if __name__ == "__main__":
    main()
