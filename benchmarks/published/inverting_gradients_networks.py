"""Inverting Gradients and its L-BFGS baseline on LeNet and a ResNet, untrained and trained (Geiping et al. 2020, table 1).

Published, mean and deviation of PSNR over the first 100 CIFAR-10 validation pictures: in `CELLS`. The baseline minimizes the Euclidean
distance by L-BFGS from 16 starts (LeNet) or 8 (ResNet), each of 300 steps.

Here: the first 10 CIFAR-10 test pictures, one at a time, labels recovered by the iDLG rule, BatchNorm in eval mode, one seed. LeNet takes
4,800 steps as in the paper. The row of the untrained LeNet is that of inverting_gradients_lenet.py with its TV weight 0.01.
Differs from the paper: 10 pictures for 100. He's ResNet-20 of width 16 (0.27 million parameters) for ResNet20-4 of width 64 (4.3 million),
1,000 steps for 4,800. L-BFGS (iDLG) from at most 4 starts on LeNet and 1 on the ResNet, 5 pictures on the ResNet; a start that sticks ends
before its 300 steps, and no start follows one that succeeds. The checkpoints are ours. The TV weights 0.01, 0.001, 0 and 0.01 are those of
the paper's appendix, as far as its text can be read. The last rows, on 5 pictures, look for reasons. For the trained LeNet: stronger
smoothing, a smaller step (this network takes pixels as they are, where 0.1 is four times as far as in a normalized picture), and a network
after one round; of L-BFGS, 16 starts. For the untrained ResNet: smoothing.

Found: the trained LeNet hides its pictures from an attack with TV 0.001 (11.3 dB, a grey picture 12.4), and not from one with 0.1 (20.1).
A smaller step does not help; after one round of training 0.001 still serves (17.6). L-BFGS is best on the untrained LeNet and worse than a
grey picture on the trained networks, on LeNet also from 16 starts (9.6 dB, from 4 on the same pictures 8.0). The untrained
ResNet of width 16 gives 12.2 dB, about as a grey picture, and 15.6 with smoothing.
Started again, it goes on where it was stopped.

    python benchmarks/published/inverting_gradients_networks.py [--pictures 10] [--steps 1000]       about 25 minutes on one core
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, Fields, saved, say, table

from leakage.spec.experiment import Experiment, Part, Picture

SEED = 1


class Cell(NamedTuple):
    """One cell of the table: a network, its checkpoint, an attack, and the published PSNR."""

    network: str
    model: str
    checkpoint: str
    attack: str
    fields: Fields
    pictures: int
    published: str


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=10)
parser.add_argument("--steps", type=int, default=1000, help="steps on the ResNet")
given = parser.parse_args()

LENET, RESNET = "lenet-cifar10@20", "resnet-20-cifar10@24"
YOUNG = "lenet-cifar10@1"  # after one round
COSINE, EUCLIDEAN = "inverting_gradients", "idlg"
SEARCH, FEW = {"steps": 300, "restarts": 4}, {"steps": 300, "restarts": 1}
FULL, SHORT, HALF = 4800, given.steps, given.pictures // 2
CELLS = [
    Cell("LeNet, trained", "lenet", LENET, COSINE, {"steps": FULL, "tv_weight": 0.001}, given.pictures, "18.08 ± 4.27"),
    Cell("LeNet, untrained", "lenet", "", EUCLIDEAN, {**SEARCH}, given.pictures, "46.25 ± 12.66"),
    Cell("LeNet, trained", "lenet", LENET, EUCLIDEAN, {**SEARCH}, given.pictures, "13.24 ± 5.44"),
    Cell("ResNet-20, trained", "he_resnet", RESNET, COSINE, {"steps": SHORT, "tv_weight": 0.01}, given.pictures, "13.95 ± 3.38"),
    Cell("ResNet-20, untrained", "he_resnet", "", COSINE, {"steps": SHORT, "tv_weight": 0.0}, given.pictures, "19.83 ± 2.96"),
    Cell("ResNet-20, untrained", "he_resnet", "", EUCLIDEAN, {**FEW}, HALF, "10.29 ± 5.38"),
    Cell("ResNet-20, trained", "he_resnet", RESNET, EUCLIDEAN, {**FEW}, HALF, "6.90 ± 2.80"),
    Cell("LeNet, trained", "lenet", LENET, COSINE, {"steps": FULL, "tv_weight": 0.1}, HALF, ""),
    Cell("LeNet, trained", "lenet", LENET, COSINE, {"steps": FULL, "tv_weight": 0.001, "step_size": 0.025}, HALF, ""),
    Cell("LeNet, trained for 1 round", "lenet", YOUNG, COSINE, {"steps": FULL, "tv_weight": 0.001}, HALF, ""),
    Cell("ResNet-20, untrained", "he_resnet", "", COSINE, {"steps": SHORT, "tv_weight": 0.01}, HALF, ""),
    Cell("LeNet, trained", "lenet", LENET, EUCLIDEAN, {**SEARCH, "restarts": 16}, HALF, ""),
]


def row(network: str, attack: str, results: list[dict[str, Any]], published: str) -> list[object]:
    """Return the line of the printed table."""
    psnr = [result["psnr"] for result in results]
    means = [statistics.mean(result[score] for result in results) for score in ("grey_psnr", "ssim", "loss")]
    first = sum(result["scores"].get("rank") == 1 for result in results)
    return [network, attack, statistics.mean(psnr), statistics.stdev(psnr), published, *means, f"{first} of {len(psnr)}"]


results_file, rows = Book("inverting_gradients_networks", __doc__), []
known = [run["result"] for run in saved("inverting_gradients_lenet").get("runs", []) if run["tv_weight"] == 0.01]
if known:
    rows.append([*row("LeNet, untrained", COSINE, [{"scores": {}, **result} for result in known], "18.00 ± 3.33"), 0.01, ""])
for cell in CELLS:
    found = []
    for index in range(cell.pictures):
        experiment = Experiment(
            pictures=(Picture(source="cifar10", id=str(index)),),
            model=Part(id=cell.model, fields={"normalise": "none" if cell.checkpoint.startswith("lenet") else "cifar10"}),
            checkpoint=cell.checkpoint,
            attack=Part(id=cell.attack, fields=cell.fields),
            seed=SEED,
        )
        asked = {"network": cell.network, "attack": cell.attack, **cell.fields, "picture": index, "seed": SEED}
        found.append(results_file.play(asked, experiment))
    weight, step = (cell.fields.get(name, "") for name in ("tv_weight", "step_size"))
    rows.append([*row(cell.network, cell.attack, found, cell.published), weight, step])
say()
table(["network", "attack", "PSNR", "deviation", "published", "grey PSNR", "SSIM", "distance", "identified", "TV", "step size"], rows)
results_file.save()
