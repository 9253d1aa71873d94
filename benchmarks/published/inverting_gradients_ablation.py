"""Inverting Gradients with one of its parts switched off at a time (Geiping et al. 2020, table 3).

Published, PSNR as mean (standard error) on the trained ResNet18 over the first 10 CIFAR-10 pictures: 20.12 (1.02) in full, 15.13 (0.70)
with the Euclidean distance, 19.96 (0.75) without TV, 5.13 (0.50) by L-BFGS. The text says that signs gain a little.

Here: our checkpoint of ResNet18 of width 16 after 20 rounds, the first pictures of CIFAR-10's test set, one at a time, TV 0.01, one start,
labels recovered by the iDLG rule, BatchNorm in eval mode, one seed. More arms than in the paper: without signs, without the falling step
size, without clamping, with two starts for one. L-BFGS (iDLG) has no prior.
Differs from the paper: width 16 for 64, 6 pictures for 10, 300 steps for 4,800.
Found, on the first 4 pictures: 12.7 dB in full (a grey picture 11.9), 8.6 with the Euclidean distance, 10.7 without TV, 10.6 without signs,
5.3 by L-BFGS. The order is the paper's; TV counts for more here. Without the falling step size 15.0: 300 steps are too few for the
schedule.
Started again, it goes on where it was stopped.

    python benchmarks/published/inverting_gradients_ablation.py [--pictures 6] [--steps 300]       about 10 minutes on one core
"""

import argparse
import math
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, Fields, say, table

from leakage.data.checkpoints import cards
from leakage.spec.experiment import Experiment, Part, Picture

TRAINED = "resnet18-16-cifar10"
SEED = 1

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=6)
parser.add_argument("--steps", type=int, default=300)
given = parser.parse_args()

ARMS: list[tuple[str, Fields, str]] = [  # what is switched off, the fields that differ, the published PSNR
    ("nothing", {}, "20.12 (1.02)"),
    ("cosine (Euclidean distance)", {"distance": "squared"}, "15.13 (0.70)"),
    ("TV", {"tv_weight": 0.0}, "19.96 (0.75)"),
    ("signs", {"signed": False}, ""),
    ("falling step size", {"schedule": "constant"}, ""),
    ("clamping", {"clamped": False}, ""),
    ("nothing, two starts", {"starts": 2}, ""),
]
USUAL: Fields = {"steps": given.steps, "tv_weight": 0.01}
card = cards()[TRAINED]
checkpoint = f"{TRAINED}@{card.stages[-1].rounds}"
attacks = [
    *((name, Part(id="inverting_gradients", fields={**USUAL, **fields}), paper) for name, fields, paper in ARMS),
    ("all but the distance (L-BFGS)", Part(id="idlg", fields={"steps": 300, "restarts": 1}), "5.13 (0.50)"),
]

results_file, rows = Book("inverting_gradients_ablation", __doc__), []
for name, attack, published in attacks:
    found = []
    for index in range(given.pictures):
        experiment = Experiment(
            pictures=(Picture(source="cifar10", id=str(index)),),
            model=Part(id=card.model, fields=card.fields),
            checkpoint=checkpoint,
            attack=attack,
            seed=SEED,
            max_seconds=3600,
        )
        asked = {"off": name, "attack": attack.id, **attack.fields, "picture": index, "seed": SEED}
        found.append(results_file.play(asked, experiment))
    psnr = [result["psnr"] for result in found]
    means = [statistics.mean(result[score] for result in found) for score in ("grey_psnr", "ssim", "loss")]
    first = sum(result["scores"]["rank"] == 1 for result in found)
    error = statistics.stdev(psnr) / math.sqrt(len(psnr))
    rows.append([name, statistics.mean(psnr), error, published, *means, f"{first} of {len(psnr)}"])
say()
table(["switched off", "PSNR", "standard error", "published", "grey PSNR", "SSIM", "distance", "identified"], rows)
results_file.save()
