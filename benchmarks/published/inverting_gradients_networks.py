"""Inverting Gradients and its L-BFGS baseline on LeNet and a ResNet, untrained and trained (Geiping et al. 2020, table 1).

Published, mean and deviation of PSNR over the first 100 CIFAR-10 validation pictures: in `CELLS`. The baseline minimizes the Euclidean
distance by L-BFGS from 16 starts (LeNet) or 8 (ResNet), each of 300 steps.

Here: the first 10 CIFAR-10 test pictures, one at a time, labels recovered by the iDLG rule, BatchNorm in eval mode, one seed. LeNet takes
4,800 steps as in the paper. The row of the untrained LeNet is that of inverting_gradients_lenet.py with its TV weight 0.01.
Differs from the paper: 10 pictures for 100. He's ResNet-20 of width 16 (0.27 million parameters) for ResNet20-4 of width 64 (4.3 million),
1,000 steps for 4,800. L-BFGS (iDLG) from at most 4 starts on LeNet and 1 on the ResNet, 5 pictures on the ResNet; a start that sticks ends
before its 300 steps, and no start follows one that succeeds. The checkpoints are ours. The TV weights 0.01, 0.001, 0 and 0.01 are those of
the paper's appendix, as far as its text can be read.

The last rows, on fewer pictures, look for reasons. LeNet is attacked with stronger smoothing, with a smaller step (this network takes
pixels as they are, where 0.1 is four times as far as in a normalized picture), after one round of training and after five, by L-BFGS from
1 start and from 16. The untrained ResNet is attacked with smoothing, with 4,800 steps, and as ResNet20-4.

Found: the trained LeNet hides its pictures from an attack with TV 0.001 (11.3 dB, a grey picture 12.4), and not from one with 0.1 (20.1).
A smaller step does not help; after one round of training 0.001 still serves (17.6). L-BFGS is best on the untrained LeNet (58.2 dB; from
one start 36.1, as four of ten stick), and loses it with training: 40.5 dB after one round, 13.4 after five, 8.1 after twenty, 9.6 from 16
starts where 4 give 8.0. The untrained ResNet of width 16 gives 12.2 dB, about as a grey picture, and 15.6 with smoothing. On its first
three pictures (11.5 dB) the paper's width gives 16.5, and 4,800 steps give 12.9; with smoothing (14.7) the steps give no more (14.5).
Width and steps of the paper together give 18.8 on them (inverting_gradients_gpu.py).

Started again, it goes on where it was stopped.

    python benchmarks/published/inverting_gradients_networks.py [--pictures 10] [--steps 1000]       about an hour on one core
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
SHOWN = ("steps", "tv_weight", "step_size")  # fields of the attack in the printed table


class Cell(NamedTuple):
    """One cell of the table: a network, its checkpoint, an attack, and the published PSNR."""

    network: str
    model: Part
    checkpoint: str
    attack: str
    fields: Fields
    pictures: int
    published: str


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pictures", type=int, default=10)
parser.add_argument("--steps", type=int, default=1000, help="steps on the ResNet")
given = parser.parse_args()

LENET, DEEP = Part(id="lenet"), Part(id="he_resnet")
WIDE = Part(id="resnet", fields={"kind": "resnet20-4", "width": 64})  # the paper's
YOUNG, HALFWAY, OLD, TRAINED = "lenet-cifar10@1", "lenet-cifar10@5", "lenet-cifar10@20", "resnet-20-cifar10@24"  # after so many rounds
COSINE, EUCLIDEAN = "inverting_gradients", "idlg"
SEARCH, FEW = {"steps": 300, "restarts": 4}, {"steps": 300, "restarts": 1}
FULL, SHORT = 4800, given.steps
HALF, THIRD = given.pictures // 2, given.pictures // 3
CELLS = [
    Cell("LeNet, trained", LENET, OLD, COSINE, {"steps": FULL, "tv_weight": 0.001}, given.pictures, "18.08 ± 4.27"),
    Cell("LeNet, untrained", LENET, "", EUCLIDEAN, {**SEARCH}, given.pictures, "46.25 ± 12.66"),
    Cell("LeNet, trained", LENET, OLD, EUCLIDEAN, {**SEARCH}, given.pictures, "13.24 ± 5.44"),
    Cell("ResNet-20, trained", DEEP, TRAINED, COSINE, {"steps": SHORT, "tv_weight": 0.01}, given.pictures, "13.95 ± 3.38"),
    Cell("ResNet-20, untrained", DEEP, "", COSINE, {"steps": SHORT, "tv_weight": 0.0}, given.pictures, "19.83 ± 2.96"),
    Cell("ResNet-20, untrained", DEEP, "", EUCLIDEAN, {**FEW}, HALF, "10.29 ± 5.38"),
    Cell("ResNet-20, trained", DEEP, TRAINED, EUCLIDEAN, {**FEW}, HALF, "6.90 ± 2.80"),
    Cell("LeNet, trained", LENET, OLD, COSINE, {"steps": FULL, "tv_weight": 0.1}, HALF, ""),
    Cell("LeNet, trained", LENET, OLD, COSINE, {"steps": FULL, "tv_weight": 0.001, "step_size": 0.025}, HALF, ""),
    Cell("LeNet, trained for 1 round", LENET, YOUNG, COSINE, {"steps": FULL, "tv_weight": 0.001}, HALF, ""),
    Cell("ResNet-20, untrained", DEEP, "", COSINE, {"steps": SHORT, "tv_weight": 0.01}, HALF, ""),
    Cell("LeNet, trained", LENET, OLD, EUCLIDEAN, {**SEARCH, "restarts": 16}, HALF, ""),
    Cell("LeNet, untrained", LENET, "", EUCLIDEAN, {**SEARCH, "restarts": 1}, given.pictures, ""),
    Cell("LeNet, trained for 1 round", LENET, YOUNG, EUCLIDEAN, {**SEARCH}, HALF, ""),
    Cell("LeNet, trained for 5 rounds", LENET, HALFWAY, EUCLIDEAN, {**SEARCH}, HALF, ""),
    Cell("ResNet-20, untrained", DEEP, "", COSINE, {"steps": FULL, "tv_weight": 0.0}, THIRD, ""),
    Cell("ResNet-20, untrained", DEEP, "", COSINE, {"steps": FULL, "tv_weight": 0.01}, THIRD, ""),
    Cell("ResNet20-4, untrained", WIDE, "", COSINE, {"steps": SHORT, "tv_weight": 0.0}, THIRD, ""),
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
    rows.append([*row("LeNet, untrained", COSINE, [{"scores": {}, **result} for result in known], "18.00 ± 3.33"), FULL, 0.01, ""])
for cell in CELLS:
    found = []
    normalise = "none" if cell.checkpoint.startswith("lenet") else "cifar10"
    for index in range(cell.pictures):
        experiment = Experiment(
            pictures=(Picture(source="cifar10", id=str(index)),),
            model=Part(id=cell.model.id, fields={**cell.model.fields, "normalise": normalise}),
            checkpoint=cell.checkpoint,
            attack=Part(id=cell.attack, fields=cell.fields),
            seed=SEED,
        )
        asked = {"network": cell.network, "attack": cell.attack, **cell.fields, "picture": index, "seed": SEED}
        found.append(results_file.play(asked, experiment))
    rows.append([*row(cell.network, cell.attack, found, cell.published), *(cell.fields.get(name, "") for name in SHOWN)])
say()
table(
    ["network", "attack", "PSNR", "deviation", "published", "grey PSNR", "SSIM", "distance", "identified", "steps", "TV", "step size"], rows
)
results_file.save()
