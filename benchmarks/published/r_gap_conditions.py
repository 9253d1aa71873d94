"""The condition number of each convolution's equations in R-GAP (Zhu and Blaschko 2021, table 2), LeNet beside LeNet*.

Published, conv1, conv2, conv3: LeNet 1.8e4 +- 2.9, 6.1e3 +- 0.3, 32.4 +- 2.9e-4; LeNet* 1.2e3 +- 19.7, 1.3e3 +- 22.5, 14.2 +- 0.05.
The system is that of the authors' code: gradient equations K x = dL/dw and weight equations W x = z, unscaled, with the padded pixels among
the unknowns and an equation x = 0 for each. k = dL/dz is the true one, of one CIFAR-10 test picture (3x32x32) and one output, for the
opposite of what the network says; weights are PyTorch's first ones after torch.manual_seed(seed), seed 0 in the authors' code. Float64. The
number is the ratio of the largest and smallest singular value, from the eigenvalues of A^T A, which is exact enough below 1e6.
Beside it: other seeds, "padding left out", as `system` as published solves it here, and the weights U(-0.5, 0.5) of DLG's LeNet.
Not stated in the paper: which pictures and how many; its spread is taken for the standard error of the mean.

Found: with the authors' seed LeNet's three numbers are the published ones. LeNet*'s are within a tenth of them, but for conv2's (1.7e3, and
1.3e3 for the first picture). Other seeds give up to four times as much, DLG's weights 240 for conv1.

    python benchmarks/published/r_gap_conditions.py [--pictures 6] [--seeds 4]       five minutes on one core; goes on where it stopped
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, Fields, say, table

from leakage.data.images import datasets
from leakage.engine.equations import gradient_rows, weight_rows
from leakage.spec.experiment import Part
from leakage.workers.adapter import plugin

NETS: dict[str, tuple[Fields, str]] = {  # name -> fields of LeNet, published
    "LeNet": ({"bias": False, "initialisation": "default"}, "1.8e4, 6.1e3, 32.4"),
    "LeNet*": ({"activation": "leaky_relu", "bias": False, "initialisation": "default"}, "1.2e3, 1.3e3, 14.2"),
    "LeNet, U(-0.5, 0.5)": ({"bias": False}, ""),
}
AS_PUBLISHED = "with padding"
ARMS = [(net, AS_PUBLISHED) for net in NETS] + [("LeNet", "padding left out"), ("LeNet*", "padding left out")]
FEW = 3  # seeds of the arms beside the published ones


def layers_of(net: str, seed: int, picture: int) -> tuple[float, list[tuple[nn.Conv2d, Tensor, int]]]:
    """Return mu, and for each convolution the layer, dL/dz (Co, Ho, Wo) and the side of its input."""
    pixels = torch.tensor(datasets()["cifar10"].picture(str(picture)), dtype=torch.float64) / 255  # (H, W, C)
    x, found = pixels.permute(2, 0, 1)[None], list[tuple[nn.Conv2d, Tensor, int]]()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model: nn.Sequential = plugin("model", Part(id="lenet", fields=NETS[net][0])).build((3, 32, 32), 1).double()
    for layer in model:
        side, x = x.shape[-1], layer(x)
        if isinstance(layer, nn.Conv2d):
            found.append((layer, x, side))
    mu = -x.abs().squeeze()  # the label is the opposite of what the network says
    inner = torch.autograd.grad(F.softplus(-mu), [z for _, z, _ in found])
    return float(mu.detach()), [(layer, k[0].detach(), side) for (layer, _, side), k in zip(found, inner, strict=True)]


def condition(layer: nn.Conv2d, k: Tensor, side: int, system: str) -> float:
    """Return the condition number of the equations of one convolution."""
    w, size, stride, padding = layer.weight.detach(), layer.kernel_size[0], layer.stride[0], int(layer.padding[0])
    kept, rim = (0, padding) if system == AS_PUBLISHED else (padding, 0)
    sides = (side + 2 * rim, side + 2 * rim)
    rows, outputs = gradient_rows(k, size, stride, kept, sides), weight_rows(w, stride, kept, sides)
    square = outputs.T @ outputs + torch.kron(torch.eye(w.shape[1], dtype=w.dtype), rows.T @ rows)
    outside = F.pad(torch.zeros(side, side, dtype=w.dtype), (rim,) * 4, value=1.0)
    values = torch.linalg.eigvalsh(square + outside.flatten().repeat(w.shape[1]).diag())
    return float((values[-1] / values[0]).sqrt())


def measured(net: str, system: str, seed: int, picture: int) -> dict[str, Any]:
    """Return mu and the three condition numbers."""
    begun = time.process_time()
    mu, layers = layers_of(net, seed, picture)
    return {"mu": mu, "conditions": [condition(*layer, system) for layer in layers], "seconds": round(time.process_time() - begun, 1)}


def over_pictures(runs: list[dict[str, Any]]) -> str:
    """Return the mean of each convolution's number, +- its standard error where there are several pictures."""
    each = list(zip(*(run["conditions"] for run in runs), strict=True))
    errors = [f" +- {statistics.stdev(values) / len(values) ** 0.5:.2g}" if len(values) > 1 else "" for values in each]
    return ", ".join(f"{statistics.mean(values):.4g}{error}" for values, error in zip(each, errors, strict=True))


def over_seeds(runs: list[dict[str, Any]]) -> str:
    """Return the smallest and largest of each convolution's number."""
    return ", ".join(f"{min(values):.3g} to {max(values):.3g}" for values in zip(*(run["conditions"] for run in runs), strict=True))


def main() -> None:
    """Measure what is not in the book yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=6, help="of seed 0; one of every other seed")
    parser.add_argument("--seeds", type=int, default=4)
    given = parser.parse_args()
    torch.set_num_threads(1)
    book, rows = Book("r_gap_conditions", __doc__), []
    for net, system in ARMS:
        published = NETS[net][1] if system == AS_PUBLISHED else ""
        seeds, pictures = (given.seeds, given.pictures) if published else (min(FEW, given.seeds), 1)
        runs = {}
        for seed, picture in [*((0, picture) for picture in range(pictures)), *((seed, 0) for seed in range(1, seeds))]:
            asked = {"net": net, "system": system, "seed": seed, "picture": picture}
            found = book.known(asked)
            if found is None:
                found = measured(net, system, seed, picture)
                book.runs.append({**asked, "result": found})
                book.save()
                say(f"{asked}: {found}")
            runs[seed, picture] = found
        first = [run for (seed, _), run in runs.items() if seed == 0]
        rows.append([net, system, len(first), over_pictures(first), published, seeds, over_seeds([runs[seed, 0] for seed in range(seeds)])])
    say()
    table(["net", "system", "pictures", "seed 0, mean", "published", "seeds", "one picture, all seeds"], rows)
    book.save()


if __name__ == "__main__":
    main()
