"""Inverting Gradients on the networks of the paper, with 4,800 or 24,000 steps, which takes a GPU (Geiping et al. 2020, table 1, figure 4).

Published, PSNR: 19.83 dB (deviation 2.96) on an untrained ResNet20-4 after 4,800 steps, mean of 100 pictures. On ResNet18 of width 16 and
64 and on ResNet34, mean of the first 10 pictures: 19.02, 22.04 and 21.59; up to 24,000 steps from several starts.

Here: untrained networks, the first CIFAR-10 test pictures one at a time, labels recovered by the iDLG rule, BatchNorm in eval mode, one
seed, one start. Each step is a CUDA graph; the pictures of a network are attacked side by side.
Differs from the paper: 10 pictures for 100, 4 for 10; one start for several; 4,800 steps for 24,000 on ResNet18 of width 64 and ResNet34.
Found: 18.9 dB (deviation 2.6) on ResNet20-4, where 1,000 steps give 16.5 on three of the pictures (inverting_gradients_networks.py).
22.1 dB on ResNet18 of width 64, 16.3 on width 16. ResNet34 gives 15.0, 6.6 dB less than in the paper, which is due to how its weights are
drawn (inverting_gradients_widths.py). A grey picture has 12.4 dB, as the mean of the ten pictures, and 11.9 as that of the four.

The stored runs were computed on an NVIDIA H200 with torch 2.11, without LPIPS, by two processes whose files were joined; their seconds were
not kept. Started again, it goes on where it was stopped.

    python benchmarks/published/inverting_gradients_gpu.py [--cells 0 1 2 3]       ten minutes on such a GPU, half a day on one core
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _graphs import finish_side_by_side
from _resnets import Cell, print_results
from _table import Book

CELLS = [
    Cell("resnet20-4", 64, 4_800, 0.0, 10, "19.83"),
    Cell("resnet34", 64, 4_800, 0.01, 4, "21.59"),
    Cell("resnet18", 16, 24_000, 0.01, 4, "19.02"),
    Cell("resnet18", 64, 4_800, 0.01, 4, "22.04"),
]


def main() -> None:
    """Compute what is not stored, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="+", default=range(len(CELLS)), help="the cells to compute, counted from 0")
    given = parser.parse_args()
    torch.set_num_threads(1)
    results_file, found = Book("inverting_gradients_gpu", __doc__), []
    for cell in [CELLS[number] for number in given.cells]:
        runs = {picture: cell.describe_run(picture) for picture in range(cell.pictures)}
        todo = [picture for picture, run in runs.items() if not results_file.known(run)]
        for picture, answer in zip(todo, finish_side_by_side([cell.experiment(picture) for picture in todo]), strict=True):
            results_file.note(runs[picture], asdict(answer))
        found.append((cell, [result for run in runs.values() if (result := results_file.known(run))]))
    print_results(found)
    results_file.save()


if __name__ == "__main__":
    main()
