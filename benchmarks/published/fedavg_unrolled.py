"""Inverting Gradients on FedAvg, every local step replayed, untrained ConvNet (Geiping et al. 2020, table 2 and section 6).

Published, width 64, 100 experiments each: 25.05 dB for one picture and 5 local steps, 16.92 for 4 pictures in mini-batches of 2, 16.49 for
8 pictures in one step, 14.66 for 8 pictures in mini-batches of 2, 16.58 for 8 pictures in 5 steps of all. Here: width 16 unless told
otherwise, 3 experiments each, 1,500 iterations instead of 4,800; as there: local step 0.0001, step size 1, labels granted, labels of a
mini-batch all different, TV 1e-4 or 1e-6 by setting, BatchNorm in eval mode. CIFAR-10 test pictures, another set and another network for
each experiment. The last rows have 300 iterations: one picture with 1 and 20 local steps, 8 pictures in mini-batches of 2, and 8 pictures
in 1 and in 5 steps of all.

    python benchmarks/published/fedavg_unrolled.py [--width 16] [--steps 1500] [--experiments 3]       about two hours on one core

Started again, it goes on where it was stopped.
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, say, table

from leakage.data.images import datasets
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture

CELLS = [  # pictures, mini-batch, epochs, TV weight, share of the iterations, published PSNR
    (1, 1, 5, 1e-4, 1, "25.05 ± 3.28"),
    (4, 2, 1, 1e-6, 1, "16.92 ± 2.10"),
    (8, 8, 1, 1e-4, 1, "16.49 ± 1.02"),
    (1, 1, 1, 1e-4, 0.2, ""),
    (1, 1, 20, 1e-4, 0.2, ""),
    (8, 2, 1, 1e-6, 0.2, "14.66 ± 1.12"),
    (8, 8, 1, 1e-4, 0.2, "16.49 ± 1.02"),
    (8, 8, 5, 1e-4, 0.2, "16.58 ± 0.96"),
]

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--steps", type=int, default=1500)
parser.add_argument("--experiments", type=int, default=3)
given = parser.parse_args()


def pictures(first: int, count: int, size: int) -> tuple[Picture, ...]:
    """Return pictures in their order, without a picture of a class that its mini-batch already has."""
    labels, chosen, index = datasets()["cifar10"].rows().labels, list[int](), first
    while len(chosen) < count:
        batch = [labels[place] for place in chosen[len(chosen) // size * size :]]
        if labels[index] not in batch:
            chosen.append(index)
        index += 1
    return tuple(Picture(source="cifar10", id=str(place)) for place in chosen)


results_file, rows = Book("fedavg_unrolled", __doc__), []
for count, size, epochs, tv, share, published in CELLS:
    steps = int(share * given.steps)
    found = []
    for number in range(given.experiments):
        experiment = Experiment(
            pictures=pictures(100 * number, count, size),
            model=Part(id="convnet", fields={"width": given.width}),
            protocol=Part(id="fedavg", fields={"epochs": epochs, "mini_batch": size, "rate": 1e-4}),
            attack=Part(id="inverting_gradients", fields={"steps": steps, "step_size": 1, "tv_weight": tv}),
            assume=Assumptions(labels=True),
            seed=1 + number,
            max_seconds=3600,
        )
        asked = {"n": count, "B": size, "E": epochs, "width": given.width, "steps": steps, "experiment": number}
        found.append(results_file.play(asked, experiment))
    values = [result["psnr"] for result in found]
    spread = statistics.stdev(values) if len(values) > 1 else float("nan")
    first = statistics.mean(result["scores"]["identified"] for result in found)
    grey = statistics.mean(result["grey_psnr"] for result in found)
    loss = statistics.mean(result["loss"] for result in found)
    rows.append(
        [
            f"n {count}, B {size}, E {epochs}",
            epochs * count // size,
            steps,
            statistics.mean(values),
            spread,
            published,
            f"{first:.0%}",
            loss,
            grey,
        ]
    )
say()
table(
    ["setting", "local steps", "iterations", "PSNR", "deviation", "published (width 64)", "identified", "cosine distance", "grey PSNR"],
    rows,
)
results_file.save()
