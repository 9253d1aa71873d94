"""Inverting Gradients on wider and deeper ResNets (Geiping et al. 2020, figure 4).

Published, PSNR as the mean over the first 10 CIFAR-10 pictures: 19.02 dB on ResNet18 of width 16, 22.04 of width 64, 22.94 of width 128,
21.59 on ResNet34, 20.98 on ResNet50. The attack took up to 24,000 steps from several starts; whether the networks were trained does not
stand in the text.

Here: untrained networks, TV 0.01 as there, one start, labels recovered by the iDLG rule, BatchNorm in eval mode, one seed.
Differs from the paper: ResNet18 of width 16 and 64, and ResNet34 of width 16 beside 64; the first 4 pictures for 10; 300 steps for 24,000.
More rows look for the reason of a difference: 1,200 steps, ResNet18 with less smoothing.
Found: width 16 gives 13.0 dB, width 64 18.4, a grey picture 11.9; ResNet34 9.3 and 14.0. A wider network leaks more, as published. On
ResNet34 the search ends farther from the gradient after these few steps (cosine distance 0.06 and 0.03, ResNet18 0.02). Four times the
steps give 14.9 dB on ResNet18 of width 16, 10.3 on ResNet34 of width 16, and on the first two pictures 14.7 in place of 14.0 on ResNet34
of width 64; less smoothing gives 11.2 on ResNet18.
Started again, it goes on where it was stopped.

    python benchmarks/published/inverting_gradients_widths.py [--pictures 4] [--steps 300]       an hour on one core
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, say, table

from leakage.spec.experiment import Experiment, Part, Picture

SEED, TV = 1, 0.01

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=4)
parser.add_argument("--steps", type=int, default=300)
given = parser.parse_args()

HALF, LONGER = given.pictures // 2, 4 * given.steps
CELLS = [  # network, width, steps, TV weight, pictures, published PSNR
    ("resnet18", 16, given.steps, TV, given.pictures, "19.02"),
    ("resnet34", 16, given.steps, TV, given.pictures, "21.59 (width 64)"),
    ("resnet18", 64, given.steps, TV, given.pictures, "22.04"),
    ("resnet18", 16, LONGER, TV, given.pictures, "19.02"),
    ("resnet18", 16, given.steps, 1e-4, given.pictures, "19.02"),
    ("resnet34", 16, LONGER, TV, given.pictures, "21.59 (width 64)"),
    ("resnet34", 64, given.steps, TV, given.pictures, "21.59"),
    ("resnet34", 64, LONGER, TV, HALF, "21.59"),
]

results_file, rows = Book("inverting_gradients_widths", __doc__), []
for kind, width, steps, tv, pictures, published in CELLS:
    found = []
    for index in range(pictures):
        experiment = Experiment(
            pictures=(Picture(source="cifar10", id=str(index)),),
            model=Part(id="resnet", fields={"kind": kind, "width": width}),
            attack=Part(id="inverting_gradients", fields={"steps": steps, "tv_weight": tv}),
            seed=SEED,
            max_seconds=3600,
        )
        asked = {"network": kind, "width": width, "steps": steps, "tv_weight": tv, "picture": index, "seed": SEED}
        found.append(results_file.play(asked, experiment))
    psnr = [result["psnr"] for result in found]
    means = [statistics.mean(result[score] for result in found) for score in ("grey_psnr", "ssim", "loss")]
    first = sum(result["scores"]["rank"] == 1 for result in found)
    rows.append(
        [f"{kind}, width {width}", steps, tv, statistics.mean(psnr), statistics.stdev(psnr), published, *means, f"{first} of {len(psnr)}"]
    )
say()
table(["network", "steps", "TV", "PSNR", "deviation", "published", "grey PSNR", "SSIM", "cosine distance", "identified"], rows)
results_file.save()
