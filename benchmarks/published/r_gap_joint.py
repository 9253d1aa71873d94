"""R-GAP through folded BatchNorm, mean pooling and skips: five random networks, and some by hand.

The five are those of tests/attacks/test_r_gap_joint.py, as they came. Pictures: the first ones of the gallery, reduced to the side that was
drawn; weights by a seed each, BatchNorm with random scales, shifts and stored statistics as after a training. Ten outputs, one picture,
float64. "Alone" is `system` balanced, layer by layer; "together" solves a layer that is short with those below it. Beside them RA-i, which
counts the equations of every layer, and the rank of d(gradient)/d(picture), which holds for every attack near it. MSE without clamping, the
median and the worst of all pictures. No filter of the fifth meets the last row and column: "below 1e-12" leaves these out.

    python benchmarks/published/r_gap_joint.py [--pictures 5]        some minutes on one core; goes on where it stopped
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
from _table import Book, say, table

from leakage.attacks.r_gap import RGap
from leakage.data.images import gallery
from leakage.engine.core import Observation, generator
from leakage.engine.jacobian_rank import spectrum
from leakage.engine.observe import observe, ready
from leakage.networks.grammar import parse, unroll
from leakage.networks.rank import analyse
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers.adapter import federation, network
from leakage.workers.private_pictures import load

NETWORKS = {  # name -> side of the picture, activations, network
    "drawn 1": (10, "sigmoid", "conv 5@14 norm - conv 3@9 p1 norm"),
    "drawn 2": (8, "tanh", "conv 5@10 p2 norm - block 8 /2 norm"),
    "drawn 3": (12, "leaky_relu", "conv 4@20 - mean 2 - block 19 /2 norm"),
    "drawn 4": (10, "tanh", "conv 5@10 p2 norm - block 15 /2 - mean 2"),
    "drawn 5": (10, "sigmoid", "conv 3@10 /2 - conv 3@18 p1 norm - block 10 - mean 2"),
    "net D, sigmoid": (12, "sigmoid", "conv 3@4 - conv 3@4"),
    "net D": (12, "leaky_relu", "conv 3@4 - conv 3@4"),
    "a mean, LeakyReLU": (8, "leaky_relu", "conv 3@24 p1 norm - mean 2"),
    "a mean, ReLU": (8, "relu", "conv 3@24 p1 norm - mean 2"),
    "a narrow block, ReLU": (8, "relu", "conv 3@6 p1 - block 6 norm"),
}
MET = {"drawn 5": 9}  # rows and columns that some filter meets, where these are not all
SYSTEMS = ("balanced", "together")


def seen_by(side: int, activation: str, text: str, number: int) -> tuple[Observation, Tensor, Tensor]:
    """Return what the server holds of one picture, the picture and its class."""
    asked = Experiment(
        pictures=(Picture(id=gallery()[number].id),),
        model=Part(id="custom", fields={"network": text, "activation": activation}),
        attack=Part(id="r_gap"),
        seed=1 + number,
        precision="float64",
    )
    x, y = load(asked, {})
    x = F.adaptive_avg_pool2d(x.double(), side)
    net = ready(network(asked, (3, side, side)), federation(asked), x, batch_norm="eval")
    trained(net, 1 + number)
    return observe(net, x, y, federation(asked), num_classes=10), x, y


def trained(net: nn.Module, seed: int) -> None:
    """Set random statistics, scales and shifts for every BatchNorm."""
    rng = torch.Generator().manual_seed(seed)
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            values = [torch.rand(layer.num_features, generator=rng, dtype=torch.float64) for _ in range(4)]
            with torch.no_grad():
                layer.weight.copy_(0.5 + values[0])
                layer.bias.copy_(0.6 * values[1] - 0.3)
                for held, value in ((layer.running_mean, values[2] - 0.5), (layer.running_var, 0.5 + values[3])):
                    assert held is not None
                    held.copy_(value)


def attacked(name: str, number: int) -> dict[str, Any]:
    """Return the rank, and the errors of both systems."""
    seen, x, y = seen_by(*NETWORKS[name], number)
    met = MET.get(name, x.shape[-1])
    found = spectrum(seen.model, x, y)
    made: dict[str, Any] = {"rank": found.rank, "unknowns": found.unknowns, "condition": found.condition}
    for system in SYSTEMS:
        begun = time.monotonic()
        *_, last = RGap(system=system).run(seen, generator(1, "attack"))
        missed = (last.x - x).square()
        made[system] = {
            "mse": float(missed.mean()),
            "mse of pixels met": float(missed[..., :met, :met].mean()),
            "label right": last.y.tolist() == y.tolist(),
            "seconds": round(time.monotonic() - begun, 1),
        }
    return made


def line(name: str, runs: list[dict[str, Any]]) -> list[Any]:
    """Return one row of the table."""
    side, activation, text = NETWORKS[name]
    index = analyse(unroll(parse(text), (3, side, side), 10)).index
    ranks = sorted(run["rank"] for run in runs)
    rank = f"{ranks[0]:,}" + (f" to {ranks[-1]:,}" if ranks[0] < ranks[-1] else "") + f" of {runs[0]['unknowns']:,}"
    cells: list[Any] = [name, text, activation, index, rank]
    for system in SYSTEMS:
        errors = [run[system]["mse"] for run in runs]
        cells += [statistics.median(errors), max(errors)]
    exact = sum(run["together"]["mse of pixels met"] < 1e-12 for run in runs)
    return [*cells, f"{exact} of {len(runs)}", statistics.median(run["together"]["seconds"] for run in runs)]


def main() -> None:
    """Measure what is not in the book yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    book, lines = Book("r_gap_joint", __doc__), []
    for name, (side, activation, text) in NETWORKS.items():
        runs = []
        for number in range(given.pictures):
            asked = {"name": name, "side": side, "activation": activation, "network": text, "picture": number}
            found = book.known(asked)
            if found is None:
                found = attacked(name, number)
                book.runs.append({**asked, "result": found})
                book.save()
                say(f"{name}, picture {number}: {found}")
            runs.append(found)
        lines.append(line(name, runs))
    say()
    heads = ["name", "network", "activation", "RA-i", "rank", "alone", "worst", "together", "worst", "below 1e-12", "seconds"]
    table(heads, lines)


if __name__ == "__main__":
    main()
