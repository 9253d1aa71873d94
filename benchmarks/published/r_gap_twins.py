"""Twin data, and R-GAP's mixture of a batch (Zhu and Blaschko 2021, figures 5, 7 and 8), with DLG beside it.

Published as pictures, without numbers. Twins: two pictures, one the multiple a of the other, with the same gradient; a search that begins
near the twin ends there. Networks: net A with CIFAR-10 pictures, and FCN3 with MNIST's (28 px), one output, the label that the network
says itself (two roots of mu). "apart": relative distance of the gradients of picture and twin from the received one. "search": how far
from the twin (relative) a search by L-BFGS begins and ends, 24 steps.
Mixtures: batches of 1, 2 and 5 of MNIST's first test pictures on FCN3, labels by the opposite of what the network says, known to DLG.
R-GAP answers with one picture. FCN3 has LeakyReLU; "DLG, sigmoid", of one picture, is DLG without kinks. "outside": the part of an answer
that no weighted sum of the batch explains, ||x - X c|| / ||x||, mean over the pictures of an answer. "MSE" is that of the pictures as they
are paired best with the batch; "grey" is that of a grey picture.
Differs from the paper: 4 pictures and 4 batches; DLG with at most STEPS steps a start and TRIES starts.

Found: picture and twin have the received gradient to 1e-10 or better. R-GAP's mixture lies in the span of the batch to 1e-15, but is no
explanation of its gradient. DLG diverges in most batches of LeakyReLU, with one picture too; with sigmoid it sticks.

    python benchmarks/published/r_gap_twins.py [--runs 4]        some minutes on one core; goes on where it stopped
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import Book, Fields, say, table

from leakage.engine.core import generator
from leakage.networks.k_curve import twin
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.workers import plugin_catalog
from leakage.workers.adapter import prepare

STEPS, TRIES = 100, 2
SEARCH: Fields = {"search": "L-BFGS", "steps": 24}
NETS: dict[str, dict[str, Any]] = {
    "net A": {"model": Part(id="rgap_net"), "source": "cifar10"},
    "FCN3": {"model": Part(id="fcn3"), "source": "mnist", "size": 28, "channels": 1},
}
BATCHES = (1, 2, 5)
DLG: dict[str, Any] = {"attack": Part(id="dlg", fields={"steps": STEPS, "restarts": TRIES}), "assume": Assumptions(labels=True)}
METHODS: dict[str, dict[str, Any]] = {
    "R-GAP": {"attack": Part(id="r_gap")},
    "DLG": DLG,
    "DLG, sigmoid": DLG | {"model": Part(id="fcn3", fields={"activation": "sigmoid"})},
}


def experiment(net: str, numbers: range, **more: Any) -> Experiment:
    """Return the experiment of some test pictures."""
    setting = {name: value for name, value in NETS[net].items() if name != "source"} | more
    pictures = tuple(Picture(source=NETS[net]["source"], id=str(number)) for number in numbers)
    return Experiment(pictures=pictures, precision="float64", seed=1 + numbers[0], **setting).resolve(plugin_catalog.describe())


def outside(answer: Tensor, batch: Tensor) -> float:
    """Return the relative length of what no weighted sum of a batch (B, ...) explains, mean over the pictures of an answer (B, ...)."""
    columns, wanted = batch.flatten(1).double().T, answer.flatten(1).double().T  # (pixels, B)
    left = wanted - columns @ torch.linalg.lstsq(columns, wanted).solution
    return float((left.norm(dim=0) / wanted.norm(dim=0)).mean())


def twins(net: str, number: int) -> dict[str, Any]:
    """Return what the twin attack finds for one picture."""
    begun, scene = (
        time.process_time(),
        prepare(experiment(net, range(number, number + 1), attack=Part(id="twin_data", fields=SEARCH), task="two")),
    )
    *_, answer = scene.attack.run(scene.seen, generator(scene.federation.seed, "attack"))
    note = {name: value for name, value in answer.note.items() if isinstance(value, int | float)}
    mse = float((answer.x.cpu() - scene.x).square().mean())
    return {**note, "mse": mse, "event": answer.note.get("event", ""), "seconds": round(time.process_time() - begun, 1)}


def mixture(size: int, method: str, number: int) -> dict[str, Any]:
    """Return how far the answer for one batch is from the batch, and from its weighted sums."""
    numbers, begun = range(size * number, size * number + size), time.process_time()
    scene = prepare(experiment("FCN3", numbers, task="flipped", **METHODS[method]))
    *_, answer = scene.attack.run(scene.seen, generator(scene.federation.seed, "attack"))
    scores = scene.referee().score(answer, ending="answer").scores
    return {
        "outside": outside(answer.x, scene.x),
        "labels": scene.y.tolist(),
        "mse": scores["mse_norm"],
        "loss": float(answer.loss),
        "grey": scene.baselines.scores["grey"]["mse"],
        "seconds": round(time.process_time() - begun, 1),
    }


def line_of_twins(runs: list[dict[str, Any]]) -> list[Any]:
    """Return one row of the table: how many pictures have a twin, and medians and worst values over these."""
    found = [run for run in runs if "end from the twin" in run]
    largest = [max(run[name] for run in found) for name in ("distance of the picture", "distance of the twin")]
    ends = [statistics.median(run[name] for run in found) for name in ("start from the twin", "end from the twin")]
    back = sum(run["end from the twin"] < run["start from the twin"] for run in found)
    errors, seconds = [run["mse"] for run in found], [run["seconds"] for run in runs]
    margins = [(run["mu"], twin("cross-entropy", run["mu"])) for run in found]
    times = [max(pair) / min(pair) for one, other in margins if other for pair in [(one, other)]]
    return [
        f"{len(found)} of {len(runs)}",
        f"{min(times):.3g} to {max(times):.3g}",
        *largest,
        *ends,
        f"{back} of {len(found)}",
        statistics.median(errors),
        sum(seconds),
    ]


def stored(book: Book, asked: dict[str, Any], found: Any) -> dict[str, Any]:
    """Return the stored result of what is asked, computed by `found` unless it is stored."""
    known = book.known(asked)
    if known is None:
        known = found()
        book.runs.append({**asked, "result": known})
        book.save()
        say(f"{asked}: {known}")
    return dict(known)


def main() -> None:
    """Measure what is not in the book yet, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4)
    given = parser.parse_args()
    torch.set_num_threads(1)
    book, rows = Book("r_gap_twins", __doc__), []
    for net in NETS:
        runs = [stored(book, {"figure": "twins", "net": net, "picture": n}, lambda n=n, net=net: twins(net, n)) for n in range(given.runs)]
        rows.append([net, *line_of_twins(runs)])
    say()
    table(["net", "twins", "a", "picture apart", "twin apart", "search begins", "ends", "nearer", "MSE", "seconds"], rows)
    rows = []
    for size in BATCHES:
        for method in METHODS if size == 1 else list(METHODS)[:2]:
            cells = [{"figure": "mixture", "batch": size, "method": method, "number": number} for number in range(given.runs)]
            runs = [stored(book, cell, lambda cell=cell: mixture(cell["batch"], cell["method"], cell["number"])) for cell in cells]
            each = [[run[name] for run in runs] for name in ("outside", "mse", "grey", "seconds")]
            rows.append([size, method, len(runs), statistics.median(each[0]), max(each[0]), *map(statistics.median, each[1:])])
    say()
    table(["batch", "method", "batches", "outside", "worst", "MSE", "grey", "seconds"], rows)
    book.save()


if __name__ == "__main__":
    main()
